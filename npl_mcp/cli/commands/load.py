"""``npl-load``: prompts from the command line, whole or by section."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import closing

from npl_mcp.cli.commands import claude_file, edit, map_block, notation, sections, whole
from npl_mcp.cli.commands.load_arguments import PROGRAM, TYPES
from npl_mcp.cli.terminal.display import NOT_THERE, Display, run_command
from npl_mcp.cli.transports.connecting import Connection, connect

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
    return run_command(PROGRAM, words, _run)


def _run(given: Namespace, display: Display) -> int:
    if given.command == "completion":
        named = dict.fromkeys((*TYPES, "agent"), ("",))
        display.text(PROGRAM.completion(given.shell, _NAMES, named))
        return 0
    if given.command in PLACED:
        return PLACED[given.command](given, display)
    with closing(connect(given.via, display.note)) as connection:
        if given.command not in TYPES:
            return RUN.get(given.command, whole.run)(given, connection, display)
        if given.selectors or given.index or given.filter:
            return sections.run_items(given, connection, display)
        return _items(given, connection, display)


PLACED: dict[str, Callable[[Namespace, Display], int]] = {
    "tailored": sections.run,
    "search": sections.run,
    "index": sections.run,
    "edit": edit.run,
    "map": map_block.run,
}
"""Commands that look into folders of their own."""

RUN: dict[str, Callable[[Namespace, Connection, Display], int]] = {
    "syntax": notation.run,
    "init-claude": claude_file.run,
}


def _items(given: Namespace, connection: Connection, display: Display) -> int:
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
    data = connection.ask("items_load", groups=groups)
    if given.format != "text":
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
