"""``npl-mcp index`` and ``npl-mcp cache``: folders are indexed ahead, shown, checked and let go."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_index.index.database import NAME, Database
from npl_index.index.upkeep import IndexedRoot, problems, roots
from npl_index.library.documents import DocumentRef
from npl_mcp.cli.terminal.arguments import JSON, Commands, argument
from npl_mcp.cli.terminal.display import Outcome, counted
from npl_mcp.config.arguments import path
from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App

STEPS = ("check", "clear")
_STEPS = "check: whether they can be used; clear: remove them; servers index again what they need"


COMMANDS = Commands()


@COMMANDS.add(
    "index",
    argument("folders", nargs="*", type=path, metavar="FOLDER", help="by default the roots"),
    JSON,
)
def _index(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Index folders ahead; servers with these roots need not."""
    for folder in given.folders:
        if not folder.is_dir():
            raise DocumentNotFoundError(f"{folder} is not a folder", hint="name an existing folder")
    settings = replace(settings, roots=tuple(given.folders) or settings.roots, patience=None)
    if settings.cache_mode == "memory":
        raise InvalidRequestError("with --cache memory nothing is kept", hint="leave it out")
    if not settings.roots:
        raise InvalidRequestError("there is no folder to index", hint="npl-mcp index FOLDER")
    app, started = App(settings), time.monotonic()
    try:
        gathered, built = app.gather(DocumentRef()), app.state.sets.built
        seconds = time.monotonic() - started
        size = sum(one.size for one in roots(app.state.sets.database))
    except DocumentNotFoundError as error:
        names = ", ".join(map(str, settings.roots))
        raise DocumentNotFoundError(f"{names}: {error.message}", hint="name another folder") from None
    finally:
        app.close()
    files, sections = len(gathered.collection.documents), len(gathered.collection)
    before = f", {files - built:,} were" if built < files else ""
    data = {
        "files": files,
        "sections": sections,
        "indexed": built,
        "seconds": round(seconds, 3),
        "bytes": size,
        "unreadable": gathered.unreadable,
    }
    found = f"{files:,} files with {sections:,} sections"
    text = f"{found}: {built:,} indexed{before}, {seconds:.1f} s; kept in {settings.data_folder}"
    return Outcome(text, data, gathered.unreadable)


@COMMANDS.add(
    "cache",
    argument("step", nargs="?", choices=STEPS, metavar="|".join(STEPS), help=_STEPS),
    JSON,
)
def _cache(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Show which folders are kept indexed."""
    database = Database(settings.data_folder)
    try:
        every = roots(database)
        size = sum(one.size for one in every)
        total, found = f"{len(every)} folders, {_size(size)} in {settings.data_folder / NAME}", []
        if given.step == "clear":
            database.discard()
            text = f"removed: {total}"
        elif given.step == "check":
            found = problems(database)
            text = f"checked: {total}: {counted(found)}"
        else:
            text = "\n".join([*map(_line, every), total])
        rows = [
            {
                "name": one.name,
                "files": one.files,
                "sections": one.sections,
                "bytes": one.size,
                "used": _used(one),
            }
            for one in every
        ]
        data = {"file": str(settings.data_folder / NAME), "bytes": size, "folders": rows, "problems": found}
        return Outcome(text, data, found)
    finally:
        database.close()


def _used(one: IndexedRoot) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.used_at))


def _line(one: IndexedRoot) -> str:
    held = f"{one.files:>9,} files {one.sections:>11,} sections {_size(one.size):>9}"
    return f"{held}  used {_used(one)}  {one.name}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
