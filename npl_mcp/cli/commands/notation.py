"""``npl-load syntax``: which NPL notations a text uses."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npl_index.errors import escaped
from npl_mcp.cli.terminal.display import Display
from npl_mcp.cli.transports.connecting import Connection

SHOWN = 3


def run(given: Namespace, connection: Connection, display: Display) -> int:
    """Analyse a text, a file or standard input."""
    name = given.file
    if name:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            display.say(f"Error reading file {name}: {error}")
            return 2
    elif given.text == "-":
        try:
            text = sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError as error:
            display.say(f"Error reading standard input: {error}")
            return 2
    elif given.text:
        text = given.text
    else:
        display.say("Error: Must provide content, --file, or - for stdin")
        return 1
    reply = connection.call("survey_notation", text=text, matches=SHOWN if given.matches else 0)
    if not reply["success"]:
        return display.failed(reply)
    if given.json:
        display.data(reply["data"], "json")
    else:
        display.text(_report(reply["data"]))
    return 0


def _report(data: Mapping[str, Any]) -> str:
    lines = [
        "# NPL Syntax Analysis",
        f"Total elements found: {data['total']}",
        f"Element types: {', '.join(data['categories'])}",
        "",
    ]
    if not data["used"]:
        return "\n".join([*lines, "No NPL syntax elements found.", ""])
    lines.append("## Syntax Elements Found:")
    for usage in data["used"]:
        lines.append(f"  {usage['name']}: {usage['count']}")
        lines += [f"    [{number}] {escaped(match)}" for number, match in enumerate(usage["matches"], 1)]
        if usage["matches"] and usage["count"] > SHOWN:
            lines.append(f"    ... and {usage['count'] - SHOWN} more")
        lines.append("")
    return "\n".join([*lines, ""])
