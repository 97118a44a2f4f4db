"""``npl-mcp library``: folders become libraries of the database, and libraries become folders."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_mcp.cli.commands.stores import stores_of
from npl_mcp.cli.terminal.arguments import JSON, Commands, argument, count, option, switch
from npl_mcp.cli.terminal.display import Outcome
from npl_mcp.config.arguments import path
from npl_mcp.config.settings import Settings
from npl_mcp.core.libraries import Libraries
from npl_mcp.stores.library.names import LibraryRef, top_of
from npl_mcp.stores.library.store import LibraryRevision, Push

LOG = 20
"""Revisions that are shown unless more are asked for."""

COMMANDS = Commands()


@contextmanager
def _libraries(settings: Settings) -> Iterator[Libraries]:
    with stores_of(settings) as stores:
        yield Libraries(stores.library, settings.limits)


def _named(name: str, example: str) -> LibraryRef:
    """Return the library that is meant, or a revision of it, but no file."""
    try:
        ref = LibraryRef.parse(name, "name")
    except InvalidRequestError as error:
        if "@" in name:  # it says how revisions are numbered
            raise
        raise InvalidRequestError(error.message, hint=f"write e.g. {example}") from None
    if ref.path:
        raise InvalidRequestError(f"{name[:64]!r} names a file", hint=f"write the library, e.g. {example}")
    return ref


@COMMANDS.add(
    "library push",
    argument("folder", type=path, help="with subfolders; what is gone there goes here, too"),
    argument("--name", help="of the library; by default the folder's"),
    argument("-m", "--message", metavar="TEXT", help="what the revision is about"),
    option("--by", "NAME", "who pushes; by default the user of this machine", dest="created_by"),
    switch("--dry-run", help="only show what would change"),
    JSON,
)
def _push(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Make the Markdown of a folder the next revision of a library."""
    if not given.folder.is_dir():
        raise DocumentNotFoundError(f"{given.folder} is not a folder", hint="name an existing folder")
    name = given.folder.resolve().name if given.name is None else given.name
    by = _user() if given.created_by is None else given.created_by
    told = {"message": given.message, "created_by": by, "dry_run": given.dry_run}
    with _libraries(settings) as libraries:
        done = libraries.push(given.folder, name, **told)
    data = {"library": name, "revision": done.number, **asdict(done.difference)}
    return Outcome(_pushed(name, done, dry=given.dry_run), data)


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # nobody's name is known
        return None


def _pushed(name: str, done: Push, *, dry: bool) -> str:
    if not done.difference:
        return f"nothing is new: {top_of(name, done.number)} has just these files"
    marks = {"+": done.difference.added, "~": done.difference.changed, "-": done.difference.removed}
    counts = _changes(*map(len, marks.values()))
    if not dry:
        return f"{top_of(name, done.number)}: {counts}"
    lines = [f"{mark} {path}" for mark, paths in marks.items() for path in paths]
    return "\n".join([*lines, f"{top_of(name, done.number + 1)} would be new: {counts}"])


def _changes(added: int, changed: int, removed: int) -> str:
    return f"{added:,} added, {changed:,} changed, {removed:,} removed"


@COMMANDS.add(
    "library pull",
    argument("name", help="the library, or a revision of it, e.g. docs@12"),
    argument("folder", type=path, help="it is made if it is not there"),
    switch("--force", help="replace files that were changed there, too"),
    JSON,
)
def _pull(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Write the files of a library into a folder."""
    ref = _named(given.name, "docs or docs@12")
    with _libraries(settings) as libraries:
        done = libraries.pull(ref, given.folder, force=given.force)
    what = f"{len(done.written):,} written, {len(done.replaced):,} replaced, {len(done.removed):,} removed"
    kept = f", {len(done.kept):,} left as they were" if done.kept else ""
    name, number = done.revision.library, done.revision.number
    text = f"{top_of(name, number)}: {what}, {done.same:,} the same{kept}"
    return Outcome(text, {**asdict(done), "library": name, "revision": number}, done.kept)


@COMMANDS.add("library list", JSON)
def _list(_: argparse.Namespace, settings: Settings) -> Outcome:
    """Show the libraries."""
    with stores_of(settings) as stores:
        found = stores.library.list()
    return Outcome("\n".join(map(_line, found)) or "there is no library", [asdict(one) for one in found])


@COMMANDS.add(
    "library log",
    argument("name", help="the library"),
    option("--limit", "N", f"by default {LOG}", type=count, default=LOG),
    JSON,
)
def _log(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Show the revisions of a library, newest first."""
    ref = _named(given.name, "docs")
    if ref.number is not None:
        raise InvalidRequestError(
            f"{given.name[:64]!r} names a revision", hint="write the library, e.g. docs"
        )
    with stores_of(settings) as stores:
        found = stores.library.log(ref.library, given.limit)
    return Outcome("\n".join(map(_entry, found)), [asdict(one) for one in found])


def _line(one: LibraryRevision) -> str:
    size = f"{one.bytes / 1e6:,.1f} MB"
    name = top_of(one.library, None)
    return f"{name:<24} {one.files:>9,} files {size:>12}  revision {one.number:>5}  {_made(one)}"


def _entry(one: LibraryRevision) -> str:
    what = _changes(one.added, one.changed, one.removed)
    return f"{top_of(one.library, one.number)}  {_made(one)}  {one.files:,} files: {what}"


def _made(one: LibraryRevision) -> str:
    by = f" by {one.created_by}" if one.created_by else ""
    message = f": {one.message}" if one.message else ""
    return f"{one.created_at[:16].replace('T', ' ')} UTC{by}{message}"
