"""``npl-load``: prompts from the command line, whole or by section."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from npl_mcp.cli.terminal import help as help_page
from npl_mcp.cli.terminal.arguments import FORMATS, TYPES, Given, UsageError, parse
from npl_mcp.cli.terminal.display import NOT_THERE, USAGE, Display, run_quietly
from npl_mcp.cli.transports.connecting import Way, connect

PROGRAM = "npl-load"

MODULES = {
    "schema": "whole",
    "init": "whole",
    "agent": "whole",
    "syntax": "notation",
    "init-claude": "claude_file",
    "tailored": "sections",
    "search": "sections",
    "completion": "completion",
}
"""Where commands live that are no types; each module is imported when its command is called."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    :param words: the command line without the program's name, by default the process's.
    :returns: the exit code.
    """
    return run_quietly(_run, sys.argv[1:] if words is None else words, PROGRAM)


def _run(words: Sequence[str], display: Display) -> int:
    try:
        given = parse(words)
        if given.has("help") or given.has("version"):
            return int(help_page.show(given, display))
        way = connect(given.last("via"), display.note)
        try:
            if given.command not in TYPES:
                return int(_module(MODULES[given.command]).run(given, way, display))
            if given.has("select") or given.has("index") or given.has("filter"):
                return int(_module("sections").run(given, way, display))
            return load_whole(given, way, display)
        finally:
            way.close()
    except UsageError as error:
        help_page.show_usage(error, display)
        return USAGE


def _module(name: str) -> Any:
    """Import a module of a command; each has a function of its own."""
    return importlib.import_module(f"npl_mcp.cli.commands.{name}")


def load_whole(given: Given, way: Way, display: Display) -> int:
    """Load whole items of the types named, with one header for all.

    :returns: 0, or with ``--strict`` 1 where something was not there.
    """
    if given.has("depth"):
        raise UsageError("argument --depth: needs --select, --filter or --index", given.command)
    groups = [
        {"kind": group.kind, "items": ",".join(group.names), "skip": " ".join(group.skip)}
        for group in given.groups
        if group.names
    ]
    if not groups:
        return 0
    reply = way.call("items_load", groups=groups)
    if not reply["success"]:
        return display.failed(reply)
    data = reply["data"]
    form = given.last("format") or FORMATS[0]
    if form != FORMATS[0]:
        display.data(data, form)
    else:
        display.text(data["header"] if given.has("quiet") else data["header"] + data["content"])
    problems = list(data.get("problems", ()))
    for missing in data.get("missing", ()):
        near = f"; near: {', '.join(missing['near'])}" if missing["near"] else ""
        problems.append(f"there is no {missing['kind']} {missing['name']!r}{near}")
    for problem in problems:
        display.note(problem)
    return NOT_THERE if problems and given.has("strict") else 0


if __name__ == "__main__":
    sys.exit(main())
