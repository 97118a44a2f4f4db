"""Memory of the sections that callers have read; each later change of their text is reported once.

A caller's memory holds a digest of each line, and forgets the oldest documents first. A call compares the
states of a few documents, and reads only those that have changed.
"""

from __future__ import annotations

import os
import re
import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any
from zlib import crc32

from cachetools import LRUCache

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.values import Tailored
from npl_index.errors import DocumentError, NotFoundError, NPLError
from npl_index.library.documents import Fingerprint, Found
from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select

CALLERS = 256
CALLER_BYTES = 64 * 1024
"""Size of one caller's memory."""

LOOKS = 20
"""Files whose state a call compares, besides those that it reads: a comparison takes some microseconds."""

_ENTRY_BYTES = 200
_PIECE = re.compile(r"\[lines=[0-9]{1,9}-[0-9]{1,9}\]$")

Place = tuple[str, str]
"""Path of a root, and of a document below it."""


@dataclass
class HeldDocument:
    """A document of which a caller has read sections.

    :param found: the document.
    :param state: fingerprint of the document when it was read.
    :param names: names of the document in selectors.
    :param sections: digests of the lines of each section, by selector.
    """

    found: Found
    state: Fingerprint
    names: tuple[str, ...]
    sections: dict[str, array[int]] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """Location of the document."""
        return _place(self.found)

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return _ENTRY_BYTES + sum(_ENTRY_BYTES + 4 * len(lines) for lines in self.sections.values())


@dataclass(frozen=True)
class SectionChange:
    """A section that has changed since a caller read it.

    :param held: its document.
    :param selector: selector of the section.
    :param lines: digests of its current lines; empty if the section was removed.
    """

    held: HeldDocument
    selector: str
    lines: array[int]

    def __str__(self) -> str:
        """Return the selector with the numbers of added and removed lines."""
        before = self.held.sections[self.selector]
        blocks = SequenceMatcher(None, before, self.lines, autojunk=False).get_matching_blocks()
        same = sum(block.size for block in blocks)
        return f"{self.selector} +{len(self.lines) - same} −{len(before) - same}"


class ReadSections:
    """Memory of the sections that one caller has read; safe for several threads."""

    def __init__(self, readers: Readers) -> None:
        self._lock, self._readers, self._turn = threading.RLock(), readers, 0
        self._held: LRUCache[Place, HeldDocument] = LRUCache(CALLER_BYTES, lambda held: held.nbytes)

    def changes(self, app: Any, founds: Sequence[Found] = ()) -> list[SectionChange]:
        """Check some documents; return the sections that have changed since the caller read them.

        :param founds: documents with known states; other files are looked at in turn.
        """
        if not self._held:
            return []
        with self._lock:
            present = self._readers.places(founds)
            held = list(self._held.values())
            stored = [(one, now) for one in held if not _is_file(one) and (now := present.get(one.place))]
            files = [(one, one.found) for one in held if _is_file(one)]
            self._turn = (self._turn + LOOKS) % len(files) if len(files) > LOOKS else 0
            looked = (*stored, *(*files[self._turn :], *files[: self._turn])[:LOOKS])
            return [change for one, now in looked for change in self._changed(app, one, now)]

    def _changed(self, app: Any, held: HeldDocument, now: Found) -> Iterable[SectionChange]:
        try:
            state = app.documents.stat(now)
            if state == held.state:
                return ()
            tree: SectionTree | None = app.indexed_document(now, state).collection.documents[0].tree
        except (DocumentError, NotFoundError):
            state, tree = held.state, None
        changes = [
            SectionChange(held, selector, _lines_of(tree, selector, held)) for selector in held.sections
        ]
        changed = [one for one in changes if one.lines != held.sections[one.selector]]
        held.found = now
        if not changed:
            held.state = state
        return changed

    def told(self, changes: Iterable[SectionChange]) -> None:
        """Update the remembered text of sections whose changes were reported."""
        with self._lock:
            for one in changes:
                if one.lines:
                    one.held.sections[one.selector] = one.lines
                else:
                    one.held.sections.pop(one.selector, None)

    def remember(self, app: Any, founds: Sequence[Found], documents: DocumentSet, answer: Tailored) -> None:
        """Remember the sections of an answer.

        :param founds: locations of its documents.
        """
        numbers = {file: number for number, file in enumerate(documents.files)}
        with self._lock:
            for row in answer.sections:
                number = numbers[row.file] if row.file else 0
                found, tree = founds[number], documents.tree(number)
                held = self._held.pop(_place(found), None)
                names = (documents.files[number], *documents.aliases[number])
                if held is None:
                    held = HeldDocument(found, app.documents.stat(found), names)
                span = Span(row.start_line - 1, row.end_line - 1)
                selector = _PIECE.sub("", row.selector)
                if selector != row.selector:  # the answer has a part; the whole is compared
                    span = next(one.whole for one in tree.sections if one.own.stop > span.start)
                held.sections.pop(selector, None)
                held.sections[selector] = _digests(tree, [span])
                while held.nbytes > CALLER_BYTES:
                    del held.sections[next(iter(held.sections))]
                self._held[held.place] = held

    def record_own_edit(self, app: Any, file: str, selector: str) -> None:
        """Treat the caller's own edit of a section as reported."""
        with self._lock:
            for held in [one for one in self._held.values() if file in one.names]:
                changes = self._changed(app, held, held.found)
                # After a deletion, the selector is that of the section above.
                self.told(one for one in changes if not one.lines or _related(one.selector, selector))


class Readers:
    """The memories of all callers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: LRUCache[str, ReadSections] = LRUCache(CALLERS)
        self._places: tuple[Sequence[Found], Mapping[Place, Found]] = ((), {})

    def of(self, caller: str) -> ReadSections:
        """Return a caller's memory."""
        with self._lock:
            return self._readers.setdefault(caller, ReadSections(self))

    def places(self, founds: Sequence[Found]) -> Mapping[Place, Found]:
        """Return documents by their places; those of a set are the same object as long as it is the same."""
        known, places = self._places
        if known is not founds:
            places = {_place(one): one for one in founds}
            self._places = founds, places
        return places


def _place(found: Found) -> Place:
    return found.root.path, found.path


def _is_file(held: HeldDocument) -> bool:
    return held.found.root.path.startswith(os.sep)


def _related(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _lines_of(tree: SectionTree | None, selector: str, held: HeldDocument) -> array[int]:
    """Return the digests of the lines that a selector selects now."""
    if tree is None:
        return array("I")
    try:
        selected = select((tree,), compile_selector(selector), names=[held.names])
    except NPLError:
        return array("I")
    return _digests(tree, [tree.sections[index].own for one in selected for index in one.sections])


def _digests(tree: SectionTree, spans: Sequence[Span]) -> array[int]:
    """Return a digest of each line that is not blank."""
    lines = (line for span in spans for line in tree.text(span).split("\n") if line.strip())
    return array("I", (crc32(line.encode("utf-8", "surrogatepass")) for line in lines))
