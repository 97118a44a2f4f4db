"""The commands of ``npl-mcp`` for its data: the stores, worklogs in files, and the index of folders."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_index.index.database import NAME, IndexDatabase
from npl_index.index.upkeep import problems
from npl_index.library.documents import DocumentRef
from npl_index.library.roots import skipped_text
from npl_mcp.app.app import App
from npl_mcp.app.maintenance import back_up, check
from npl_mcp.cli.terminal.arguments import JSON, Commands, argument, settings_of
from npl_mcp.cli.terminal.display import CommandResult, Display, progress
from npl_mcp.config.kinds import DATABASE, path
from npl_mcp.config.settings import Settings
from npl_mcp.server.logs import set_up_log
from npl_mcp.stores import libraries
from npl_mcp.stores.copying import copy_stores
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.worklog.transfer import import_folder

PLACES = "a data folder, or postgresql://user@host/database"


@contextmanager
def with_settings(given: argparse.Namespace, _: Display) -> Iterator[tuple[Settings]]:
    """Return the settings."""
    settings = settings_of(given)
    set_up_log(settings.log_level)
    with progress("working"):
        yield (settings,)


COMMANDS = Commands(with_settings)


def stores_of(settings: Settings) -> closing[Stores]:
    """Return a context manager with the stores of the data folder; its end closes them.

    :raises DatabaseError: the address of the database is invalid.
    """
    return closing(Stores(settings.data_folder, settings.database_url))


@COMMANDS.add("backup", argument("folder", type=path, help="a new folder; use it with --data-dir"))
def _backup(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Copy the database and the artifacts; servers may run meanwhile."""
    with stores_of(settings) as stores:
        report = back_up(stores, given.folder)
    text = f"database and {report.revisions} revisions copied to {given.folder}"
    return CommandResult(text, problems=report.problems)


@COMMANDS.add("check", JSON)
def _check(_: argparse.Namespace, settings: Settings) -> CommandResult:
    """Check every row, every reference, every file and the index."""
    with stores_of(settings) as stores:
        report = check(stores)
    every = list(report.problems)
    if (settings.data_folder / NAME).exists():
        with closing(IndexDatabase(settings.data_folder)) as index:
            every += (f"index: {text}; the next start of a server replaces it" for text in problems(index))
    data = {"ok": not every, "revisions": report.revisions, "problems": every}
    text = f"database and {report.revisions} revisions checked; problems: {len(every)}"
    return CommandResult(text, data, every)


@COMMANDS.add("migrate")
def _migrate(_: argparse.Namespace, settings: Settings) -> CommandResult:
    """Migrate the database to this version; servers do the same when they open it."""
    with stores_of(settings) as stores:
        before, after = stores.database.migrate()
    was = "is" if before == after else f"was {before or 'empty'}, now is"
    return CommandResult(f"the schema {was} {after}")


def _place(text: str) -> Path | str:
    """Read a data folder, or the address of a database.

    :raises ArgumentTypeError: the text is neither; the message does not repeat a password.
    """
    if re.fullmatch(DATABASE.pattern, text):
        return text
    if "://" in text:
        raise argparse.ArgumentTypeError(f"it {DATABASE.problem}; name {PLACES}")
    return path(text)


@COMMANDS.add(
    "copy",
    argument("source", type=_place, help=f"the source: {PLACES}"),
    argument("target", type=_place, help=f"the target: {PLACES}"),
)
def _copy(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Copy all stores to another database and compare the rows."""
    places = [
        (place, None) if isinstance(place, Path) else (settings.data_folder, place)
        for place in (given.source, given.target)
    ]
    with ExitStack() as stack:
        source, target = (stack.enter_context(closing(Stores(*place))) for place in places)
        if _location(source) == _location(target):
            raise InvalidRequestError("source and target are the same", hint="name another target")
        if not source.database.is_made():
            raise InvalidRequestError(f"source {given.source} has no database", hint=f"name {PLACES}")
        rows, revisions = copy_stores(source, target)
    return CommandResult(f"{rows:,} rows and {revisions:,} revisions copied and compared")


def _location(stores: Stores) -> tuple[Path, str]:
    return stores.folder.resolve(), stores.database.engine.name


@COMMANDS.add("worklog import")
def _import(_: argparse.Namespace, settings: Settings) -> CommandResult:
    """Import the worklogs of .npl/sessions that the database does not have."""
    with stores_of(settings) as stores:
        done = import_folder(stores.database, str(settings.worklog_project))
    text = f"{done.sessions} sessions with {done.entries} entries imported"
    skipped = f"; {done.skipped_lines} lines are not entries" if done.skipped_lines else ""
    return CommandResult(text + skipped)


@COMMANDS.add("library export", argument("folder", type=path, help="target; existing files stay unchanged"))
def _export_libraries(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Write the libraries of earlier versions to files, each into a folder of its name."""
    with stores_of(settings) as stores:
        files, problems = libraries.export(stores.database, given.folder)
    text = f"{files - len(problems):,} of {files:,} files of libraries are in {given.folder}"
    return CommandResult(text, problems=problems)


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
        skipped = app.library.left_out()
    files, sections = len(gathered.collection.documents), len(gathered.collection)
    before = f", {files - built:,} unchanged" if built < files else ""
    data = {
        "files": files,
        "sections": sections,
        "indexed": built,
        "seconds": round(seconds, 3),
        "bytes": (settings.data_folder / NAME).stat().st_size,
        "unreadable": gathered.unreadable,
        "not_served": skipped,
    }
    counted = f"{files:,} files with {sections:,} sections"
    text = f"{counted}: {built:,} indexed{before}, {seconds:.1f} s; stored in {settings.data_folder}"
    text += f"\nnot served: {skipped_text(skipped)}" if skipped else ""
    return CommandResult(text, data, gathered.unreadable)
