"""Documents of the index that are ranked together."""

from __future__ import annotations

import json
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Collection as Collection_
from contextlib import contextmanager

from cachetools import LRUCache

from npl_index.cached import cached_property
from npl_index.errors import DocumentNotFoundError, UnreadableDocumentError
from npl_index.index.asking import MAX_WORDS, DocumentScope, IndexNames, IndexVocabulary, candidates, holders
from npl_index.index.database import DamagedIndexError, IndexDatabase
from npl_index.index.driver import driver
from npl_index.index.writing import AMONG, unsealed
from npl_index.library.documents import Document, Fingerprint, Found
from npl_index.library.lazy import LazySequence
from npl_index.ranking.arrays import np
from npl_index.ranking.bm25f import Passages
from npl_index.ranking.indexing import Collection, ParsedDocument, restore_sections
from npl_index.ranking.postings import Postings, Sections

Read = Callable[[Found], Document]

_MAX_CACHED_ARRAYS = 512
"""Maximum documents whose sections are cached as arrays: the candidates, and some more in the answer."""


class DocumentChangedError(UnreadableDocumentError):
    """A document changed while an answer was being made from it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} changed while it was read", hint="try again")


class KeptDocuments:
    """The most recently used documents; safe for several threads.

    :param maxsize: maximum bytes of memory. A larger document is kept alone, to avoid repeated reading.
    """

    def __init__(self, maxsize: int) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[int, ParsedDocument] = LRUCache(maxsize, lambda one: min(one.nbytes, maxsize))

    def get(self, number: int) -> ParsedDocument | None:
        """Return the document with a number of the index, if it is cached."""
        with self._lock:
            return self._kept.get(number)

    def put(self, number: int, document: ParsedDocument) -> None:
        """Cache a document."""
        with self._lock:
            self._kept[number] = document


class IndexedCollection(Collection):
    """Some documents of the index.

    :param scope: numbers of the documents.
    :param founds: their files.
    :param states: observed states of the files.
    :param read: reader of a whole file.
    :param changed: called when other contents replaced some of them; the argument tells whether the index is
        damaged.
    """

    def __init__(
        self,
        database: IndexDatabase,
        scope: DocumentScope,
        founds: Sequence[Found],
        states: Sequence[Fingerprint],
        read: Read,
        kept: KeptDocuments,
        changed: Callable[[bool], None],
    ) -> None:
        self.database, self.scope, self.founds, self.states = database, scope, founds, states
        self._read, self._kept, self._changed = read, kept, changed
        self.names = IndexNames(database, scope)
        self._sections: dict[int, Sections] = {}

    @cached_property
    def vocabulary(self) -> IndexVocabulary:  # type: ignore[override]
        """The terms of the documents' roots."""
        return IndexVocabulary(self.database, self.scope)

    @cached_property
    def paths(self) -> Sequence[str]:  # type: ignore[override]
        """The absolute path of each document."""
        return [state.path for state in self.states]

    @property
    def documents(self) -> Sequence[ParsedDocument]:  # type: ignore[override]
        """The documents, each restored at its use."""
        # Not cached: a reference to the collection would delay its release.
        return LazySequence(len(self.founds), self.restored)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state of the collection within the context.

        :raises DocumentChangedError: the index is damaged, or has different content of a document.
        """
        try:
            with self.database.reading():
                yield
        except (DamagedIndexError, driver().DatabaseError) as error:
            self._changed(not isinstance(error, driver().OperationalError))
            raise DocumentChangedError(self.founds[0].path) from None

    def passages(self, terms: Sequence[str], also: Collection_[int] = ()) -> Passages:
        """Return the sections of the best documents, and of further ones."""
        with self.reading():
            self._check_current()
            rows: dict[int, None] = {}
            for term in terms:
                row = self.vocabulary.row(term)
                standing = self.vocabulary.variants(term) if row is None else ((row, 1.0),)
                rows.update((one, None) for one, _ in standing)
            pages = self.vocabulary.counts(np.array(list(rows), np.intp)).pages.tolist()
            asked = zip(self.vocabulary.texts(list(rows)), pages, strict=True)
            best = candidates(self.database, self.scope, list(asked))
            chosen = list(dict.fromkeys([*best, *sorted(also)])) or [0]
            numbers = self.scope.documents[chosen].tolist()
            select = f"SELECT id, terms FROM document WHERE id {AMONG}"
            packed = dict(self.database.rows(select, json.dumps(numbers)))
            taken: dict[int, Sections] = {}
            words = 0
            for place, number in zip(chosen, numbers, strict=True):
                if number not in packed:
                    raise self._lost(place)
                words += len(packed[number]) // 4
                if taken and words > MAX_WORDS and place not in also:
                    continue
                taken[place] = Sections.unpacked(unsealed(packed[number]))
        places, self._sections = sorted(taken), taken
        return Passages(np.array(places), Postings([taken[place] for place in places]), self.vocabulary)

    def holders(self, terms: Sequence[str]) -> Sequence[int]:
        """Return documents with all of some terms."""
        with self.reading():
            return holders(self.database, self.scope, terms)

    def _check_current(self) -> None:
        """Check that the index still has the documents; another process may have replaced some."""
        if not self._is_current():
            ((there,),) = self.database.rows(
                f"SELECT count(*) FROM document WHERE id {AMONG}", self.scope.numbers
            )
            if there < len(self.scope.documents):
                raise self._lost(0)

    def _lost(self, place: int) -> DocumentChangedError:
        """Return the error for a document with different content in the index."""
        self._changed(self._is_current())
        return DocumentChangedError(self.founds[place].path)

    def _is_current(self) -> bool:
        """Return whether the roots are unchanged, so that missing documents are lost."""
        rows = self.database.rows(
            f"SELECT id, version FROM root WHERE id {AMONG} ORDER BY id", self.scope.roots
        )
        return tuple(rows) == self.scope.version

    def sections(self, document: int) -> Sections:
        """Return the sections of a document as arrays."""
        kept = self._sections.get(document)
        if kept is None:
            kept = Sections.unpacked(self._column(document, "terms")[0])
            if len(self._sections) >= _MAX_CACHED_ARRAYS:
                self._sections = {}
            self._sections[document] = kept
        return kept

    def heading_counts(self) -> Sequence[int]:
        """Return the number of headings of each document, by one query."""
        with self.reading():
            select = f"SELECT document, sections - 1 FROM file WHERE root {AMONG}"
            counts = dict(self.database.rows(select, self.scope.roots))
        return [counts.get(number, 0) for number in self.scope.documents.tolist()]

    def tokens_of(self, document: int) -> array[int]:
        """Return the stored token counts of a document's sections."""
        return array("I", self._column(document, "tokens")[0])

    def _column(self, document: int, column: str) -> tuple[bytes, str]:
        """Return one column of a document's row, and the digest of its content."""
        number = int(self.scope.documents[document])
        with self.reading():
            rows = self.database.rows(f"SELECT {column}, digest FROM document WHERE id = ?", number)
            if not rows:
                raise self._lost(document)
            return unsealed(rows[0][0]), rows[0][1]

    def restored(self, place: int) -> ParsedDocument:
        """Return a document with its sections; its text is read at its first use."""
        number = int(self.scope.documents[place])
        kept = self._kept.get(number)
        if kept is not None:
            return kept
        found, state, read = self.founds[place], self.states[place], self._read
        record, digest = self._column(place, "record")

        def current() -> Document:
            try:
                document = read(found)
            except DocumentNotFoundError:
                raise DocumentChangedError(found.path) from None
            if document.digest != digest:
                raise DocumentChangedError(found.path)
            return document

        def known(name: str) -> Document:
            return Document(name, found.path, found.root.label, state, b"", digest, found.root.npl)

        parsed = restore_sections(record, known, lambda: current().data)
        self._kept.put(number, parsed)
        return parsed
