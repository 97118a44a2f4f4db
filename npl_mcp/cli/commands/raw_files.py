"""``npl-load schema``, ``init``, ``agent`` and ``syntax``: whole files, and the NPL in files."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from npl_index.errors import InvalidRequestError, escaped
from npl_index.items.agents import search_expression
from npl_index.library.files import read_path
from npl_mcp.cli.terminal.arguments import JSON, Commands, option, switch
from npl_mcp.cli.terminal.display import USAGE, CommandResult, Display, FailedCallError
from npl_mcp.cli.transports.connecting import ServerConnection, connected

NO_MATCH = "No agents found matching the specified criteria"
NO_AGENTS = "No agents found in search paths"

MAX_TEXT = 4 << 20
"""Bytes of the text of ``syntax``, of which the tool takes as many characters."""

MAX_MATCHES = 3
"""Matches of each notation that ``--matches`` shows."""

COMMANDS = Commands(connected)


@COMMANDS.add("schema", option("item", "NAME"))
def _schema(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """Print the SQL of a schema."""
    return _print_content(connection.call("items_raw", kind="schema", name=given.item), given, display)


@COMMANDS.add("init")
def _init(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """Print the core reference, npl.md."""
    return _print_content(connection.call("items_raw", kind="init"), given, display)


@COMMANDS.add(
    "agent",
    option("item", "NAME", nargs="?"),
    switch("--list", help="list agents"),
    switch("-v", "--verbose", help="with --list: version, description, model, location"),
    option("--search", "REGEX", "with --list: agents whose file matches, ignoring case"),
    option("--filter-meta", "FIELD:VALUE", "with --list: agents with this front matter"),
    option("--category", "C", "with --list: agents of this category"),
    switch("--json", help="with --list: print JSON"),
    switch("--definition", help="append the NPL that the agent needs"),
)
def _agent(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """Print an agent, or list agents."""
    if given.list:
        return _list_agents(given, connection, display)
    if given.json:
        given.parser.error("argument --json: needs --list")
    if not given.item:
        display.say("Error: agent_name is required when not using --list")
        return 1
    reply = connection.call("items_agent", name=given.item, definition=given.definition)
    return _print_content(reply, given, display)


def _print_content(reply: Mapping[str, Any], given: Namespace, display: Display) -> int:
    if reply["success"]:
        display.text(reply["data"]["content"])
        return 0
    if reply["error_code"] != "NOT_FOUND":
        return display.failed(reply, given.parser)
    display.say(reply["error"])
    return USAGE


def _list_agents(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """List agents; an invalid condition is reported and matches no agent."""
    try:
        expression = search_expression(given.search) if given.search else None
        data = connection.ask(
            "survey_agents",
            field=given.filter_meta or None,
            category=given.category or None,
            texts=expression is not None,
        )
    except (InvalidRequestError, FailedCallError) as error:
        if isinstance(error, FailedCallError) and error.reply["error_code"] != "INVALID_PARAMETER":
            raise
        display.say(str(error))
        return _show_agents([], NO_MATCH, given, display)
    agents = [agent for agent in data["agents"] if expression is None or expression.search(agent["text"])]
    return _show_agents(agents, NO_MATCH if data["total"] else NO_AGENTS, given, display)


def _show_agents(
    agents: Sequence[Mapping[str, Any]], if_empty: str, given: Namespace, display: Display
) -> int:
    """Print agents.

    :param if_empty: text for people if the list is empty.
    """
    if given.json:
        rows = [{**agent["fields"], "name": agent["name"], "location": agent["location"]} for agent in agents]
        display.data(rows, "json")
    elif given.verbose:
        display.text("".join(map(_description, agents)) or f"{if_empty}\n")
    else:
        display.text("".join(f"{escaped(agent['name'])}\n" for agent in agents) or f"{if_empty}\n")
    return 0


def _description(agent: Mapping[str, Any]) -> str:
    """Describe an agent in the form of earlier versions."""
    fields = agent["fields"]
    categories = fields.get("categories")
    if isinstance(categories, list):
        categories = ", ".join(map(str, categories))
    lines = [
        f"{agent['name']} (v{fields.get('version', 'unknown')})",
        f"  Description: {fields.get('description', 'No description')}",
        *([f"  Categories: {categories}"] if categories else []),
        f"  Model: {fields.get('model', 'unknown')}",
        f"  Location: {agent['location']}",
    ]
    # Further lines of a value are indented: they must not look like the next field or the next agent.
    shown = (escaped(line, lines=True).rstrip("\n").replace("\n", "\n    ") for line in lines)
    return "\n".join(shown) + "\n\n"


@COMMANDS.add(
    "syntax",
    option("text", "TEXT", "the text, or - for standard input", nargs="?"),
    option("--file", "F", "read the text from this file"),
    switch("--matches", help=f"show the first {MAX_MATCHES} of each"),
    JSON,
)
def _notation(given: Namespace, connection: ServerConnection, display: Display) -> CommandResult | int:
    """Count the NPL notations in a text."""
    source = f"file {given.file}" if given.file else "standard input"
    try:
        if given.file:
            text = read_path(given.file, MAX_TEXT)[0].decode()
        else:
            text = sys.stdin.buffer.read(MAX_TEXT + 1).decode() if given.text == "-" else given.text
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
