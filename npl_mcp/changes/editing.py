"""Change one section of a change request in its file's bytes, also while other programs write to the file."""

from __future__ import annotations

import threading
from collections.abc import Callable

from cachetools import LRUCache

from npl_index.errors import InvalidRequestError
from npl_index.markdown.editing import RESTRUCTURE, append_text, prepend_text, replace_text
from npl_index.markdown.front_matter import with_values
from npl_index.markdown.incremental import PieceReader
from npl_index.markdown.sections import SectionTree, parse_sections
from npl_mcp.changes.format import DATES, divide, is_visible, now
from npl_mcp.changes.sections import Outline, Place, outline
from npl_mcp.stores.base.errors import ConflictError

_EDITS = {"replace": replace_text, "append": append_text, "prepend": prepend_text}
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

    def tree(self, body: bytes) -> SectionTree:
        """Return the tree of a text; see :meth:`of`."""
        return self.of(body).tree


class SectionEdit:
    """Changes one section of a file.

    It may be called again when the file was changed by another program: the section is then changed only if
    that program left it as it was. Afterwards ``place`` is the section, ``address`` its new path and
    ``written`` its new bytes.

    :param check: called with the file and the section when that is found.
    """

    place: Place
    address: str
    written: bytes

    def __init__(
        self,
        outlines: Outlines,
        key: str,
        wanted: str,
        how: str,
        text: str,
        check: Callable[[bytes, bytes], None] | None = None,
    ) -> None:
        self._outlines = outlines
        self._key = key
        self._wanted = wanted
        self._how = how
        self._text = text
        self._check = check
        self._before: bytes | None = None

    def __call__(self, data: bytes) -> bytes:
        """Return the file's new bytes.

        :raises ConflictError: the section is not what it was at the first call.
        """
        front, body = parts(data)
        shown = self._outlines.of(body)
        self.place = place = self._found(shown, body, data)
        options: dict[str, bool] = {}
        if self._how == "replace" and place.index == shown.tree.title and not self._has_sections(place):
            options["whole"] = False
        try:
            edited = _EDITS[self._how](
                body, shown.tree, place.index, self._text, parse=self._outlines.tree, **options
            )
        except InvalidRequestError as error:
            hint = _hint(shown, place) if error.hint == RESTRUCTURE else error.hint
            raise InvalidRequestError(error.message, parameter="content", hint=hint) from None
        after = self._outlines.of(edited)
        changed = next(other for other in after.places if other.index == place.index)
        if self._is_named(shown, place) and not self._is_named(after, changed):
            raise InvalidRequestError(
                "the content begins with a heading without text", parameter="content", hint="give it a name"
            )
        self.address = changed.address
        self.written = bytes_of(after, changed, edited)
        if edited != body:
            front = with_values(front, {"lastModified": now()}, add=False, bare=DATES)
        return front.encode() + edited

    def _found(self, shown: Outline, body: bytes, data: bytes) -> Place:
        if self._before is None:
            place = shown.find(self._wanted, self._key, whole=self._how == "replace")
            before = bytes_of(shown, place, body)
            if self._check is not None:
                self._check(data, before)
            self._before = before
            return place
        same = shown.at(self.place.address)
        if same is None or bytes_of(shown, same, body) != self._before:
            raise ConflictError(
                f"the section {self.place.shown!r} of {self._key} was changed by another program just now",
                hint="read it again, then try again",
            )
        return same

    def _has_sections(self, place: Place) -> bool:
        """Return whether the text has sections below its heading; if not, those below a title stay."""
        text = parse_sections(self._text.encode(), "")
        return any(section.level > place.level for section in text.sections)

    def _is_named(self, shown: Outline, place: Place) -> bool:
        return is_visible(shown.tree.sections[place.index].name)


def bytes_of(shown: Outline, place: Place, body: bytes) -> bytes:
    """Return a section's bytes, its heading and its subsections included."""
    span = shown.tree.sections[place.index].whole_bytes
    return body[span.start : span.stop]


def _hint(shown: Outline, place: Place) -> str:
    above = next(
        (other for other in reversed(shown.places[: place.index]) if other.level < place.level), None
    )
    deeper = f"use headings of level {place.level + 1} or lower" if place.level < 6 else "use no headings"
    return deeper if above is None else f"{deeper}, or append a new section to {above.shown!r}"


def parts(data: bytes) -> tuple[str, bytes]:
    """Divide a file into front matter and body, such that the body alone has the same sections."""
    front, body = divide(data)
    # A body that begins with --- would itself be taken for front matter.
    return ("", data) if body.startswith(b"---") else (front, body)
