"""``npl-load syntax``: the NPL notations in a text."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npl_index.errors import escaped
from npl_mcp.cli.terminal.arguments import JSON, Commands, option, switch
from npl_mcp.cli.terminal.display import USAGE, CommandResult, Display
from npl_mcp.cli.transports.connecting import ServerConnection, connected

MAX_MATCHES = 3

COMMANDS = Commands()


@COMMANDS.add(
    "syntax",
    option("text", "TEXT", "the text, or - for standard input", nargs="?"),
    option("--file", "F", "read the text from this file"),
    switch("--matches", help=f"show the first {MAX_MATCHES} of each"),
    JSON,
)
@connected
def _notation(given: Namespace, connection: ServerConnection, display: Display) -> CommandResult | int:
    """Count the NPL notations in a text."""
    source = f"file {given.file}" if given.file else "standard input"
    try:
        if given.file:
            text = Path(given.file).read_text(encoding="utf-8")
        else:
            text = sys.stdin.buffer.read().decode("utf-8") if given.text == "-" else given.text
    except (OSError, ValueError) as error:
        display.say(f"Error reading {source}: {error}")
        return USAGE
    if not (text or given.file):
        display.say("Error: Must provide content, --file, or - for stdin")
        return 1
    data = connection.ask("survey_notation", text=text, matches=MAX_MATCHES if given.matches else 0)
    return CommandResult(_usage_text(data), data)


def _usage_text(data: Mapping[str, Any]) -> str:
    lines = [
        "# NPL Syntax Analysis",
        f"Total elements found: {data['total']}",
        f"Element types: {', '.join(data['categories'])}",
        "",
    ]
    if not data["used"]:
        return "\n".join([*lines, "No NPL syntax elements found."])
    lines.append("## Syntax Elements Found:")
    for usage in data["used"]:
        lines.append(f"  {usage['name']}: {usage['count']}")
        lines += [f"    [{number}] {escaped(match)}" for number, match in enumerate(usage["matches"], 1)]
        if usage["matches"] and usage["count"] > MAX_MATCHES:
            lines.append(f"    ... and {usage['count'] - MAX_MATCHES} more")
        lines.append("")
    return "\n".join(lines)
