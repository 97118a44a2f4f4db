"""``npl-load edit`` and ``map``: change a section of a Markdown file, create a file, or keep a map in a file.

An edit may write all files that its user may write, so the file's folder is a root of this one call. The
call runs in this process: a server's changes are limited by the flags it was started with.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from npl_index.errors import NPLError
from npl_index.library.files import Folder
from npl_index.markdown.marked import with_map
from npl_mcp.cli.commands.targets import ROOT, STANDARD_INPUT, targets_of
from npl_mcp.cli.terminal.arguments import JSON, Commands, UsageError, option, switch
from npl_mcp.cli.terminal.display import EXIT_CODES, CommandResult, Display
from npl_mcp.cli.transports.connecting import connect

OPERATIONS = ("replace", "append", "prepend", "delete", "create")

OLD = 1
"""Exit code of ``map --check`` if the block is old."""

_MAX_BYTES = 16 << 20

COMMANDS = Commands()


@COMMANDS.add(
    "map",
    option("words", "DIR", "folders and files of the map", nargs="*"),
    ROOT,
    option("--write", "FILE", "keep the map in a marked block of this file, e.g. AGENTS.md"),
    switch("--check", help="with --write: change nothing, exit with 1 if the block is old"),
)
def _map(given: Namespace, display: Display) -> int:
    """Show folders, names of documents and rare words of their headings."""
    if given.check and not given.write:
        given.parser.error("argument --check: needs --write FILE")
    target = _target(given.write) if given.write else None
    if target == "":
        display.note(f"{given.write}: it is a link to a file outside of its folder; name that file")
        return EXIT_CODES["FILE_SYSTEM_ERROR"]
    targets = targets_of(given.words, given.root or (), given.parser.error)
    reach = connect(given.via, display.note, targets.roots, must_see=targets.given)
    with closing(targets), closing(reach) as connection:
        text = connection.ask("content_map", file=targets.file, without=target)
    if target is None:
        display.text(text)
        return 0
    try:
        current = _update_block(target, text, write=not given.check)
    except (OSError, UnicodeError, NPLError) as error:
        display.note(f"{given.write}: {error}")
        return EXIT_CODES["FILE_SYSTEM_ERROR" if isinstance(error, OSError) else "OPERATION_FAILED"]
    if not current:
        advice = "run it without --check" if given.check else "another program wrote to it, try again"
        display.note(f"the map in {given.write} is old: {advice}")
    return 0 if current else OLD


def _target(name: str) -> str:
    """Return the real path of a file to write; ``""`` if a link leads out of its folder."""
    real, folder = (os.path.realpath(path) for path in (name, os.path.split(name)[0]))
    return real if Path(real).is_relative_to(folder) else ""


def _update_block(path: str, text: str, *, write: bool) -> bool:
    """Write a map into the block of a file; return whether the block has it.

    :param write: whether an old block may be changed.
    """
    folder, name = os.path.split(path)
    with Folder.opened(folder) as opened:
        old = opened.read(name, _MAX_BYTES)[0] if opened.stat(name) else None
        new = with_map(old or b"", text)
        if new == old or not write:
            return new == old
        if old is None:
            return opened.create(name, new)
        return opened.replace_if(name, old, new, _MAX_BYTES) is None


@COMMANDS.add(
    "edit",
    option("file", "FILE"),
    option("selector", "SELECTOR", nargs="?"),
    option("--operation", "OP", choices=OPERATIONS, required=True),
    option("--content", "TEXT", "the text; by default standard input"),
    option("--expect", "DIGEST"),
    ROOT,
    JSON,
    tool="npl_update_section",
)
def _edit(given: Namespace, display: Display) -> CommandResult:
    """Change or delete a section of a Markdown file, or create one."""
    if given.via not in (None, "auto", "direct"):
        given.parser.error("argument --via: the file is changed in this process; leave it out")
    if given.file == STANDARD_INPUT:
        given.parser.error("argument FILE: standard input is not a file; name one")
    is_new = given.operation == "create"
    if given.selector is None and not is_new:
        given.parser.error("the following arguments are required: SELECTOR")
    there = os.path.dirname(given.file) or os.curdir if is_new else given.file  # noqa: PTH120
    targets = targets_of([there], given.root or (), given.parser.error)
    roots = targets.roots or (str(Path.cwd()),)
    with closing(connect("direct", display.note, roots, must_see=True)) as connection:
        if given.operation == "delete" and given.expect is None:
            # An agent must prove that it has read the section; the owner of the files need not.
            read = connection.ask("npl_load_tailored", file=targets.file, selectors=[given.selector])
            given.expect = read["sections"][0]["digest"]
        data = connection.ask(
            "npl_update_section",
            file=os.path.abspath(given.file) if is_new else targets.file,  # noqa: PTH100
            selector=given.selector,
            operation=given.operation,
            content=_content(given, display),
            expect=given.expect,
        )
    return CommandResult(_edit_text(data, given.operation), data)


def _content(given: Namespace, display: Display) -> str:
    """Return the text of ``--content``, else that of standard input."""
    if given.content is not None or given.operation == "delete":
        return str(given.content or "")
    if sys.stdin.isatty():
        display.note("write the content; Ctrl-D ends it")
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8: {error.reason} at byte {error.start}") from None
    if not text.strip():
        raise UsageError("standard input is empty; give a text, or use --operation delete")
    return text


def _edit_text(data: Mapping[str, Any], operation: str) -> str:
    what = "is unchanged" if data.get("unchanged") else "is changed"
    what += f" and lost lines {data['lines']}" if "lines" in data else ""
    lines = [
        f"{data['selector']} is new: {data['tokens']:,} tokens, digest {data['digest']}"
        if operation == "create"
        else f"{data['selector']} {what}: {data['tokens_before']:,} tokens before, {data['tokens']:,} now,"
        f" digest {data['digest']}",
        *(f"removed: {heading}" for heading in data.get("removed") or ()),
    ]
    return "\n".join(lines)
