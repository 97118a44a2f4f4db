"""``npl-mcp library``: folders become libraries of the database, and libraries become folders."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_index.library.roots import Limits
from npl_mcp.cli.terminal.arguments import JSON, add, count
from npl_mcp.cli.terminal.outcome import Outcome
from npl_mcp.config.arguments import path
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
    steps = library.add_subparsers(dest="step", metavar="push|pull|list|log", required=True)
    push = steps.add_parser("push", help="make the Markdown of a folder the next revision of a library")
    push.add_argument("folder", type=path, help="with subfolders; what is gone there goes here, too")
    push.add_argument("--name", help="of the library; by default the folder's")
    push.add_argument("-m", "--message", metavar="TEXT", help="what the revision is about")
    push.add_argument(
        "--by", dest="created_by", metavar="NAME", help="who pushes; by default the user of this machine"
    )
    push.add_argument("--dry-run", action="store_true", help="only show what would change")
    pull = steps.add_parser("pull", help="write the files of a library into a folder")
    pull.add_argument("name", help="the library, or a revision of it, e.g. docs@12")
    pull.add_argument("folder", type=path, help="it is made if it is not there")
    pull.add_argument("--force", action="store_true", help="replace files that were changed there, too")
    listed = steps.add_parser("list", help="show the libraries")
    log = steps.add_parser("log", help="show the revisions of a library, newest first")
    log.add_argument("name", help="the library")
    log.add_argument("--limit", type=count, default=LOG, metavar="N", help=f"by default {LOG}")
    for step in (push, pull, listed, log):
        add(step, JSON)


def run_library(given: argparse.Namespace, store: LibraryStore, limits: Limits) -> Outcome:
    """Run the command.

    :param store: where libraries are kept.
    :param limits: on the files of a folder.
    :raises NPLError: it cannot be done.
    """
    libraries = Libraries(store, limits)
    if given.step == "push":
        return _push(given, libraries)
    if given.step == "pull":
        return _pulled(libraries.pull(_named(given.name, "docs or docs@12"), given.folder, force=given.force))
    if given.step == "list":
        found, line, nothing = store.list(), _line, "there is no library"
    else:
        ref = _named(given.name, "docs")
        if ref.number is not None:
            problem = f"{given.name[:64]!r} names a revision"
            raise InvalidRequestError(problem, hint="write the library, e.g. docs")
        found, line, nothing = store.log(ref.library, given.limit), _entry, ""
    return Outcome("\n".join(map(line, found)) or nothing, [asdict(one) for one in found])


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


def _push(given: argparse.Namespace, libraries: Libraries) -> Outcome:
    if not given.folder.is_dir():
        raise DocumentNotFoundError(f"{given.folder} is not a folder", hint="name an existing folder")
    name = given.folder.resolve().name if given.name is None else given.name
    by = _user() if given.created_by is None else given.created_by
    done = libraries.push(given.folder, name, message=given.message, created_by=by, dry_run=given.dry_run)
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


def _pulled(done: Pulled) -> Outcome:
    what = f"{len(done.written):,} written, {len(done.replaced):,} replaced, {len(done.removed):,} removed"
    kept = f", {len(done.kept):,} left as they were" if done.kept else ""
    name, number = done.revision.library, done.revision.number
    text = f"{top_of(name, number)}: {what}, {done.same:,} the same{kept}"
    return Outcome(text, {**asdict(done), "library": name, "revision": number}, done.kept)


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
