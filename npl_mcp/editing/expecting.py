"""What changed between the state that a caller has read and the present one."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping

from cachetools import LRUCache

from npl_index.errors import DocumentError, InvalidRequestError
from npl_index.markdown.digests import DIGEST_LENGTH, digest_of
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import ConflictError

_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")
_KEPT_BYTES = 16 * 1024 * 1024

Pieces = Callable[[bytes], Mapping[str, object]]
"""Divides a file into its parts, by what messages call them."""


class Seen:
    """What files held when callers were given digests, the last ones; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[str, bytes] = LRUCache(_KEPT_BYTES, len)

    def noted(self, data: bytes, section: bytes | None = None) -> str:
        """Return the digest of a file or of a section, for a caller, and keep what the file held."""
        digest = digest_of(data if section is None else section)
        self.remember(digest, data)
        return digest

    def remember(self, digest: str, data: bytes) -> None:
        """Keep what a file held when a caller was given a digest of it or of a section."""
        with self._lock:
            if len(data) <= self._kept.maxsize:
                self._kept[digest] = data

    def recall(self, digest: str) -> bytes | None:
        """Return what a file held when a caller was given a digest, if it is still known."""
        with self._lock:
            return self._kept.get(digest)


class Expected:
    """The state that a caller believes a file, or a section of it, to have.

    :param expect: its digest; ``None`` stands for any state.
    :param seen: what files held before.
    :param pieces: divides the file, to say what has changed.
    :raises InvalidRequestError: it is no digest.
    """

    def __init__(self, expect: str | None, seen: Seen, pieces: Pieces) -> None:
        self._expect = None if expect is None else checks.line(expect, "expect").lower()
        if self._expect is not None and _DIGEST.fullmatch(self._expect) is None:
            raise InvalidRequestError(
                f"expect is {self._expect[:64]!r}, which is no digest",
                parameter="expect",
                hint="give the digest of the answer you have read",
            )
        self._seen, self._pieces = seen, pieces

    def check(self, label: str, data: bytes, section: bytes | None = None) -> None:
        """Refuse a file that is in another state.

        :param label: what messages call it.
        :param section: bytes of the section that the call is about; it is enough that these are the same.
        :raises ConflictError: says what has changed.
        """
        states = {digest_of(part) for part in (data, section) if part is not None}
        if self._expect is None or self._expect in states:
            return
        old = self._seen.recall(self._expect)
        changes = [] if old is None else _differences(old, data, self._pieces)
        changed = f": {checks.some(changes)}" if changes else ""
        raise ConflictError(
            f"{label} has changed since you read it{changed}",
            hint="read it again, and give the digest with the selector that it came with",
        )


def _differences(old: bytes, new: bytes, pieces: Pieces) -> list[str]:
    """Return which parts differ between two states of a file; empty if one cannot be read."""
    try:
        before, after = pieces(old), pieces(new)
    except DocumentError:
        return []
    changed = [
        f"{name} {'is new' if name not in before else 'is gone' if name not in after else 'changed'}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    return changed or ["its form"]
