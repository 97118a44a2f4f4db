"""Change one section of a change request's file: its body by section, and when that was."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from cachetools import LRUCache

from npl_index.markdown.front_matter import values, with_values
from npl_index.markdown.incremental import PieceReader
from npl_mcp.changes.format import DATES, divide, now
from npl_mcp.changes.sections import Outline, outline
from npl_mcp.editing.expecting import Expected
from npl_mcp.editing.folders import shown
from npl_mcp.editing.sections import SectionEdit

_TREES_BYTES = 32 * 1024 * 1024
_TREE_COST = 12  # bytes of memory per byte of text, about


class Outlines:
    """Outlines of texts, those used last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reader = PieceReader(_TREES_BYTES)
        self._kept: LRUCache[bytes, Outline] = LRUCache(
            _TREES_BYTES, lambda kept: _TREE_COST * len(kept.tree.source)
        )

    def of(self, body: bytes) -> Outline:
        """Return a text's outline; it is read unless it is remembered."""
        with self._lock:
            kept = self._kept.get(body)
        if kept is None:
            kept = outline(self._reader.read(body, "the change request"))
            with self._lock:
                if _TREE_COST * len(kept.tree.source) <= self._kept.maxsize:
                    self._kept[body] = kept
        return kept

    def pieces(self, data: bytes) -> Mapping[str, object]:
        """Return the fields of a file by name, and the own text of its sections by path."""
        front, body = parts(data)
        pieces: dict[str, object] = {shown(name[:64]): value for name, value in values(front).items()}
        pieces.pop("lastModified", None)
        found = self.of(body)
        for place in found.places:
            span = found.tree.sections[place.index].own_bytes
            pieces[f"section {place.shown[:200]!r}"] = body[span.start : span.stop].strip()
        return pieces


class RequestEdit:
    """Changes one section of a change request's file; see :class:`~npl_mcp.editing.sections.SectionEdit`.

    Afterwards ``address`` is the section's new path, ``written`` are its new bytes, and ``removed`` are the
    headings of subsections that are gone.

    :param expected: the state that the file or the section is believed to have.
    """

    def __init__(
        self, outlines: Outlines, key: str, wanted: str, operation: str, text: str, expected: Expected
    ) -> None:
        def find(found: Outline) -> int:
            return found.find(wanted, key, whole=operation == "replace").index

        def check(section: bytes) -> None:
            expected.check(key, self._data, section)

        self._edit = SectionEdit(outlines.of, find, operation, text, key, check=check)

    def __call__(self, data: bytes) -> bytes:
        """Return the file's new bytes; see :meth:`SectionEdit.__call__`."""
        self._data = data
        front, body = parts(data)
        edited = self._edit(body)
        if edited != body:
            front = with_values(front, {"lastModified": now()}, add=False, bare=DATES)
        return front.encode() + edited

    @property
    def address(self) -> str:
        """The path of the section."""
        return self._edit.after.address(self._edit.index)

    @property
    def removed(self) -> tuple[str, ...] | None:
        """The headings of subsections that are gone."""
        return self._edit.removed

    @property
    def written(self) -> bytes:
        """The bytes of the section."""
        return self._edit.written


def parts(data: bytes) -> tuple[str, bytes]:
    """Divide a file into front matter and body, such that the body alone has the same sections."""
    front, body = divide(data)
    # A body that begins with --- would itself be taken for front matter.
    return ("", data) if body.startswith(b"---") else (front, body)
