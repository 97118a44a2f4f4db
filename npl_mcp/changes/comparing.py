"""What changed between the state a caller has read and the present one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from npl_index.errors import DocumentError, InvalidRequestError
from npl_index.markdown.front_matter import values
from npl_mcp.changes.editing import Outlines, parts
from npl_mcp.changes.files import shown
from npl_mcp.changes.format import some
from npl_mcp.changes.index import DIGEST_LENGTH, TicketIndices, digest_of
from npl_mcp.changes.sections import Outline
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import ConflictError

_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")


class Expected:
    """The state that a caller believes a file, or a section of it, to have.

    :param expect: its digest; ``None`` stands for any state.
    :raises InvalidRequestError: it is no digest.
    """

    def __init__(self, expect: str | None, indices: TicketIndices, outlines: Outlines) -> None:
        self._expect = None if expect is None else checks.line(expect, "expect").lower()
        if self._expect is not None and _DIGEST.fullmatch(self._expect) is None:
            raise InvalidRequestError(
                f"expect is {self._expect[:64]!r}, which is no digest",
                parameter="expect",
                hint="give the digest of the answer you have read",
            )
        self._indices = indices
        self._outlines = outlines

    def check(self, key: str, data: bytes, section: bytes | None = None) -> None:
        """Refuse a file that is in another state.

        :param section: bytes of the section that the call is about; it is enough that these are the same.
        :raises ConflictError: says what has changed.
        """
        states = {digest_of(part) for part in (data, section) if part is not None}
        if self._expect is None or self._expect in states:
            return
        old = self._indices.recall(self._expect)
        changes = [] if old is None else differences(old, data, self._outlines)
        changed = f": {some(changes)}" if changes else ""
        raise ConflictError(f"{key} has changed since you read it{changed}", hint="read it again")


def differences(old: bytes, new: bytes, outlines: Outlines) -> list[str]:
    """Return which fields and sections differ between two states of a file; empty if one cannot be read."""
    try:
        before, after = (_pieces(data, outlines) for data in (old, new))
    except DocumentError:
        return []
    changed = [
        f"{name} {'is new' if name not in before else 'is gone' if name not in after else 'changed'}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    return changed or ["its form"]


def _pieces(data: bytes, outlines: Outlines) -> Mapping[str, object]:
    """Return fields by name, and the own text of sections by path."""
    front, body = parts(data)
    pieces: dict[str, object] = {shown(name[:64]): value for name, value in values(front).items()}
    pieces.pop("lastModified", None)
    found: Outline = outlines.of(body)
    for place in found.places:
        span = found.tree.sections[place.index].own_bytes
        pieces[f"section {place.shown[:200]!r}"] = body[span.start : span.stop].strip()
    return pieces
