"""``npl-load schema``, ``init``, ``agent`` and ``syntax``: whole files, and the NPL in files."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from npl_index.answer.values import as_dict
from npl_index.errors import DocumentNotFoundError, InvalidRequestError, escaped
from npl_index.items import agents
from npl_index.items.loading import Loaded, load_agent, load_raw
from npl_index.items.notation import Usage, analyse
from npl_index.library.files import read_path
from npl_mcp.app.file_view import Files
from npl_mcp.cli.commands.targets import with_files
from npl_mcp.cli.terminal.arguments import JSON, Commands, option, switch
from npl_mcp.cli.terminal.display import USAGE, CommandResult, Display

NO_MATCH = "No agents found matching the specified criteria"
NO_AGENTS = "No agents found in search paths"

MAX_TEXT = 4 << 20
"""Bytes of the text of ``syntax``."""

MAX_MATCHES = 3
"""Matches of each notation that ``--matches`` shows."""

COMMANDS = Commands(with_files)


@COMMANDS.add("schema", option("item", "NAME"))
def _schema(given: Namespace, files: Files, display: Display) -> int:
    """Print the SQL of a schema."""
    load = partial(load_raw, files.own, "schema", given.item)
    return _print_content(load, f"Schema not found: {given.item}", display)


@COMMANDS.add("init")
def _init(_: Namespace, files: Files, display: Display) -> int:
    """Print the core reference, npl.md."""
    return _print_content(partial(load_raw, files.own, "init"), "Main npl.md file not found", display)


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
def _agent(given: Namespace, files: Files, display: Display) -> CommandResult | int:
    """Print an agent, or list agents."""
    if given.list:
        return _list_agents(given, files, display)
    if given.json:
        given.parser.error("argument --json: needs --list")
    if not given.item:
        display.say("Error: agent_name is required when not using --list")
        return 1
    load = partial(load_agent, files.own, given.item, with_definition=given.definition)
    return _print_content(load, f"Agent not found: {given.item}", display)


def _print_content(load: Callable[[], Loaded], missing: str, display: Display) -> int:
    """Print an item.

    :param missing: the predecessor's message for a missing item.
    """
    try:
        display.text(load().content)
    except DocumentNotFoundError as error:
        display.say(str(DocumentNotFoundError(missing, near=error.near)))
        return USAGE
    return 0


def _list_agents(given: Namespace, files: Files, display: Display) -> CommandResult:
    """List agents; an invalid condition is reported and matches no agent."""
    try:
        expression = agents.search_expression(given.search) if given.search else None
        condition = agents.field_condition(given.filter_meta) if given.filter_meta else None
    except InvalidRequestError as error:
        display.say(str(error))
        return CommandResult(NO_MATCH, [])
    every = agents.list_agents(files.own)
    chosen = [
        replace(agent, location=files.place(agent.location))
        for agent in every
        if (condition is None or agents.has_field(agent.fields, condition))
        and (not given.category or agents.in_category(agent.fields, given.category))
        and (expression is None or expression.search(agent.text or ""))
    ]
    lines = [_description(agent) if given.verbose else escaped(agent.name) for agent in chosen]
    rows = [{**agent.fields, "name": agent.name, "location": agent.location} for agent in chosen]
    return CommandResult("\n".join(lines) or (NO_MATCH if every else NO_AGENTS), rows)


def _description(agent: agents.AgentInfo) -> str:
    """Describe an agent in the form of earlier versions."""
    fields = agent.fields
    categories = fields.get("categories")
    if isinstance(categories, list):
        categories = ", ".join(map(str, categories))
    lines = [
        f"{agent.name} (v{fields.get('version', 'unknown')})",
        f"  Description: {fields.get('description', 'No description')}",
        *([f"  Categories: {categories}"] if categories else []),
        f"  Model: {fields.get('model', 'unknown')}",
        f"  Location: {agent.location}",
    ]
    # Further lines of a value are indented: they must not look like the next field or the next agent.
    shown = (escaped(line, lines=True).rstrip("\n").replace("\n", "\n    ") for line in lines)
    return "\n".join(shown) + "\n"


@COMMANDS.add(
    "syntax",
    option("text", "TEXT", "the text, or - for standard input", nargs="?"),
    option("--file", "F", "read the text from this file"),
    switch("--matches", help=f"show the first {MAX_MATCHES} of each"),
    JSON,
)
def _notation(given: Namespace, _: Files, display: Display) -> CommandResult | int:
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
    used = analyse(text, MAX_MATCHES if given.matches else 0)
    total, categories = sum(usage.count for usage in used), sorted({usage.category for usage in used})
    data = {"total": total, "categories": categories, "used": as_dict(used)}
    return CommandResult("\n".join(_usage_lines(total, categories, used)), data)


def _usage_lines(total: int, categories: Sequence[str], used: Sequence[Usage]) -> Iterator[str]:
    yield "# NPL Syntax Analysis"
    yield f"Total elements found: {total}"
    yield f"Element types: {', '.join(categories)}"
    yield ""
    yield "## Syntax Elements Found:" if used else "No NPL syntax elements found."
    for usage in used:
        yield f"  {usage.name}: {usage.count}"
        for number, match in enumerate(usage.matches, 1):
            yield f"    [{number}] {escaped(match)}"
        if usage.matches and usage.count > MAX_MATCHES:
            yield f"    ... and {usage.count - MAX_MATCHES} more"
        yield ""
