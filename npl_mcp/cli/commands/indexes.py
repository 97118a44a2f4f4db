"""``npl-mcp index`` and ``npl-mcp cache``: building, listing, checking and removing the index of folders."""

from __future__ import annotations

import argparse
import time
from contextlib import closing
from dataclasses import replace

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_index.index.database import NAME, IndexDatabase
from npl_index.index.upkeep import IndexedRoot, problems, roots
from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.cli.terminal.arguments import JSON, Commands, argument
from npl_mcp.cli.terminal.display import CommandResult, counted
from npl_mcp.config.kinds import path
from npl_mcp.config.settings import Settings

STEPS = ("check", "clear")
_STEPS = "check: look for damage; clear: remove the index; servers build it again when they need it"

COMMANDS = Commands()


@COMMANDS.add(
    "index",
    argument("folders", nargs="*", type=path, metavar="FOLDER", help="folders; by default the roots"),
    JSON,
)
def _index(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Index folders ahead, so that servers with these roots need not."""
    for folder in given.folders:
        if not folder.is_dir():
            raise DocumentNotFoundError(f"{folder} is not a folder", hint="name an existing folder")
    settings = replace(settings, roots=tuple(given.folders) or settings.roots, patience=None)
    if settings.cache_mode == "memory":
        raise InvalidRequestError("with --cache memory no index is stored", hint="leave the flag out")
    if not settings.roots:
        raise InvalidRequestError("there is no folder to index", hint="npl-mcp index FOLDER")
    with closing(App(settings)) as app:
        started = time.monotonic()
        try:
            gathered, built = app.gather(DocumentRef()), app.state.sets.built
        except DocumentNotFoundError as error:
            names = ", ".join(map(str, settings.roots))
            raise DocumentNotFoundError(f"{names}: {error.message}", hint="name another folder") from None
        seconds = time.monotonic() - started
        size = sum(root.size for root in roots(app.state.sets.database))
    files, sections = len(gathered.collection.documents), len(gathered.collection)
    before = f", {files - built:,} unchanged" if built < files else ""
    data = {
        "files": files,
        "sections": sections,
        "indexed": built,
        "seconds": round(seconds, 3),
        "bytes": size,
        "unreadable": gathered.unreadable,
    }
    found = f"{files:,} files with {sections:,} sections"
    text = f"{found}: {built:,} indexed{before}, {seconds:.1f} s; stored in {settings.data_folder}"
    return CommandResult(text, data, gathered.unreadable)


@COMMANDS.add("cache", argument("step", nargs="?", choices=STEPS, metavar="|".join(STEPS), help=_STEPS), JSON)
def _cache(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Show the folders in the index."""
    with closing(IndexDatabase(settings.data_folder)) as database:
        every = roots(database)
        size = sum(root.size for root in every)
        total, found = f"{len(every)} folders, {_megabytes(size)} in {settings.data_folder / NAME}", []
        if given.step == "clear":
            database.discard()
            text = f"removed: {total}"
        elif given.step == "check":
            found = problems(database)
            text = f"checked: {total}: {counted(found)}"
        else:
            text = "\n".join([*map(_root_line, every), total])
    rows = [
        {
            "name": root.name,
            "files": root.files,
            "sections": root.sections,
            "bytes": root.size,
            "used": _used_at(root),
        }
        for root in every
    ]
    data = {"file": str(settings.data_folder / NAME), "bytes": size, "folders": rows, "problems": found}
    return CommandResult(text, data, found)


def _used_at(root: IndexedRoot) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(root.used_at))


def _root_line(root: IndexedRoot) -> str:
    counts = f"{root.files:>9,} files {root.sections:>11,} sections {_megabytes(root.size):>9}"
    return f"{counts}  used {_used_at(root)}  {root.name}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
