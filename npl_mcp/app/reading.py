"""Memory of the sections that callers have read; each later change of their text is reported once.

A caller's memory holds a digest of each section, and forgets the oldest sections first. A call compares the
states of a few documents, and reads only those that have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cachetools import FIFOCache

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.marks import change_marks
from npl_index.answer.units import AnswerUnit
from npl_index.errors import DocumentError, NotFoundError, NPLError
from npl_index.library.documents import DocumentFile, Fingerprint
from npl_index.markdown.sections import SectionTree, digest_of
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select

CALLER_BYTES = 64 * 1024
"""Size of one caller's memory."""

LOOKS = 20
"""Documents whose state a call compares: a comparison takes some microseconds."""

MAX_TOKENS = 60
"""Maximum tokens of the report in an answer; at most a quarter of a budget is used for it."""

_ENTRY_BYTES = 200


@dataclass(frozen=True, slots=True)
class ReadSection:
    """A section as a caller has read it.

    :param document: its document.
    :param names: names of the document in selectors.
    :param selector: selector of the section.
    :param state: fingerprint of the document with this text; ``None`` for a removed document.
    :param digest: digest of the text; ``None`` for a removed section.
    """

    document: DocumentFile
    names: tuple[str, ...]
    selector: str
    state: Fingerprint | None
    digest: str | None

    @property
    def place(self) -> tuple[str, str]:
        """Path of the document's root, and of the document below it."""
        return self.document.root.path, self.document.path


def read_sections_of(documents: DocumentSet, kept: Iterable[AnswerUnit]) -> list[ReadSection]:
    """Return the sections of an answer in the state that it was made from; a piece stands for its section.

    :param kept: units of the answer.
    """
    sections = []
    for unit in kept:
        number, index = unit.parts[0].place
        tree, names = documents.tree(number), (documents.path(number), *documents.aliases[number])
        selector = documents.selector((number, index), own=len(unit.parts) == 1)
        state = documents.document(number).document.fingerprint
        digest = _digest(tree, selector, index)
        sections.append(ReadSection(documents.locations[number], names, selector, state, digest))
    return sections


class ReadSections:
    """Memory of the sections that one caller has read; safe for several threads."""

    def __init__(self) -> None:
        self._lock, self._turn = threading.RLock(), 0
        self._read: FIFOCache[tuple[tuple[str, str], str], ReadSection] = FIFOCache(
            CALLER_BYTES, lambda section: _ENTRY_BYTES + len(section.selector)
        )

    def remember(self, sections: Iterable[ReadSection]) -> None:
        """Remember sections as the caller has read them, and forget removed ones."""
        with self._lock:
            for section in sections:
                key = section.place, section.selector
                if section.digest is None:
                    self._read.pop(key, None)
                else:
                    self._read[key] = section

    def changes(self, app: Any) -> list[ReadSection]:
        """Return the present state of sections that have changed; documents are looked at in turn."""
        with self._lock:
            documents = self._by_document()
            first = self._turn if self._turn < len(documents) else 0
            self._turn = first + LOOKS
            looked = [*documents[first:], *documents[:first]][:LOOKS]
            return [change for read in looked for change in self._changed(app, read)]

    def _by_document(self) -> list[list[ReadSection]]:
        """Return the sections of each document."""
        documents: dict[tuple[str, str], list[ReadSection]] = {}
        for section in self._read.values():
            documents.setdefault(section.place, []).append(section)
        return list(documents.values())

    def _changed(self, app: Any, read: Sequence[ReadSection]) -> Iterator[ReadSection]:
        """Yield the present state of the changed ones among sections of one document."""
        document, state = read[0].document, None
        tree: SectionTree | None = None
        try:
            state = document.stat()
            if all(section.state == state for section in read):
                return
            tree = app.documents.indexed_document(document, state).collection.documents[0].tree
        except (DocumentError, NotFoundError):
            pass
        for section in read:
            digest = None if tree is None else _present_digest(tree, section)
            present = replace(section, state=state, digest=digest)
            if digest == section.digest:
                self.remember([present])
            else:
                yield present

    def record_own_edit(self, app: Any, file: str, selector: str) -> None:
        """Treat the caller's own edit of a section as reported."""
        with self._lock:
            own = [read for read in self._by_document() if any(file in section.names for section in read)]
            changes = [change for read in own for change in self._changed(app, read)]
            # After a deletion, the selector is that of the section above.
            for new in changes:
                related = new.selector.startswith(selector) or selector.startswith(new.selector)
                if new.digest is None or related:
                    self.remember([new])


def report_changes(app: Any, budget: int | None = None) -> tuple[str, ...] | None:
    """Return the selectors of changed sections that fit into an answer; later answers report the others.

    :param budget: tokens of the whole answer.
    """
    if app.read_sections is None:
        return None
    most = MAX_TOKENS if budget is None else min(MAX_TOKENS, budget // 4)
    reported: list[ReadSection] = []
    for change in app.read_sections.changes(app):
        marks = change_marks([*(section.selector for section in reported), change.selector])
        if app.counter.upper_bound(app.counter.count(marks)) <= most:
            reported.append(change)
    app.when_delivered.append(partial(app.read_sections.remember, reported))
    return tuple(section.selector for section in reported) or None


def _present_digest(tree: SectionTree, section: ReadSection) -> str | None:
    """Return the digest of a section's present text; ``None`` if the section was removed."""
    try:
        selected = select((tree,), compile_selector(section.selector), names=[section.names])
    except NPLError:
        return None
    return _digest(tree, section.selector, selected[0].head)


def _digest(tree: SectionTree, selector: str, index: int) -> str:
    """Return the digest of a section's text.

    :param selector: its selector; with a depth it selects only the section's own text.
    """
    section = tree.sections[index]
    span = section.whole if compile_selector(selector).depth is None else section.own
    return digest_of(tree.text(span).encode("utf-8", "surrogatepass"))
