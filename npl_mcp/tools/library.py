"""Libraries for command lines that pull and push through a server; agents do not see these tools."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from npl_index.errors import InvalidRequestError
from npl_index.markdown.sections import decoded
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import identity
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import NotAllowedError
from npl_mcp.stores.library.libraries import LibraryFile, LibraryRevision, Push
from npl_mcp.tools.contract.parameters import Check, Name, Whole
from npl_mcp.tools.contract.spec import ToolSpec, not_listed

MAX_CONTENTS = 1_000
"""Contents in one call; commands send some megabytes at a time."""

Contents = Annotated[dict[str, str], "Base64 by path or digest"]


@dataclass(frozen=True, slots=True)
class LibraryState:
    """A revision of a library with its files.

    :param revision: the revision.
    :param files: digest and size in bytes by path.
    :param held: pairs of path and digest of all revisions; only on request.
    """

    revision: LibraryRevision
    files: Mapping[str, tuple[str, int]]
    held: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True, slots=True)
class PushReply:
    """The result of a push.

    :param push: the push; absent if the current revision is not the expected one.
    """

    push: Push | None


def library_state(app: App, name: Name, number: Whole | None = None, held: bool = False) -> LibraryState:
    """Show the files of a library.

    :param name: name of the library.
    :param number: number of the revision; by default the current one.
    :param held: add the files of all revisions.
    :returns: a revision of a library with its files.
    :raises DocumentNotFoundError: there is no such library.
    :raises RecordNotFoundError: it has no such revision.
    """
    store = app.stores.library
    revision = store.revision(name, number, app.sight.has_library)
    files = {path: (file.digest, file.size) for path, file in store.files(revision).items()}
    return LibraryState(revision, files, tuple(sorted(store.held(name))) if held else None)


def library_contents(
    app: App, name: Name, digests: Annotated[list[str], Check(checks.few, MAX_CONTENTS)]
) -> dict[str, str]:
    """Return contents of a library's files.

    :param name: name of the library.
    :param digests: digests of the contents.
    :returns: base64 by digest; contents that the library never had are left out.
    :raises DocumentNotFoundError: there is no such library.
    """
    store = app.stores.library
    store.revision(name, None, app.sight.has_library)
    own = {digest for _, digest in store.held(name)}.intersection(digests)
    return {digest: base64.b64encode(data).decode() for digest, data in store.contents(own).items()}


def library_upload(app: App, name: Name, contents: Contents) -> int:
    """Store contents for a push.

    :param name: name of the library.
    :param contents: base64 by path.
    :returns: number of stored contents.
    :raises NotAllowedError: the token may not push the library.
    :raises UnreadableDocumentError: a content is not Markdown.
    """
    _check_pusher(name)
    texts = []
    for path, encoded in contents.items():
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidRequestError(f"{path[:64]!r} is not base64", parameter="contents") from None
        if len(data) > app.settings.limits.max_bytes:
            raise InvalidRequestError(f"{path[:64]!r} is too large to be searched", parameter="contents")
        decoded(data, path[:64])
        texts.append(data)
    app.stores.library.upload(texts)
    return len(texts)


def library_push(
    app: App,
    name: Name,
    files: Annotated[dict[str, Any], "Digest of each path"],
    expect: Whole,
    message: str | None = None,
    created_by: Name | None = None,
    dry_run: bool = False,
) -> PushReply:
    """Make uploaded contents the next revision of a library.

    :param name: name of the library.
    :param expect: number of the current revision; 0 for a new library.
    :param message: description of the revision.
    :param created_by: author of the revision.
    :param dry_run: only return the changes.
    :returns: the result of a push.
    :raises NotAllowedError: the token may not push the library.
    :raises InvalidRequestError: a content was not uploaded.
    """
    _check_pusher(name)
    store = app.stores.library
    sizes = store.sizes({str(digest) for digest in files.values()})
    missing = [] if dry_run else [path for path, digest in files.items() if str(digest) not in sizes]
    if missing:
        raise InvalidRequestError(f"{checks.some(missing)} was not uploaded", parameter="files")
    every = {path: LibraryFile(str(digest), sizes.get(digest, 0)) for path, digest in files.items()}
    details: dict[str, Any] = {"message": message, "created_by": created_by, "dry_run": dry_run}
    # All contents are stored, so the store reads none.
    return PushReply(store.push(name, every, lambda _: b"", **details, expect=expect))


def _check_pusher(name: str) -> None:
    """Check that the caller may push a library.

    :raises NotAllowedError: its token has no such right.
    """
    who = identity()
    if who is not None and name not in who.pushes:
        hint = f"npl-mcp token add NAME --push {name} creates a token that may"
        raise NotAllowedError(f"the token of {who.name!r} may not push library {name[:64]}", hint=hint)


TOOLS = (
    *not_listed(library_state, library_contents, lane="heavy"),
    ToolSpec(library_upload, listed=False, lane="heavy", read_only=False),
    ToolSpec(library_push, listed=False, lane="heavy", read_only=False, idempotent=False),
)
