"""The commands of ``npl-mcp`` for its data: the stores, worklogs in files, tokens, the index of folders."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_index.index.database import NAME, IndexDatabase
from npl_index.index.upkeep import problems
from npl_index.library.documents import DocumentRef
from npl_index.library.roots import skipped_text
from npl_mcp.app.app import App
from npl_mcp.app.maintenance import back_up, check
from npl_mcp.cli.terminal.arguments import JSON, Commands, argument, option, repeated, settings_of, switch
from npl_mcp.cli.terminal.display import CommandResult, Display, progress, table
from npl_mcp.config.domains import NEEDS, domains_named
from npl_mcp.config.kinds import DATABASE, path, words
from npl_mcp.config.settings import Settings
from npl_mcp.server.startup import set_up_log
from npl_mcp.stores import libraries
from npl_mcp.stores.access import Identity, Permissions, add_token, revoke_token, tokens
from npl_mcp.stores.copying import copy_stores
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.worklog.transfer import import_folder

PLACES = "a data folder, or postgresql://user@host/database"

_LIFETIME = re.compile(r"([1-9][0-9]{0,4})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@contextmanager
def _with_stores(given: argparse.Namespace, _: Display) -> Iterator[tuple[Stores, Settings]]:
    """Return the stores of the data folder, and the settings."""
    settings = settings_of(given)
    set_up_log(settings.log_level)
    with closing(Stores(settings.data_folder, settings.database_url)) as stores, progress():
        yield stores, settings


COMMANDS = Commands(_with_stores)


@COMMANDS.add("backup", argument("folder", type=path, help="a new folder; use it with --data-dir"))
def _backup(given: argparse.Namespace, stores: Stores, _: Settings) -> CommandResult:
    """Copy the database and the artifacts; servers may run meanwhile."""
    report = back_up(stores, given.folder)
    text = f"database and {report.revisions} revisions copied to {given.folder}"
    return CommandResult(text, problems=report.problems)


@COMMANDS.add("check", JSON)
def _check(_: argparse.Namespace, stores: Stores, settings: Settings) -> CommandResult:
    """Check every row, every reference, every file and the index."""
    report = check(stores)
    every = list(report.problems)
    if (settings.data_folder / NAME).exists():
        with closing(IndexDatabase(settings.data_folder)) as index:
            every += (f"index: {text}; the next start of a server replaces it" for text in problems(index))
    data = {"ok": not every, "revisions": report.revisions, "problems": every}
    text = f"database and {report.revisions} revisions checked; problems: {len(every)}"
    return CommandResult(text, data, every)


@COMMANDS.add("migrate")
def _migrate(_: argparse.Namespace, stores: Stores, __: Settings) -> CommandResult:
    """Migrate the database to this version; servers do the same when they open it."""
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
def _copy(given: argparse.Namespace, _: Stores, settings: Settings) -> CommandResult:
    """Copy all stores to another database and compare the rows."""
    own, named = settings.data_folder, (given.source, given.target)
    places = [(place, None) if isinstance(place, Path) else (own, place) for place in named]
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
def _import(_: argparse.Namespace, stores: Stores, settings: Settings) -> CommandResult:
    """Import the worklogs of .npl/sessions that the database does not have."""
    done = import_folder(stores.database, str(settings.worklog_project))
    text = f"{done.sessions} sessions with {done.entries} entries imported"
    skipped = f"; {done.skipped_lines} lines are not entries" if done.skipped_lines else ""
    return CommandResult(text + skipped)


@COMMANDS.add("library export", argument("folder", type=path, help="target; existing files stay unchanged"))
def _export_libraries(given: argparse.Namespace, stores: Stores, _: Settings) -> CommandResult:
    """Write the libraries of earlier versions to files, each into a folder of its name."""
    files, problems = libraries.export(stores.database, given.folder)
    text = f"{files - len(problems):,} of {files:,} files of libraries are in {given.folder}"
    return CommandResult(text, problems=problems)


@COMMANDS.add(
    "index",
    argument("folders", nargs="*", type=path, metavar="FOLDER", help="folders; by default the roots"),
    JSON,
)
def _index(given: argparse.Namespace, _: Stores, settings: Settings) -> CommandResult:
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


def _lifetime(text: str) -> timedelta:
    """Read a lifetime.

    :raises ArgumentTypeError: the text is not a lifetime.
    """
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a time; write 90m, 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@COMMANDS.add(
    "token add",
    argument("names", nargs="+", metavar="NAME", help="owner of a token; its calls act under this name only"),
    # Each dest differs from those of the settings, which it would override.
    option("--domains", "NAMES", "see only these domains of tools", dest="sees", type=words),
    switch("--read-only", help="change nothing"),
    repeated("--root", "DIR", "see only files below this folder", dest="sees_roots", type=path),
    option("--expires", "TIME", "lifetime, e.g. 12h, 30d or 8w; by default unlimited", type=_lifetime),
)
def _add_token(given: argparse.Namespace, stores: Stores, _: Settings) -> CommandResult:
    """Create a token for each name and print it, once."""
    permissions, more = _permissions(given), {"read_only": given.read_only, "lifetime": given.expires}
    made = {name: stores.unchecked.writing(add_token, name, permissions, **more) for name in given.names}
    lines = made.values() if len(made) == 1 else (f"{name} {token}" for name, token in made.items())
    return CommandResult("\n".join(lines))


@COMMANDS.add("token list", JSON)
def _list_tokens(_: argparse.Namespace, stores: Stores, __: Settings) -> CommandResult:
    """List the tokens with their owners and permissions."""
    rows = [_row(identity) for identity in stores.unchecked.reading(tokens)]
    head = ("name", "state", "expires", "access", "domains", "documents")
    text = table([head, *map(_cells, rows)]) if rows else "there are no tokens"
    return CommandResult(text, rows)


@COMMANDS.add("token revoke", argument("name", help="owner of the token"))
def _revoke_token(given: argparse.Namespace, stores: Stores, _: Settings) -> CommandResult:
    """Revoke a token; servers refuse it within seconds."""
    stores.unchecked.writing(revoke_token, given.name)
    return CommandResult(f"revoked: {given.name}")


def _permissions(given: argparse.Namespace) -> Permissions:
    """Return the permissions of a new token; a root excludes all other documents."""
    domains = None if given.sees is None else frozenset(domains_named(given.sees))
    for domain in sorted(domains or ()):
        lacking = [name for name in NEEDS.get(domain, ()) if name not in (domains or ())]
        if lacking:
            problem = f"--domains: answers of the domain {domain} contain data of {', '.join(lacking)}"
            raise InvalidRequestError(problem, hint=f"add {','.join(lacking)}")
    # Another machine may have the roots.
    roots = None if given.sees_roots is None else tuple(map(os.path.abspath, given.sees_roots))
    return Permissions(domains, roots)


def _row(identity: Identity) -> dict[str, Any]:
    """Return the fields of a token as JSON; ``null`` means unlimited."""
    permissions = identity.permissions
    return {
        "name": identity.name,
        "state": identity.state,
        "expires": identity.expires_at,
        "read_only": identity.read_only,
        "domains": None if permissions.domains is None else sorted(permissions.domains),
        "roots": permissions.roots,
    }


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a token in the table."""
    access = "read" if row["read_only"] else "read, write"
    domains = "all" if row["domains"] is None else ",".join(row["domains"])
    documents = "all" if row["roots"] is None else ", ".join(row["roots"]) or "none"
    return row["name"], row["state"], row["expires"] or "never", access, domains, documents
