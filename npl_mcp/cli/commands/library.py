"""``npl-mcp library``: libraries of the database, pushed from folders and pulled into folders."""

from __future__ import annotations

import argparse
import base64
import getpass
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Any

from npl_index.errors import DocumentNotFoundError, InvalidRequestError, NotFoundError
from npl_mcp.app.libraries import Libraries
from npl_mcp.cli.commands.stores import stores_of
from npl_mcp.cli.terminal.arguments import JSON, Commands, argument, count, option, switch
from npl_mcp.cli.terminal.display import CommandResult, FailedCallError
from npl_mcp.cli.transports.connecting import ServerConnection, connect
from npl_mcp.config.kinds import path
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base.values import filled
from npl_mcp.stores.library.libraries import (
    Files,
    LibraryDifference,
    LibraryFile,
    LibraryRevision,
    LibraryStore,
    Push,
    damaged_file,
)
from npl_mcp.stores.library.names import LibraryRef, top_of

LOG = 20
"""Default number of revisions in the log."""

MAX_BYTES = 1_000_000
"""Bytes of contents in one call of a server, unless one file has more."""

MAX_FILES = 1_000

COMMANDS = Commands()


def _is_served(settings: Settings) -> bool:
    """Return whether the settings name a server for libraries, and not a database as well."""
    return settings.url is not None and settings.database_url is None


@contextmanager
def _libraries(settings: Settings) -> Iterator[Libraries]:
    if _is_served(settings):
        # Nothing replaces the server, so there is nothing to note.
        with closing(connect("http", lambda _: None)) as connection:
            yield Libraries(ServedLibraries(connection), settings.limits)
        return
    with stores_of(settings) as stores:
        yield Libraries(stores.library, settings.limits)


def _library_ref(name: str, example: str) -> LibraryRef:
    """Return the named library, or its named revision.

    :raises InvalidRequestError: the name is invalid or is that of a file.
    """
    try:
        ref = LibraryRef.parse(name, "name")
    except InvalidRequestError as error:
        if "@" in name:  # the hint explains the numbers of revisions
            raise
        raise InvalidRequestError(error.message, hint=f"write e.g. {example}") from None
    if ref.path:
        raise InvalidRequestError(f"{name[:64]!r} names a file", hint=f"write the library, e.g. {example}")
    return ref


@COMMANDS.add(
    "library push",
    argument("folder", type=path, help="folder with its subfolders; removed files leave the library, too"),
    argument("--name", help="name of the library; by default that of the folder"),
    argument("-m", "--message", metavar="TEXT", help="description of the revision"),
    option("--by", "NAME", "author; by default the user of this machine", dest="created_by"),
    switch("--dry-run", help="only show the changes"),
    switch("--force", help="replace files that others pushed meanwhile; the output names them"),
    JSON,
)
def _push(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Make the Markdown of a folder the next revision of a library, merged with later pushes of others.

    With NPL_MCP_URL and NPL_MCP_TOKEN a server pushes; the token needs the right (token add --push).
    """
    if not given.folder.is_dir():
        raise DocumentNotFoundError(f"{given.folder} is not a folder", hint="name an existing folder")
    name = given.folder.resolve().name if given.name is None else given.name
    by = _user() if given.created_by is None and not _is_served(settings) else given.created_by
    details = {"message": given.message, "created_by": by, "dry_run": given.dry_run, "force": given.force}
    with _libraries(settings) as libraries:
        done = libraries.push(given.folder, name, **details)
    also = {"merged": done.merged, "replaced": done.replaced}
    data = {"library": name, "revision": done.push.number, **asdict(done.push.difference), **also}
    lines = [_pushed(name, done.push, dry=given.dry_run)]
    lines += [f"{word} by others: {', '.join(paths)}" for word, paths in also.items() if paths]
    return CommandResult("\n".join(lines), data)


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the user has no name
        return None


def _pushed(name: str, done: Push, *, dry: bool) -> str:
    if not done.difference:
        return f"no change: {top_of(name, done.number)} has the same files"
    marks = {"+": done.difference.added, "~": done.difference.changed, "-": done.difference.removed}
    counts = _change_counts(*map(len, marks.values()))
    if not dry:
        return f"{top_of(name, done.number)}: {counts}"
    lines = [f"{mark} {path}" for mark, paths in marks.items() for path in paths]
    return "\n".join([*lines, f"{top_of(name, done.number + 1)} would be new: {counts}"])


def _change_counts(added: int, changed: int, removed: int) -> str:
    return f"{added:,} added, {changed:,} changed, {removed:,} removed"


@COMMANDS.add(
    "library pull",
    argument("name", help="the library, or a revision of it, e.g. docs@12"),
    argument("folder", type=path, help="folder; created if it does not exist"),
    switch("--force", help="also replace files that were changed in the folder"),
    JSON,
)
def _pull(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Write the files of a library into a folder."""
    ref = _library_ref(given.name, "docs or docs@12")
    with _libraries(settings) as libraries:
        done = libraries.pull(ref, given.folder, force=given.force)
    what = f"{len(done.written):,} written, {len(done.replaced):,} replaced, {len(done.removed):,} removed"
    kept = f", {len(done.kept):,} not replaced" if done.kept else ""
    name, number = done.revision.library, done.revision.number
    text = f"{top_of(name, number)}: {what}, {done.same:,} unchanged{kept}"
    return CommandResult(text, {**asdict(done), "library": name, "revision": number}, done.kept)


@COMMANDS.add("library list", JSON)
def _list_libraries(_: argparse.Namespace, settings: Settings) -> CommandResult:
    """List the libraries."""
    with stores_of(settings) as stores:
        found = stores.library.list()
    text = "\n".join(map(_library_line, found)) or "there is no library"
    return CommandResult(text, [asdict(revision) for revision in found])


@COMMANDS.add(
    "library log",
    argument("name", help="the library"),
    option("--limit", "N", f"maximum number of revisions, by default {LOG}", type=count, default=LOG),
    JSON,
)
def _log(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Show the revisions of a library, newest first."""
    ref = _library_ref(given.name, "docs")
    if ref.number is not None:
        problem = f"{given.name[:64]!r} names a revision"
        raise InvalidRequestError(problem, hint="write the library, e.g. docs")
    with stores_of(settings) as stores:
        found = stores.library.log(ref.library, given.limit)
    return CommandResult("\n".join(map(_revision_line, found)), [asdict(revision) for revision in found])


def _library_line(latest: LibraryRevision) -> str:
    size = f"{latest.bytes / 1e6:,.1f} MB"
    name = top_of(latest.library, None)
    return f"{name:<24} {latest.files:>9,} files {size:>12}  revision {latest.number:>5}  {_origin(latest)}"


def _revision_line(revision: LibraryRevision) -> str:
    what = _change_counts(revision.added, revision.changed, revision.removed)
    name = top_of(revision.library, revision.number)
    return f"{name}  {_origin(revision)}  {revision.files:,} files: {what}"


def _origin(revision: LibraryRevision) -> str:
    by = f" by {revision.created_by}" if revision.created_by else ""
    message = f": {revision.message}" if revision.message else ""
    return f"{revision.created_at[:16].replace('T', ' ')} UTC{by}{message}"


class ServedLibraries(LibraryStore):
    """The methods of a store that a pull and a push need, as calls of a server.

    Callers with a token need no access to the database.

    :param connection: connection to the server.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._states: dict[tuple[str, int], Files] = {}
        self._coming: dict[str, int] = {}
        self._contents: dict[str, bytes] = {}
        self._name = ""

    def revision(self, name: str, number: int | None = None, *_: Any) -> LibraryRevision:
        """Return a revision of a library."""
        try:
            state = self._connection.ask("library_state", name=name, number=number)
        except FailedCallError as error:
            if error.reply["error_code"] != "NOT_FOUND":
                raise
            kind = DocumentNotFoundError if number is None else NotFoundError
            raise kind(error.reply["error"]) from None
        revision = filled(LibraryRevision, {"created_by": None, "message": None, **state["revision"]})
        files = {path: LibraryFile(*file) for path, file in state["files"].items()}
        self._states[name, revision.number], self._name = files, name
        self._coming |= {file.digest: file.size for file in files.values()}
        return revision

    def files(self, revision: LibraryRevision) -> Files:
        """Return the files of a revision."""
        return self._states[revision.library, revision.number]

    def held(self, name: str) -> frozenset[tuple[str, str]]:
        """Return the pairs of path and digest of all revisions of a library."""
        return frozenset(map(tuple, self._connection.ask("library_state", name=name, held=True)["held"]))

    def content(self, path: str, digest: str) -> bytes:
        """Return the content of a file; the same call fetches contents of the next files."""
        if digest not in self._contents:
            self._coming.pop(digest, None)
            digests, size = [digest], 0
            for other, more in self._coming.items():
                if (size := size + more) > MAX_BYTES or len(digests) == MAX_FILES:
                    break
                digests.append(other)
            for fetched in digests:
                self._coming.pop(fetched, None)
            found = self._connection.ask("library_contents", name=self._name, digests=digests)
            self._contents |= {fetched: base64.b64decode(text) for fetched, text in found.items()}
        if digest not in self._contents:
            raise damaged_file(path)
        return self._contents.pop(digest)

    def push(
        self,
        name: str,
        files: Files,
        read: Callable[[str], bytes],
        *,
        expect: int | None = None,
        **details: Any,
    ) -> Push | None:
        """Create the next revision of a library."""
        known = self._states.get((name, expect or 0), {})
        if not details["dry_run"]:
            held = {file.digest for file in known.values()}
            fresh = (path for path, file in files.items() if file.digest not in held)
            for part in _encoded_parts((path, read(path)) for path in fresh):
                self._connection.ask("library_upload", name=name, contents=part)
        digests = {path: file.digest for path, file in files.items()}
        done = self._connection.ask("library_push", name=name, files=digests, expect=expect, **details)
        if "push" not in done:
            return None
        push = done["push"]
        return Push(push["number"], LibraryDifference(*(tuple(part) for part in push["difference"].values())))


def _encoded_parts(contents: Iterable[tuple[str, bytes]]) -> Iterator[dict[str, str]]:
    """Yield contents as base64, some megabytes at a time."""
    part: dict[str, str] = {}
    size = 0
    for file, data in contents:
        if part and (size + len(data) > MAX_BYTES or len(part) == MAX_FILES):
            yield part
            part, size = {}, 0
        part[file], size = base64.b64encode(data).decode(), size + len(data)
    if part:
        yield part
