"""Change one section of a file, as the caller expects it, also while other programs write to the file.

:mod:`npl_index.markdown.editing` splices the bytes; here the section is found, and compared with what
the caller has read.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Generic, Literal, Protocol, TypeVar, get_args

from cachetools import LRUCache

from npl_index.errors import DocumentError, InvalidRequestError
from npl_index.markdown.digests import DIGEST_LENGTH, digest_of
from npl_index.markdown.editing import edit_section
from npl_index.markdown.front_matter import values
from npl_index.markdown.incremental import PieceReader
from npl_index.markdown.sections import SectionTree
from npl_index.selectors.labels import is_visible
from npl_mcp.documents.folders import shown
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import ConflictError

Edit = Literal["replace", "append", "prepend"]
EDITS: tuple[str, ...] = get_args(Edit)
DELETE = "delete"

MAX_SECTION_TEXT = 500_000
"""Characters of a text for a section."""

_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")
_SEEN_BYTES = 16 * 1024 * 1024
_PIECES_BYTES = 32 * 1024 * 1024
_NAMED = 10
_STAMP = "lastModified"


class Named(Protocol):
    """The sections of a text, and how messages name them."""

    @property
    def tree(self) -> SectionTree:
        """The sections."""
        ...

    def shown(self, index: int) -> str:
        """Return the name of a section; ``""`` for the text above all sections."""
        ...


Names = TypeVar("Names", bound=Named)


class Editor:
    """What all callers share: parsed pieces of texts, and the last contents of which digests were given.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: LRUCache[str, bytes] = LRUCache(_SEEN_BYTES, len)
        self.reader = PieceReader(_PIECES_BYTES)

    def noted(self, data: bytes, section: bytes | None = None) -> str:
        """Return the digest of a file or of a section, for a caller, and keep the content of the file."""
        digest = digest_of(data if section is None else section)
        with self._lock:
            if len(data) <= self._seen.maxsize:
                self._seen[digest] = data
        return digest

    def seen(self, digest: str) -> bytes | None:
        """Return the file content with this digest, if it is still cached."""
        with self._lock:
            return self._seen.get(digest)


class Expected(Generic[Names]):
    """The state that a caller believes a file, or a section of it, to have.

    :param editor: knows earlier contents.
    :param label: what messages call the file.
    :param read: returns the sections of a content.
    :param names: names the sections of a tree.
    :param expect: a digest; ``None`` stands for any state.
    :raises InvalidRequestError: it is not a digest.
    """

    def __init__(
        self,
        editor: Editor,
        label: str,
        read: Callable[[bytes], SectionTree],
        names: Callable[[SectionTree], Names],
        expect: str | None,
    ) -> None:
        self.editor, self.label, self.read, self.names = editor, label, read, names
        self.digest = None if expect is None else checks.line(expect, "expect").lower()
        if self.digest is not None and _DIGEST.fullmatch(self.digest) is None:
            raise InvalidRequestError(
                f"expect is {self.digest[:64]!r}, which is no digest",
                parameter="expect",
                hint="give the digest of the answer you have read",
            )

    def check(self, data: bytes, section: bytes | None = None) -> None:
        """Refuse a file that is in another state.

        :param section: bytes of the section that the call is about; it is enough that these are the same.
        :raises ConflictError: says what has changed.
        """
        states = {digest_of(part) for part in (data, section) if part is not None}
        if self.digest is None or self.digest in states:
            return
        old = self.editor.seen(self.digest)
        changes = [] if old is None else self._differences(old, data)
        changed = f": {checks.some(changes)}" if changes else ""
        raise ConflictError(
            f"{self.label} has changed since you read it{changed}",
            hint="read it again, and give the digest with the selector that it came with",
        )

    def _differences(self, old: bytes, new: bytes) -> list[str]:
        """Return which parts differ between two states of the file; empty if one cannot be read."""
        try:
            before, after = dict(self._parts(old)), dict(self._parts(new))
        except DocumentError:
            return []
        changed = [
            f"{name} {'is new' if name not in before else 'is gone' if name not in after else 'changed'}"
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        ]
        return changed or ["its form"]

    def _parts(self, data: bytes) -> Iterator[tuple[str, object]]:
        """Yield the fields of the front matter and the own text of each section, with their names."""
        tree = self.read(data)
        names = self.names(tree)
        for name, value in values(f"---\n{tree.front_matter}").items():
            if name != _STAMP:
                yield shown(name[:64]), value
        for section in tree.sections:
            name = names.shown(section.index)[:200]
            own = bytes_of(tree, section.index, data, whole=False)
            yield repr(name) if name else "the text above all sections", own.strip()


class SectionEdit(Generic[Names]):
    """A change of one section of a text.

    It may be called again when another program wrote to the text: the section is then changed only if that
    program left it as it was. ``data`` is the text of the last call. After it ``edited`` is the section,
    ``index`` as well, unless it was deleted: then it is the section above. ``before`` and ``after`` are the
    named sections, and ``written`` are the new bytes of ``index``.

    :param expected: the state of the text.
    :param find: returns the section that is meant.
    :param operation: one of :data:`EDITS`, or :data:`DELETE`.
    :param text: for the section, at most :data:`MAX_SECTION_TEXT` characters.
    :param whole: the subsections belong to it; otherwise the text before them is changed.
    """

    data: bytes
    edited: int
    index: int
    before: Names
    after: Names
    written: bytes

    def __init__(
        self,
        expected: Expected[Names],
        find: Callable[[Names], int],
        operation: str,
        text: str,
        *,
        whole: bool = True,
    ) -> None:
        self._expected, self._find, self._whole = expected, find, whole
        self._operation, self._text = operation, text

    def __call__(self, data: bytes) -> bytes:
        """Return the text's new bytes.

        :raises InvalidRequestError: the text cannot stand there; says why, and what can.
        :raises ConflictError: the section is not as expected, or not what it was at the first call.
        """
        expected, tree = self._expected, self._expected.read(data)
        self.data, self.before = data, expected.names(tree)
        self.index = self.edited = index = self._find(self.before)
        section = bytes_of(tree, index, data, whole=self._whole)
        expected.check(data, section)
        expected.digest = expected.editor.noted(data, section)
        edited, after = edit_section(
            data, tree, index, self._operation, self._text, expected.read, whole=self._whole
        )
        if self._operation == DELETE:
            self.index = index = tree.sections[index].parent or 0
        if is_visible(tree.sections[index].name) and not is_visible(after.sections[index].name):
            problem = "the content begins with a heading without text"
            raise InvalidRequestError(problem, parameter="content", hint="give it a name")
        self.after = expected.names(after)
        self.written = bytes_of(after, index, edited, whole=self._whole)
        return edited

    @property
    def removed(self) -> tuple[str, ...] | None:
        """Headings of the sections below ``index`` that are gone, of many the first ones and ``…``."""
        now = Counter(_headings(self.after.tree, self.index))
        gone = list((Counter(_headings(self.before.tree, self.index)) - now).elements())
        return tuple(gone[:_NAMED] + ["…"] * (len(gone) > _NAMED)) or None


def bytes_of(tree: SectionTree, index: int, data: bytes, *, whole: bool = True) -> bytes:
    """Return a section's bytes, its heading included.

    :param whole: the subsections as well.
    """
    section = tree.sections[index]
    span = section.whole_bytes if whole else section.own_bytes
    return data[span.start : span.stop]


def _headings(tree: SectionTree, index: int) -> Iterator[str]:
    """Yield the headings below a section."""
    for one in tree.subtree(index)[1:]:
        section = tree.sections[one]
        yield f"{'#' * section.level} {section.name}"
