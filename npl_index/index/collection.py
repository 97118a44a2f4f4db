"""Documents of the index that are ranked together."""

from __future__ import annotations

import json
import threading
from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from collections.abc import Collection as Collection_
from contextlib import AbstractContextManager
from math import log
from operator import attrgetter, itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from npl_index.cached import cached_property
from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.errors import DocumentNotFoundError
from npl_index.index.database import IndexDatabase
from npl_index.index.entries import IndexEntry
from npl_index.index.members import Members
from npl_index.index.names import IndexNames
from npl_index.index.reading import DocumentChangedError, IndexReader
from npl_index.index.vocabulary import IndexVocabulary
from npl_index.index.writing import AMONG, put_tokens
from npl_index.library.documents import Document, DocumentFile, Read
from npl_index.library.lazy import LazySequence
from npl_index.markdown.copies import SIMILAR
from npl_index.markdown.sections import digest_of
from npl_index.ranking.arrays import NDArray, np, top_positions
from npl_index.ranking.bm25f import Passages
from npl_index.ranking.collection import Collection
from npl_index.ranking.documents import ParsedDocument, Summary, restore_sections, summarized
from npl_index.ranking.postings import Counts, Postings, Sections, counts_in, summed
from npl_index.ranking.standing import FIELDS, Standing, status_of
from npl_index.selectors.filters import TraitFilter
from npl_index.selectors.names import Place
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.sections import stored_total

MAX_CANDIDATES = 56
"""Maximum documents whose sections are ranked."""

MAX_HOLDERS = 1_000
"""Maximum documents to search for a quoted phrase."""

MAX_WORDS = 2_000_000
"""Maximum words of the ranked documents together."""

MAX_POSTINGS = 50_000
"""Maximum postings for the choice of candidates: those of the question's rarest terms, at least of
:data:`MIN_TERMS`. More postings improve one question in 400 with 23,000 files."""

MIN_TERMS = 4

T = TypeVar("T", ParsedDocument, "IndexRow")

_COPIES = (
    "SELECT name.document, name.section, name.copy = own.copy FROM name JOIN name AS own ON name.copy != 0"
    f" AND name.copy BETWEEN own.copy & {-1 << SIMILAR} AND own.copy | {~(-1 << SIMILAR)}"
    " WHERE own.document = ? AND own.section = ?"
)

_MAX_RESUMED = 32
"""Maximum different documents after which the terms of an earlier state are still known."""

_MAX_SUMMARIES = 1_000
"""Maximum documents that are summarized at once."""


class IndexRow(NamedTuple):
    """The data of a document for the ranking.

    :param sections: its sections, with terms by their numbers in the index.
    :param plain: its standing without a status.
    :param fields: fields of its front matter that give a status, which may depend on the time.
    """

    sections: Sections
    plain: Standing
    fields: Sequence[tuple[str, str]]

    @property
    def standing(self) -> Standing:
        """Its present standing."""
        return self.plain._replace(status=status_of(self.fields)) if self.fields else self.plain

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return 1_000 + sum(numbers.nbytes for numbers in self.sections)


class Kept(Generic[T]):
    """The most recently used values, by the numbers of their documents; safe for several threads.

    A row of the index never changes, so a value is valid as long as the index has its document.

    :param maxsize: maximum bytes of memory. A larger value is kept alone, to avoid repeated reading.
    """

    def __init__(self, maxsize: int) -> None:
        self._lock = threading.Lock()
        self._maxsize, self._size = maxsize, 0
        # A cache of cachetools takes ten times as long for the hundreds of documents of a question.
        self._kept: OrderedDict[int, T] = OrderedDict()

    def get(self, numbers: Iterable[int], read: Callable[[list[int]], dict[int, T]]) -> dict[int, T]:
        """Return the values of some documents.

        :param read: returns missing values.
        """
        with self._lock:
            values = {number: self._kept[number] for number in numbers if number in self._kept}
            for number in values:
                self._kept.move_to_end(number)
        missing = [number for number in numbers if number not in values]
        if not missing:
            return values
        fresh = read(missing)
        with self._lock:
            for number in fresh.keys() - self._kept.keys():
                self._kept[number] = fresh[number]
                self._size += self._size_of(fresh[number])
            while self._size > self._maxsize:
                self._size -= self._size_of(self._kept.popitem(last=False)[1])
        return values | fresh

    def _size_of(self, value: T) -> int:
        return min(value.nbytes, self._maxsize)


class KeptDocuments:
    """Documents in memory.

    :param maxsize: bytes of memory, of which a part is used.
    """

    def __init__(self, maxsize: int) -> None:
        self.parsed = Kept[ParsedDocument](max(1, maxsize // 32))
        self.rows = Kept[IndexRow](max(1, maxsize // 8))


class IndexedCollection(Collection):
    """Some documents of the index.

    :param members: the documents, at least one.
    :param read: reader of a whole file.
    :param kept: documents in memory, shared by all collections.
    :param changed: called when other contents replaced some of them; the argument tells whether the index is
        damaged.
    :raises DocumentNotFoundError: there are no documents.
    """

    def __init__(
        self,
        database: IndexDatabase,
        members: Members,
        read: Read,
        kept: KeptDocuments,
        changed: Callable[[bool], None],
    ) -> None:
        if not len(members.documents):
            problem = f"none of the {len(members.states)} files can be read"
            raise DocumentNotFoundError(problem, hint=next(iter(members.unreadable), None))
        self.members, self.partial = members, members.missing > 0
        self._read, self._kept, self._database = read, kept, database
        self._reader = IndexReader(database, members, changed)
        self.names = self._names = IndexNames(self._reader)

    @cached_property
    def files(self) -> tuple[DocumentFile, ...]:
        """The files of the documents."""
        return tuple(map(itemgetter(0), self.members.indexed))

    @cached_property
    def paths(self) -> Sequence[str]:  # type: ignore[override]
        """Their absolute paths."""
        return list(map(attrgetter("path"), map(itemgetter(1), self.members.indexed)))

    @property
    def state(self) -> Hashable:
        """The roots with their versions, and the numbers of the documents."""
        return self.members.version, digest_of(self.members.documents.tobytes())  # kept for each outcome

    def resume(self, former: IndexedCollection) -> None:
        """Keep the counts of terms of an earlier state that a few changed documents do not affect."""
        before, now = former.members.documents, self.members.documents
        if self.members.follow(former.members):
            self.files, self.paths, self.versions = former.files, former.paths, former.versions
            changed = (before != now).nonzero()[0]
            self._names.resume(former._names, changed.tolist())
            gone, new = before[changed].tolist(), now[changed].tolist()
        else:
            gone = np.setdiff1d(before, now, assume_unique=True).tolist()
            new = np.setdiff1d(now, before, assume_unique=True).tolist()
        if "vocabulary" not in vars(former):
            return
        if not gone and not new:  # a file was only read again
            self.vocabulary.known = former.vocabulary.known
            self.vocabulary.frequencies = former.vocabulary.frequencies
        # A common document shows that the index is not a new one, where terms have other numbers.
        if not new or len(gone) == len(before) or len(gone) + len(new) > _MAX_RESUMED:
            return
        rows_of = self._kept.rows.get(gone, lambda _: {})
        if len(rows_of) == len(gone):
            rows_of |= self._rows(new)
            counted = [counts_in(row.sections) for row in rows_of.values()]
            signs = [1 if number in new else -1 for number in rows_of]
            parts = zip(signs, counted, strict=True)
            rows, sums = summed([(rows, sign * np.array(counts)) for sign, (rows, counts) in parts])
            there = sums.any(axis=0)
            sizes = [
                (row.sections.size, row.sections.page_count, row.sections.words) for row in rows_of.values()
            ]
            self.vocabulary = IndexVocabulary(self._reader, former.vocabulary.sums + np.dot(signs, sizes))
            self.vocabulary.resume(former.vocabulary, rows[there], Counts(*sums[:, there]).any)

    @cached_property
    def vocabulary(self) -> IndexVocabulary:  # type: ignore[override]
        """The terms of the documents."""
        return IndexVocabulary(self._reader)

    def relative_paths(self) -> Sequence[str]:
        """Return the path of each document below its root, or behind the label of one of several roots."""
        several = len({file.root.path for file in self.files}) > 1
        return [f"/{file.root.label}/{file.path}" if several else f"/{file.path}" for file in self.files]

    @property
    def documents(self) -> Sequence[ParsedDocument]:  # type: ignore[override]
        """The documents, each restored at its use."""
        # Not cached: a reference to the collection would delay its release.
        return LazySequence(len(self.files), self.restored)

    def reading(self) -> AbstractContextManager[None]:
        """Read one state of the collection within the context.

        :raises DocumentChangedError: the index is damaged, or has different content of a document.
        """
        return self._reader.reading()

    def passages(
        self, terms: Sequence[str], also: Collection_[int] = (), weights: NDArray[Any] | None = None
    ) -> Passages:
        """Return the sections of the best documents, and of further ones."""
        with self.reading():
            self._reader.check()
            chosen = list(dict.fromkeys([*self._candidates(terms, weights), *sorted(also)])) or [0]
            numbers = self.members.documents[chosen].tolist()
            rows_of = self._rows(numbers)
        taken: dict[int, IndexRow] = {}
        words = 0
        for position, number in zip(chosen, numbers, strict=True):
            words += len(rows_of[number].sections.rows)
            if not taken or words <= MAX_WORDS or position in also:
                taken[position] = rows_of[number]
        positions = sorted(taken)
        rows = [taken[position] for position in positions]
        postings, vocabulary = Postings([row.sections for row in rows]), self.vocabulary
        return Passages(np.array(positions), postings, vocabulary, lambda: [row.standing for row in rows])

    def _candidates(self, terms: Sequence[str], weights: NDArray[Any] | None) -> list[int]:
        """Return the positions of the best documents, best first.

        A term of a document counts by its rarity in the collection. This keeps more of the best sections than
        FTS5's ``bm25()``, whose statistics are those of all roots. Variants replace a term that no section
        has.
        """
        wanted: dict[int, None] = {}
        for term in terms:
            row = self.vocabulary.row(term)
            variants = self.vocabulary.variants(term) if row is None else ((row, 1.0),)
            wanted.update((row, None) for row, _ in variants)
        pages = self.vocabulary.counts(np.array(list(wanted), np.intp)).pages.tolist()
        rarest = sorted(zip(self.vocabulary.texts(list(wanted)), pages, strict=True), key=itemgetter(1))
        worth = np.zeros(len(self.files))
        postings = 0
        for number, (term, of_term) in enumerate(rarest):
            if number < MIN_TERMS or postings + of_term <= MAX_POSTINGS:
                postings += of_term
                holders = self._reader.matching(term)
                rarity = log(1 + len(worth) / max(1, len(holders.anywhere)))
                for positions in holders:
                    worth[positions] += rarity
        best: list[int] = top_positions(
            worth if weights is None else worth * weights, MAX_CANDIDATES
        ).tolist()
        return best

    def _rows(self, numbers: Sequence[int]) -> dict[int, IndexRow]:
        """Return the rows of some documents, by number."""
        return self._kept.rows.get(numbers, self._read_rows)

    def _read_rows(self, numbers: list[int]) -> dict[int, IndexRow]:
        select = f"SELECT document, name, value FROM field WHERE name {AMONG} AND document {AMONG}"
        fields: dict[int, list[tuple[str, str]]] = defaultdict(list)
        with self.reading():
            for number, *field in self._reader.rows(select, json.dumps(FIELDS), json.dumps(numbers)):
                fields[number].append(tuple(field))
            return {
                number: IndexRow(Sections.unpacked(terms), Standing(language), fields[number])
                for number, (_, language, terms) in self._reader.documents(numbers, "terms").items()
            }

    def holders(self, terms: Sequence[str]) -> Sequence[int]:
        """Return the first documents with all of some terms."""
        holders: list[int] = sorted(self._reader.matching(*terms).anywhere.tolist())
        return holders[:MAX_HOLDERS]

    def sections(self, document: int) -> Sections:
        """Return the sections of a document as arrays."""
        (row,) = self._rows([int(self.members.documents[document])]).values()
        return row.sections

    def summaries(
        self, conditions: TraitFilter, counter: TokenCounter, clock: Deadline = NO_DEADLINE
    ) -> Iterator[Summary]:
        """Yield the numbers of each document, without restoring it."""
        numbers = self.members.documents.tolist()
        for first in range(0, len(numbers), _MAX_SUMMARIES):
            clock.check()
            part = numbers[first : first + _MAX_SUMMARIES]
            packed = self._reader.documents(part, "record", "tokens")
            for record, tokens in (packed[number][2:] for number in part):
                yield summarized(record, stored_total(array("I", tokens), counter), conditions)

    def with_field(self, name: str, values: Collection_[str] | None = None) -> NDArray[Any]:
        """Return whether each document has a field in its front matter, with one of some values."""
        select, parameters = "SELECT document FROM field WHERE name = ?", [name]
        if values is not None:
            select, parameters = f"{select} AND value {AMONG}", [name, json.dumps(sorted(values))]
        holders = np.array(self._reader.rows(select, *parameters), np.int64).ravel()
        result: NDArray[Any] = np.isin(self.members.documents, holders)
        return result

    def field_counts(self) -> dict[str, int]:
        """Return the number of documents with each field, by one query."""
        select = f"SELECT name, count(DISTINCT document) FROM field WHERE document {AMONG} GROUP BY name"
        return dict(self._reader.rows(select, self.members.as_json))

    def value_counts(self) -> dict[tuple[str, str], int]:
        """Return the number of documents with each folded value of a field, of those that several have."""
        select = f"SELECT name, value, count(*) FROM field WHERE document {AMONG} GROUP BY name, value"
        rows = self._reader.rows(f"{select} HAVING count(*) > 1", self.members.as_json)
        return {(name, value): number for name, value, number in rows}

    def copies(self, document: int, section: int) -> tuple[Sequence[Place], Sequence[Place]]:
        """Return the sections of other documents with the text of a section, and those with a similar one."""
        number, positions = int(self.members.documents[document]), self.members.positions
        equal, similar = set[Place](), set[Place]()
        for other, index, is_equal in self._reader.rows(_COPIES, number, section):
            if other != number and other in positions:
                (equal if is_equal else similar).add((positions[other], index))
        return sorted(equal), sorted(similar)

    def tokens_of(self, document: int) -> array[int]:
        """Return the stored token counts of a document's sections."""
        number = int(self.members.documents[document])
        return array("I", self._reader.documents([number], "tokens")[number][-1])

    def uncounted(self) -> list[IndexEntry]:
        """Return the documents without stored token counts."""
        select = f"SELECT id, digest FROM document WHERE id {AMONG} AND length(tokens) = 4"  # a checksum
        rows = self._reader.rows(select, self.members.as_json)
        found = sorted((self.members.positions[number], digest) for number, digest in rows)
        indexed = self.members.indexed
        return [IndexEntry(*indexed[position], position, digest) for position, digest in found]

    def put_tokens(self, counted: Iterable[tuple[int, bytes]]) -> None:
        """Store the token counts of some documents; see :meth:`Indexer.count`."""
        numbers = self.members.documents.tolist()
        with self._database.writing() as connection:
            put_tokens(connection, ((numbers[position], tokens) for position, tokens in counted if tokens))

    def restored(self, document: int) -> ParsedDocument:
        """Return a document with its sections; its text is read at its first use."""
        number = int(self.members.documents[document])
        return self._kept.parsed.get([number], lambda _: {number: self._restored(document)})[number]

    def _restored(self, document: int) -> ParsedDocument:
        (file, state), read = self.members.indexed[document], self._read
        ((digest, _, record),) = self._reader.documents(
            [int(self.members.documents[document])], "record"
        ).values()

        def current() -> Document:
            try:
                present = read(file)
            except DocumentNotFoundError:
                raise DocumentChangedError(file.path) from None
            if present.digest != digest:
                raise DocumentChangedError(file.path)
            return present

        def described(name: str) -> Document:
            return Document(name, file.path, state, b"", digest, file.root.npl)

        return restore_sections(record, described, lambda: current().data)
