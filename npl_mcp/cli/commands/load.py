"""``npl-load``: prompts from the command line, whole or by section."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Protocol

from npl_mcp.cli.commands.load_arguments import FORMATS, PROGRAM, SECTION_COMMANDS, TYPES, parse
from npl_mcp.cli.terminal.arguments import parser_of
from npl_mcp.cli.terminal.display import NOT_THERE, Display, run_program
from npl_mcp.cli.transports.connecting import Connection, connect
from npl_mcp.config.completion import script

_NAMES = r"""case $1 in
    agent) npl-load agent --list 2>/dev/null ;;
    *) npl-load --quiet "$1" "**.*" 2>/dev/null | sed -n "s/^@.*+=\"\(.*\)\"\$/\1/p" | tr , "\n" ;;
    esac"""
"""Lists the names that can follow a command, for the completion in shells."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    :param words: the command line without the program's name, by default the process's.
    :returns: the exit code.
    """
    return run_program(PROGRAM.name, lambda display: _run(parse(words), display))


def _run(given: Namespace, display: Display) -> int:
    if given.command == "completion":
        named = dict.fromkeys((*TYPES, "agent"), ("",))
        display.text(script(given.shell, parser_of(PROGRAM), _NAMES, named))
        return 0
    if given.command == "edit":
        from npl_mcp.cli.commands import edit

        return edit.run(given, display)
    if given.command == "map":
        from npl_mcp.cli.commands import map_block

        return map_block.run(given, display)
    run = _command(given)
    if given.command in SECTION_COMMANDS:
        return _look(run, given, display)
    connection = connect(given.via, display.note)
    try:
        return run(given, connection, display)
    finally:
        connection.close()


def _look(run: Run, given: Namespace, display: Display) -> int:
    """Run a section command, which may look into folders of its own."""
    from npl_mcp.cli.commands.places import read_places

    places = read_places(given)
    try:
        given.where = {"file": places.file, "resource_type": given.kind, "item": given.item}
        display.target = given.output
        connection = connect(given.via, display.note, places.roots, must_see=places.given)
        try:
            return run(given, connection, display)
        finally:
            connection.close()
    finally:
        places.close()


class Run(Protocol):
    """Runs a command."""

    def __call__(self, given: Namespace, connection: Connection, display: Display) -> int:
        """Return the exit code."""
        ...


def _command(given: Namespace) -> Run:
    """Return the function that runs a command; no other command's module is imported."""
    if given.command in TYPES and not (given.select or given.index or given.filter):
        return load_whole
    if given.command in (*TYPES, *SECTION_COMMANDS):
        from npl_mcp.cli.commands import sections

        return sections.run
    if given.command == "syntax":
        from npl_mcp.cli.commands import notation

        return notation.run
    if given.command == "init-claude":
        from npl_mcp.cli.commands import claude_file

        return claude_file.run
    from npl_mcp.cli.commands import whole

    return whole.run


def load_whole(given: Namespace, connection: Connection, display: Display) -> int:
    """Print whole items of the types named, with one header for all.

    :returns: the exit code: 0, or with ``--strict`` 1 if an item is missing.
    """
    if given.depth is not None:
        given.parser.error("argument --depth: needs --select, --filter or --index")
    groups = [
        {"kind": group.kind, "items": ",".join(group.names), "skip": " ".join(group.skip)}
        for group in given.groups
        if group.names
    ]
    if not groups:
        return 0
    reply = connection.call("items_load", groups=groups)
    if not reply["success"]:
        return display.failed(reply)
    data = reply["data"]
    if given.format != FORMATS[0]:
        display.data(data, given.format)
    else:
        display.text(data["header"] if given.quiet else data["header"] + data["content"])
    problems = list(data.get("problems", ()))
    for missing in data.get("missing", ()):
        near = f"; near: {', '.join(missing['near'])}" if missing["near"] else ""
        problems.append(f"there is no {missing['kind']} {missing['name']!r}{near}")
    for problem in problems:
        display.note(problem)
    return NOT_THERE if problems and given.strict else 0


if __name__ == "__main__":
    sys.exit(main())
