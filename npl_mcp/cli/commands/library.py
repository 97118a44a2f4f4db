"""``npl-mcp library``: folders become libraries of the database, and libraries become folders."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from npl_index.library.roots import Limits
from npl_mcp.core.libraries import Libraries, Pulled
from npl_mcp.stores.library.names import LibraryRef, top_of
from npl_mcp.stores.library.store import Difference, LibraryRevision, LibraryStore, Push

LOG = 20
"""Revisions that are shown unless more are asked for."""


def add_library(commands: Any) -> None:
    """Add the command to those of ``npl-mcp``.

    :param commands: what :meth:`argparse.ArgumentParser.add_subparsers` returned.
    """
    library = commands.add_parser("library", help="keep Markdown in the database, for all who use it")
    steps = library.add_subparsers(dest="step", metavar="STEP", required=True)
    push = steps.add_parser("push", help="make the Markdown of a folder the next revision of a library")
    push.add_argument("folder", type=Path, help="with subfolders; what is gone there goes here, too")
    push.add_argument("--name", help="of the library; by default the folder's")
    push.add_argument("-m", "--message", metavar="TEXT", help="what the revision is about")
    push.add_argument("--by", metavar="NAME", help="who pushes; by default the user of this machine")
    push.add_argument("--dry-run", action="store_true", help="only show what would change")
    pull = steps.add_parser("pull", help="write the files of a library into a folder")
    pull.add_argument("name", help="the library, or a revision of it, e.g. docs@12")
    pull.add_argument("folder", type=Path, help="it is made if it is not there")
    pull.add_argument("--force", action="store_true", help="replace files that were changed there, too")
    steps.add_parser("list", help="show the libraries")
    log = steps.add_parser("log", help="show the revisions of a library, newest first")
    log.add_argument("name", help="the library")
    log.add_argument("--limit", type=int, default=LOG, metavar="N", help=f"by default {LOG}")


def run_library(given: argparse.Namespace, store: LibraryStore, limits: Limits) -> tuple[Sequence[str], str]:
    """Run the command.

    :param store: where libraries are kept.
    :param limits: on the files of a folder.
    :returns: what could not be done, and what is to be shown.
    """
    libraries = Libraries(store, limits)
    if given.step == "push":
        return (), _push(given, libraries)
    if given.step == "pull":
        done = libraries.pull(LibraryRef.parse(given.name, "name"), given.folder, force=given.force)
        return done.kept, _pulled(done)
    if given.step == "list":
        found = store.list()
        return (), "\n".join(map(_line, found)) if found else "there is no library"
    return (), "\n".join(map(_entry, store.log(LibraryRef.parse(given.name, "name").library, given.limit)))


def _push(given: argparse.Namespace, libraries: Libraries) -> str:
    name = given.folder.resolve().name if given.name is None else given.name
    by = _user() if given.by is None else given.by
    done = libraries.push(given.folder, name, message=given.message, created_by=by, dry_run=given.dry_run)
    return _pushed(name, done, dry=given.dry_run)


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # nobody's name is known
        return None


def _pushed(name: str, done: Push, *, dry: bool) -> str:
    if not done.difference:
        return f"nothing is new: {top_of(name, done.number)} has just these files"
    counts = _counts(done.difference)
    if not dry:
        return f"{top_of(name, done.number)}: {counts}"
    return "\n".join([*_lines(done.difference), f"{top_of(name, done.number + 1)} would be new: {counts}"])


def _lines(difference: Difference) -> Iterable[str]:
    marks = {"+": difference.added, "~": difference.changed, "-": difference.removed}
    return (f"{mark} {path}" for mark, paths in marks.items() for path in paths)


def _counts(difference: Difference) -> str:
    return _changes(len(difference.added), len(difference.changed), len(difference.removed))


def _changes(added: int, changed: int, removed: int) -> str:
    return f"{added:,} added, {changed:,} changed, {removed:,} removed"


def _pulled(done: Pulled) -> str:
    what = f"{len(done.written):,} written, {len(done.replaced):,} replaced, {len(done.removed):,} removed"
    kept = f", {len(done.kept):,} left as they were" if done.kept else ""
    return f"{top_of(done.revision.library, done.revision.number)}: {what}, {done.same:,} the same{kept}"


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
