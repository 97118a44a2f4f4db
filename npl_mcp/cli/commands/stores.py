"""The commands of ``npl-mcp`` that care for the stores: back up, check, migrate, copy; worklogs as files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from npl_index.errors import InvalidRequestError
from npl_mcp.cli.terminal.arguments import JSON, add
from npl_mcp.cli.terminal.outcome import Outcome, counted
from npl_mcp.config.arguments import filled, path
from npl_mcp.config.settings import Settings
from npl_mcp.core.maintenance import back_up, check
from npl_mcp.stores.copying import copy_stores
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.worklog import files

PLACES = "a data folder, or postgresql://user@host/database"

_POSTGRES = ("postgresql://", "postgres://")


def add_stores(commands: Any) -> None:
    """Add the commands to those of ``npl-mcp``.

    :param commands: what :meth:`argparse.ArgumentParser.add_subparsers` returned.
    """
    backup = commands.add_parser("backup", help="copy the database and the artifacts, while servers may run")
    backup.add_argument("folder", type=path, help="a new folder; use it with --data-dir")
    checked = commands.add_parser("check", help="check every row, every reference and every file")
    add(checked, JSON)
    commands.add_parser("migrate", help="bring the database to this version; servers do so when they open it")
    copy = commands.add_parser("copy", help="copy everything to another database, and compare row by row")
    for name in ("source", "target"):
        copy.add_argument(name, type=filled, help=f"the {name}: {PLACES}")
    worklog = commands.add_parser("worklog", help="import or export .npl/sessions of this folder")
    steps = worklog.add_subparsers(dest="step", metavar="import|export", required=True)
    steps.add_parser("import", help="import the worklogs of .npl/sessions that are not known yet")
    export = steps.add_parser("export", help="write a session's worklog as files")
    export.add_argument(
        "session_id", nargs="?", type=filled, metavar="session", help="its id; by default the current session"
    )
    export.add_argument("folder", nargs="?", type=path, help="target; by default .npl/sessions/ID")


def stores_of(settings: Settings) -> Stores:
    """Return the stores of the data folder.

    :raises DatabaseError: the address of the database cannot be read.
    """
    return Stores(settings.data_folder, settings.max_artifact_bytes, settings.database_url)


def run_backup(given: argparse.Namespace, stores: Stores) -> Outcome:
    """Copy the stores into a new folder.

    :raises NPLError: it cannot be done.
    """
    report = back_up(stores, given.folder)
    text = f"database and {report.revisions} revisions copied to {given.folder}"
    return Outcome(text, problems=report.problems)


def run_check(stores: Stores) -> Outcome:
    """Check the stores.

    :raises DatabaseError: the database cannot be read at all.
    """
    report = check(stores)
    data = {"ok": not report.problems, "revisions": report.revisions, "problems": report.problems}
    text = f"database and {report.revisions} revisions checked: {counted(report.problems)}"
    return Outcome(text, data, report.problems)


def run_migrate(stores: Stores) -> Outcome:
    """Bring the database to this version.

    :raises DatabaseError: it cannot be done.
    """
    before, after = stores.database.migrate()
    was = "is" if before == after else f"was {before or 'empty'}, now is"
    return Outcome(f"the schema {was} {after}")


def run_copy(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Copy all stores from one place to another.

    :raises NPLError: a place cannot be used, or something cannot be copied.
    """
    ends: list[Stores] = []
    try:
        for name in ("source", "target"):
            ends.append(_stores(name, getattr(given, name), settings))
        source, target = ends
        if _where(source) == _where(target):
            raise InvalidRequestError("source and target are the same", hint="name another target")
        if not source.database.is_made():
            raise InvalidRequestError(f"source {given.source} holds no database", hint=f"name {PLACES}")
        rows, revisions = copy_stores(source, target)
    finally:
        for one in ends:
            one.close()
    return Outcome(f"{rows:,} rows and {revisions:,} revisions copied and compared")


def _stores(name: str, place: str, settings: Settings) -> Stores:
    if place.startswith(_POSTGRES):
        return Stores(settings.data_folder, settings.max_artifact_bytes, place)
    if "://" in place:  # it may hold a password
        raise InvalidRequestError(f"{name} is no address of PostgreSQL", hint=f"name {PLACES}")
    try:
        folder = path(place)
    except argparse.ArgumentTypeError as error:
        raise InvalidRequestError(f"{name}: {error}") from None
    return Stores(folder, settings.max_artifact_bytes)


def _where(stores: Stores) -> tuple[Path, str]:
    return stores.folder.resolve(), stores.database.engine.name


def run_worklog(given: argparse.Namespace, stores: Stores, project: Path) -> Outcome:
    """Import or export worklogs as files.

    :param project: real path of its folder.
    :raises NPLError: it cannot be done.
    """
    place = str(project)
    if given.step == "export":
        with stores.database.read() as tx:
            return Outcome(f"written to {files.export(tx, place, given.session_id, given.folder)}")
    done = files.import_folder(stores.database, place)
    skipped = f"; {done.skipped_lines} lines are no entries" if done.skipped_lines else ""
    return Outcome(f"{done.sessions} sessions with {done.entries} entries taken over{skipped}")
