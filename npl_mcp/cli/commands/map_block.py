"""``npl-load map``: prints a map of documents, or keeps it in a marked block of a file."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import closing

from npl_index.errors import NPLError
from npl_index.library.files import Folder
from npl_index.markdown.marked import with_map
from npl_mcp.cli.commands.load_options import ROOT
from npl_mcp.cli.commands.places import located
from npl_mcp.cli.terminal.arguments import Commands, option, switch
from npl_mcp.cli.terminal.display import EXIT_CODES, Display
from npl_mcp.cli.transports.connecting import connect

OLD = 1
"""Exit code of ``--check`` if the block is old."""

_MOST_BYTES = 16 << 20


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
    target = os.path.realpath(given.write) if given.write else None
    places = located(given.words, given.root or (), given.parser.error)
    reach = connect(given.via, display.note, places.roots, must_see=places.given)
    with closing(places), closing(reach) as connection:
        text = connection.ask("content_map", file=places.file, without=target)
    if target is None:
        display.text(text)
        return 0
    try:
        kept = _kept(target, text, write=not given.check)
    except (OSError, UnicodeError, NPLError) as error:
        display.note(f"{given.write}: {error}")
        return EXIT_CODES["FILE_SYSTEM_ERROR" if isinstance(error, OSError) else "OPERATION_FAILED"]
    if not kept:
        again = "run it without --check" if given.check else "another program wrote to it, try again"
        display.note(f"the map in {given.write} is old: {again}")
    return 0 if kept else OLD


def _kept(path: str, text: str, *, write: bool) -> bool:
    """Return whether a file has a map in its block, which is written if need be."""
    folder, name = os.path.split(path)
    with Folder.opened(folder) as opened:
        old = opened.read(name, _MOST_BYTES)[0] if opened.stat(name) else None
        new = with_map(old or b"", text)
        if new == old or not write:
            return new == old
        if old is None:
            return opened.create(name, new)
        return opened.replace_if(name, old, new, _MOST_BYTES) is None
