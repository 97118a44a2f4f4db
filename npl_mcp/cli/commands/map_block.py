"""``npl-load map``: show a map of documents, or keep it in a block of a file."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import closing
from dataclasses import replace

from npl_index.errors import NPLError
from npl_index.markdown.marked import with_map
from npl_mcp.app.waiting import result_of
from npl_mcp.cli.commands.targets import ROOT, failures, named_places, opened_target
from npl_mcp.cli.terminal.arguments import Commands, option, switch
from npl_mcp.cli.terminal.display import EXIT_CODES, Display, progress
from npl_mcp.cli.transports.connecting import user_settings

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
    without = os.path.realpath(given.write) if given.write else None
    # The application takes a quarter of a second to import; the other commands here need none of it.
    from npl_mcp.app.app import App
    from npl_mcp.app.document_map import document_map

    file, roots = named_places(given.words, given)
    with (
        failures(),
        closing(App(replace(user_settings(given, roots), warm_up=False))) as app,
        progress("working"),
    ):
        text = result_of(document_map(app, file, without))
    if not given.write:
        display.text(text)
        return 0
    try:
        current = _update_block(given.write, text, write=not given.check)
    except (OSError, UnicodeError, NPLError) as error:
        display.note(f"{given.write}: {getattr(error, 'strerror', None) or error}")
        return EXIT_CODES["FILE_SYSTEM_ERROR" if isinstance(error, OSError) else "OPERATION_FAILED"]
    if not current:
        advice = "run it without --check" if given.check else "another program wrote to it, try again"
        display.note(f"the map in {given.write} is old: {advice}")
    return 0 if current else OLD


def _update_block(path: str, text: str, *, write: bool) -> bool:
    """Write a map into the block of a file; return whether the block has it.

    :param write: whether an old block may be changed.
    """
    with opened_target(path) as (opened, name):
        old = opened.read(name, _MAX_BYTES)[0] if opened.stat(name) else None
        new = with_map(old or b"", text)
        if new == old or not write:
            return new == old
        if old is None:
            return opened.create(name, new)
        return opened.replace_if(name, old, new, _MAX_BYTES) is None
