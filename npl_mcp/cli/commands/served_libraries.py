"""Libraries of a server, for callers with a token but without the database."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from npl_index.errors import DocumentNotFoundError, NotFoundError
from npl_mcp.cli.terminal.display import FailedCallError
from npl_mcp.cli.transports.connecting import ServerConnection
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

MAX_BYTES = 1_000_000
"""Bytes of contents in one call, unless one file has more."""

MAX_FILES = 1_000


class ServedLibraries(LibraryStore):
    """The methods of a store that a pull and a push need, as calls of a server.

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
    for path, data in contents:
        if part and (size + len(data) > MAX_BYTES or len(part) == MAX_FILES):
            yield part
            part, size = {}, 0
        part[path], size = base64.b64encode(data).decode(), size + len(data)
    if part:
        yield part
