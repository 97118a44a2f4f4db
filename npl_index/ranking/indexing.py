"""A document with everything that searching needs, and collections of such documents."""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

from npl_index.errors import DocumentTimeoutError
from npl_index.library.documents import Document
from npl_index.markdown.front_matter import texts_of
from npl_index.markdown.headings import LONGEST
from npl_index.markdown.sections import Section, SectionTree, Span, parse_sections
from npl_index.priority import give_way
from npl_index.ranking.analysis import terms
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.merging import Survivor, dead_since, joined, survivors
from npl_index.ranking.parts import Postings, with_merged, with_segment, without
from npl_index.ranking.postings import Counts, count
from npl_index.ranking.segments import Segment, labelled, segment_of, with_tokens
from npl_index.ranking.weighing import Weighing
from npl_index.selectors.labels import heading_label
from npl_index.selectors.writing import steps_of

_NAMES = ("linkTitle", "sidebar_label", "aliases", "keywords")
_FILE_WORDS = re.compile(r"[/\s]|--+")
_ABOUT = (*_NAMES, "description")
_PIECE = 1 << 16
_SECTION_BYTES = 1_200
_TERM_BYTES = 20
_SECTION_ARRAYS = 40


@dataclass(frozen=True)
class ParsedDocument:
    """One document and its sections.

    :param document: of one of a set the bytes are left out; its text is read when it is needed.
    :param known_steps: returns :attr:`steps` where somebody has written them.
    """

    document: Document
    tree: SectionTree
    known_steps: Callable[[], tuple[str, ...]] | None = field(default=None, kw_only=True, compare=False)

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """What follows the document's name in the selector of each section."""
        return steps_of(self.tree) if self.known_steps is None else self.known_steps()

    def step(self, section: int) -> str:
        """Return what follows the document's name in the selector of one; nothing for the document."""
        return self.steps[section] if section else ""

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes; an estimate."""
        texts = 2 * self.tree.sections[0].whole_bytes.stop
        return texts + _SECTION_BYTES * len(self.tree.sections)


@dataclass(frozen=True)
class IndexedDocument(ParsedDocument):
    """One document, its sections and its terms.

    :param counts: terms per section; section numbers are those of the tree.
    """

    counts: Counts

    @cached_property
    def collection(self) -> Collection:
        """The document alone, ready to be searched."""
        return Collection.build([self])

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes, its collection included; an estimate."""
        return super().nbytes + 2 * self.counts.nbytes


def index_document(document: Document, *, deadline: float | None = None) -> IndexedDocument:
    """Parse a document and count its terms.

    :param deadline: value of ``time.monotonic()`` after which indexing gives up.
    :raises UnreadableDocumentError: not UTF-8 or binary.
    :raises DocumentTooLargeError: too many sections.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    tree = parse_sections(document.data, document.name, npl=document.npl, deadline=deadline)
    return IndexedDocument(document, tree, _count(document, tree, deadline))


def _count(document: Document, tree: SectionTree, deadline: float | None) -> Counts:
    filed = document.filed or document.path
    names = " ".join([tree.sections[0].heading, *texts_of(tree.front_matter, _NAMES)])[:LONGEST]
    file_words = terms(" ".join(_FILE_WORDS.split(f"{filed.removesuffix('.md')} {names}")))
    headings: list[list[str]] = []
    paths: list[list[str]] = []
    bodies: list[list[str]] = []
    for section in tree.sections:
        above = paths[section.parent] + headings[section.parent] if section.parent else file_words
        paths.append(above)
        headings.append(_heading_terms(tree, section))
        # The names of a document belong to the text before its first heading.
        about = [] if section.index else texts_of(tree.front_matter, _ABOUT)
        body = [] if section.index else headings[0] + terms(" ".join(about)[:_PIECE])
        whole = section.heading_lines
        # A heading that is cut is found by all its words, as a text is.
        begin = whole.start if len(section.heading) == LONGEST else whole.stop
        for piece in _pieces(tree.text(Span(begin, section.own.stop))):
            give_way()
            if deadline is not None and time.monotonic() > deadline:
                raise DocumentTimeoutError(f"indexing {document.name} took too long")
            body += terms(piece)
        bodies.append(body)
    return count(headings, paths, bodies)


def _pieces(text: str) -> Iterator[str]:
    """Split a long text after line ends or spaces, so that the deadline is checked and memory stays small."""
    begin = 0
    while len(text) - begin > _PIECE:
        end = begin + _PIECE
        space = max(text.rfind("\n", begin, end), text.rfind(" ", begin, end))
        end = end if space < 0 else space + 1
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _heading_terms(tree: SectionTree, section: Section) -> list[str]:
    """Terms of a heading or a title; one of stop words only ("How to") keeps them.

    A document that has no title, and text before its headings, is called by its name.
    """
    untitled = not (section.index or section.heading or tree.title) and section.own_traits.word_count
    text = section.name if section.level or untitled else section.heading
    return terms(text) or terms(text, keep_stop_words=True)


@dataclass(frozen=True)
class Collection:
    """Documents that are searched together.

    Their sections are numbered through in the order of the segments that hold them, dead ones included.

    :param firsts: number of each document's first section.
    :param sizes: how many sections each has.
    :param paths: the absolute path of each.
    """

    documents: Sequence[ParsedDocument]
    postings: Postings
    firsts: NDArray[Any]
    sizes: NDArray[Any]
    paths: Sequence[str] = ()

    @classmethod
    def build(cls, documents: Sequence[IndexedDocument]) -> Collection:
        """Join documents, at least one; their texts are not analysed again."""
        collection = cls.of(segment_of(documents))
        return collection.with_documents(
            tuple(documents), [one.document.fingerprint.path for one in documents]
        )

    @classmethod
    def of(cls, segment: Segment) -> Collection:
        """Return the collection of a segment's documents; it has none yet, see :meth:`with_documents`."""
        starts = segment.documents.astype(np.int64)
        return cls((), Postings.of(segment), starts[:-1], np.diff(starts))

    def changed(self, order: Sequence[int], segments: Sequence[Segment] = ()) -> Collection:
        """Return the collection after some documents went and others came.

        It answers as one made anew does, bit for bit, and costs what the documents cost that changed.

        :param order: of the documents afterwards: places that they have now; those in the segments have the
            places behind. Documents without a place are gone.
        :param segments: hold documents that were not there, or not as they are.
        :returns: it has no documents yet, see :meth:`with_documents`.
        """
        postings, firsts, sizes = self.postings, [self.firsts], [self.sizes]
        for segment in segments:
            starts = segment.documents.astype(np.int64)
            firsts.append(postings.size + starts[:-1])
            sizes.append(np.diff(starts))
            postings = with_segment(postings, segment)
        every, every_size = np.concatenate(firsts), np.concatenate(sizes)
        gone = np.ones(len(every), bool)
        gone[list(order)] = False
        postings = without(postings, every[gone])
        places = np.array(order, np.int64)
        return Collection((), postings, every[places], every_size[places])

    def with_documents(self, documents: Sequence[ParsedDocument], paths: Sequence[str]) -> Collection:
        """Return the same collection with its documents, in their order."""
        return replace(self, documents=documents, paths=paths)

    def document_at(self, path: str) -> int | None:
        """Return the document that has an absolute path."""
        return self._by_path.get(path)

    @cached_property
    def _by_path(self) -> dict[str, int]:
        return {path: number for number, path in enumerate(self.paths)}

    def merged(self, first: int = 0) -> Collection:
        """Return the same collection with the segments from one on merged, in memory."""
        living = self.living(first)
        return self.rebased(living, joined(living), first)

    def living(self, first: int = 0) -> list[Survivor]:
        """Return what is left of the segments from one on."""
        return survivors([(part.segment, part.alive) for part in self.postings.parts[first:]])

    def rebased(self, living: Sequence[Survivor], segment: Segment | None, first: int = 0) -> Collection:
        """Return the same collection with one segment, or none, in the place of some from one on.

        :param living: what was left of those when the segment was made of it. Where the first segment of all
            stays, documents may have gone since, and others have come behind.
        """
        chosen = slice(first, first + len(living))
        parts = self.postings.parts[chosen]
        begin, numbers = parts[0].first, np.concatenate([one.numbers for one in living])
        end, size = begin + len(numbers), 0 if segment is None else segment.size
        firsts = self.firsts.copy()
        inside, behind = (firsts >= begin) & (firsts < end), firsts >= end
        firsts[inside] = begin + numbers[firsts[inside] - begin]
        firsts[behind] += begin + size - end
        dead = dead_since(living, [part.alive for part in parts])
        alive = None
        if len(dead):
            alive = np.ones(size, bool)
            alive[dead] = False
        if first:
            postings = with_merged(self.postings, chosen, segment, alive)
        else:
            assert segment is not None
            postings = Postings.of(segment)
        return replace(self, postings=postings, firsts=firsts)

    def uncounted(self) -> list[int]:
        """Return the documents of whose tokens nothing is kept."""
        return [document for document in range(len(self.firsts)) if not len(self.tokens_of(document))]

    def with_tokens(self, found: Mapping[int, Sequence[int]]) -> Collection:
        """Return the same collection with the tokens of some documents."""
        by_first = {int(self.firsts[document]): tokens for document, tokens in found.items()}
        parts = []
        for part in self.postings.parts:
            firsts = (part.segment.documents[:-1].astype("int64") + part.first).tolist()
            own = {number: by_first[first] for number, first in enumerate(firsts) if first in by_first}
            parts.append(replace(part, segment=with_tokens(part.segment, own)) if own else part)
        return replace(self, postings=replace(self.postings, parts=tuple(parts)))

    def holds(self, living: Sequence[Survivor], first: int) -> bool:
        """Return whether some segments still stand side by side, from one on."""
        parts = self.postings.parts[first : first + len(living)]
        return [id(part.segment) for part in parts] == [id(one.segment) for one in living]

    def __len__(self) -> int:
        """Number of sections."""
        return self.postings.statistics.sections

    @cached_property
    def weighing(self) -> Weighing:
        """What its postings weigh."""
        return Weighing(self.postings)

    # Where sections stand; arrays have one number for each section, the dead ones included.

    @cached_property
    def parents(self) -> NDArray[Any]:
        """Number of each section's parent; its own number where there is none."""
        return self._along("parents", [part.first for part in self.postings.parts])

    @cached_property
    def children(self) -> NDArray[Any]:
        """How many each section has."""
        return self._along("children")

    @cached_property
    def text_sizes(self) -> NDArray[Any]:
        """Bytes of each section's own text; 0 for a heading alone."""
        return self._along("sizes")

    @cached_property
    def positions(self) -> NDArray[Any]:
        """Where each section stands on its page: 0 for the first, towards 1 for the last."""
        return self._along("positions")

    @cached_property
    def pages(self) -> NDArray[Any]:
        """Number of each section's page."""
        parts = self.postings.parts
        return self._along("pages", list(accumulate((part.segment.page_count for part in parts), initial=0)))

    def _along(self, name: str, moves: Sequence[int] | None = None) -> NDArray[Any]:
        """Return an array of all segments, one after another, its numbers moved by something for each."""
        arrays: list[NDArray[Any]] = [getattr(part.segment, name) for part in self.postings.parts]
        if moves is not None:
            arrays = [array.astype(np.intp) + move for array, move in zip(arrays, moves, strict=False)]
        return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]

    def number(self, document: int, section: int) -> int:
        """Return the number of a section."""
        return int(self.firsts[document]) + section

    def place(self, number: int) -> tuple[int, int]:
        """Return the document and the section in it that has this number."""
        document = int(self._by_first[self._sorted_firsts.searchsorted(number, side="right") - 1])
        return document, number - int(self.firsts[document])

    def locate(self, numbers: NDArray[Any]) -> tuple[list[int], list[int]]:
        """Return the documents and the sections in them that have these numbers."""
        documents = self._by_first[self._sorted_firsts.searchsorted(numbers, side="right") - 1]
        return documents.tolist(), (numbers - self.firsts[documents]).tolist()

    def order_of(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return what brings some sections, ascending, into the order of the documents."""
        if self._sorted_firsts is self.firsts:
            return np.arange(len(numbers))
        documents, sections = self.locate(numbers)
        return np.lexsort((sections, documents))

    @cached_property
    def _by_first(self) -> NDArray[Any]:
        return self.firsts.argsort()

    @cached_property
    def _sorted_firsts(self) -> NDArray[Any]:
        ordered = (self.firsts[1:] > self.firsts[:-1]).all()
        return self.firsts if ordered else self.firsts[self._by_first]

    # What headings say.

    @cached_property
    def spelt(self) -> Sequence[str]:
        """The different headings, spelt in terms; dead ones may be among them."""
        first, *others = (part.segment.spelt.all() for part in self.postings.parts)
        return list(dict.fromkeys(chain(first, *others))) if others else first

    def headed(self, spelt: str) -> NDArray[Any]:
        """Return the sections whose heading has these terms, compounds left out, joined by spaces."""
        return self.postings.listed("spelt", spelt)

    def headings_with(self, words: Iterable[str]) -> set[str]:
        """Return the headings, spelt in terms, that hold one of some words; dead ones may be among them."""
        rows = [row for row in map(self.postings.terms.row, words) if row is not None]
        return self.postings.spelt_with(rows)

    def is_unique(self, document: int, section: int) -> bool:
        """Tell whether no other section of any document is called like this one, at its level."""
        one = self.documents[document].tree.sections[section]
        label = labelled(one.level, heading_label(one.name))
        return len(self.postings.listed("labels", label)) == 1

    def heading_terms(self, number: int) -> set[str]:
        """Return the terms of a section's heading."""
        rows, _ = self.postings.named(np.array([number]))
        return set(self.postings.terms.texts(rows.tolist()))

    def headings(self, document: int) -> int:
        """Return how many sections of a document have a heading."""
        return self.postings.headings_in(int(self.firsts[document]), int(self.sizes[document]))

    def tokens_of(self, document: int) -> array[int]:
        """Return what is kept of the tokens of a document's sections; it may be nothing."""
        return self.postings.tokens(int(self.firsts[document]))

    def size_of(self, document: int, section: int) -> int:
        """Return the bytes of a section's own text; 0 where it is nothing but the heading."""
        return self.postings.size_of(self.number(document, section))

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes beside its documents; an estimate. Mapped files take none of their own."""
        parts = self.postings.parts
        segments = sum(part.segment.nbytes for part in parts if not part.segment.mapped)
        return (
            segments + _SECTION_ARRAYS * self.postings.size + _TERM_BYTES * len(self.postings.statistics.any)
        )
