"""Indexed documents, their sections as bytes, and collections of documents that are ranked together.

An answer reads only the files that it shows: the sections of the others are restored from bytes, which takes
a fraction of the time of parsing. Each section is built at its first use, and the file is read if its text is
needed.
"""

from __future__ import annotations

import json
import re
import zlib
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from collections.abc import Collection as Collection_
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from npl_index.cached import cached_property
from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.library.documents import Document
from npl_index.library.lazy import LazySequence
from npl_index.markdown.copies import SIMILAR
from npl_index.markdown.front_matter import decoded, field_values, texts_of
from npl_index.markdown.headings import MAX_HEADING
from npl_index.markdown.sections import DocumentText, Section, SectionTree, Span, parse_sections
from npl_index.markdown.traits import LEVEL, NO_TRAITS, TraitFilter, Traits
from npl_index.ranking.analysis import all_terms, terms
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Passages
from npl_index.ranking.postings import Postings, Sections, sections_of
from npl_index.ranking.spelling import without_compounds
from npl_index.ranking.standing import Standing, Versions, language_of, status_in, version_words, versions_of
from npl_index.ranking.vocabulary import KnownVocabulary, Vocabulary
from npl_index.selectors.filters import FieldTest, unknown_field
from npl_index.selectors.labels import fold, heading_label
from npl_index.selectors.names import KnownNames, Name, Names, Place, names_of
from npl_index.selectors.writing import steps_of
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.sections import NOTHING

MAX_TERMS = 250_000
"""Maximum distinct terms of one document. Prose of ten megabytes has a tenth of that."""

_NAME_FIELDS = ("linkTitle", "sidebar_label", "aliases", "keywords")
_FILE_WORDS = re.compile(r"[/\s]|--+")
_BODY_FIELDS = (*_NAME_FIELDS, "tags", "description")
_CHUNK = 1 << 16
CHUNKS = re.compile(rf"(?s:.{{1,{_CHUNK}}})(?:\Z|(?<=[\n ]))|(?s:.{{1,{_CHUNK}}})")
"""Parts of a long text, cut after line ends or spaces; between them, a deadline is checked."""

_SECTION_BYTES = 2_400
_TERM_BYTES = 300
_TREE = attrgetter("name", "front_matter", "dialect", "title", "doubtful_fences")
_SECTION = attrgetter(*(part.name for part in fields(Section)[1:]))  # without the index
_SPAN = attrgetter("start", "stop")
_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_SPAN).encode
MAX_RENAMED = 2_000
"""Maximum documents of versions whose headings are compared."""

_known_versions = lru_cache(maxsize=8)(versions_of)  # an edit changes no path


@dataclass(frozen=True)
class ParsedDocument:
    """One document and its sections.

    :param document: the document; one from the index has no bytes, and its text is read at its first use.
    :param known_steps: the stored :attr:`steps`, if there are any.
    """

    document: Document
    tree: SectionTree
    known_steps: tuple[str, ...] | None = field(default=None, kw_only=True, compare=False)

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """The part of each section's selector after the document's name."""
        return self.known_steps or steps_of(self.tree)

    def step(self, section: int) -> str:
        """Return the part of a section's selector after the document's name; ``""`` for the document."""
        return self.steps[section] if section else ""

    @property
    def nbytes(self) -> int:
        """Estimated bytes of memory."""
        whole = self.tree.sections[0]
        # The bytes and the text, of at most four bytes a character, and the starts of lines.
        texts = 8_000 + 5 * whole.whole_bytes.stop + 8 * whole.whole.stop
        return texts + _SECTION_BYTES * len(self.tree.sections)


@dataclass(frozen=True)
class IndexedDocument(ParsedDocument):
    """One document, its sections and its terms.

    :param terms: different terms, ascending.
    :param sections: the sections; their rows are positions in ``terms``.
    :param names: names of the sections.
    """

    terms: tuple[str, ...]
    sections: Sections
    names: Sequence[Name]

    @cached_property
    def collection(self) -> Collection:
        """The collection of this document alone."""
        return KnownCollection([self])

    @property
    def nbytes(self) -> int:
        """Estimated bytes of memory, its collection included."""
        arrays = sum(numbers.nbytes for numbers in self.sections)
        return super().nbytes + 2 * arrays + _TERM_BYTES * len(self.terms)


def index_document(document: Document, *, deadline: float | None = None) -> IndexedDocument:
    """Parse a document and number its terms.

    :param deadline: value of ``time.monotonic()`` after which indexing ends in an error.
    :raises UnreadableDocumentError: not UTF-8 or binary.
    :raises DocumentTooLargeError: too many sections.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    tree = parse_sections(document.data, document.name, npl=document.npl, deadline=deadline)
    numbers = _Numbers()
    fields = _fields_of(document, tree, numbers, Deadline(document.name, deadline))
    rows = [[numbers.of(section.heading), numbers.of(section.path), section.body] for section in fields]
    words = sorted(numbers)
    row_of = np.empty(len(words), np.uint32)
    row_of[list(map(numbers.__getitem__, words))] = np.arange(len(words))
    names = names_of(tree, (" ".join(without_compounds(section.heading)) for section in fields))
    further, copies = [section.further for section in fields], [name.copy >> SIMILAR for name in names]
    sections = sections_of(tree, rows, further, copies, row_of)
    return IndexedDocument(document, tree, tuple(words), sections, names)


class _Numbers(dict[str, int]):
    """Numbers of the terms of a document, in their order; a term above the maximum has none."""

    def __missing__(self, term: str) -> int:
        if len(self) == MAX_TERMS:
            return MAX_TERMS
        number = self[term] = len(self)
        return number

    def of(self, terms: Iterable[str]) -> array[int]:
        """Return the numbers of terms."""
        numbers = array("I", map(self.__getitem__, terms))
        return numbers if len(self) < MAX_TERMS else array("I", filter(MAX_TERMS.__gt__, numbers))


class _Fields(NamedTuple):
    """The terms of a section.

    :param heading: terms of its heading.
    :param path: terms of the headings above it and of the file's name.
    :param body: numbers of the terms of its body.
    :param further: how many of these, at the end, do not count for its length.
    """

    heading: list[str]
    path: list[str]
    body: array[int]
    further: int


def _file_terms(document: Document, tree: SectionTree) -> list[str]:
    """Return the terms of a file's path and of the names in its front matter."""
    path = document.filed or document.path
    names = " ".join([tree.sections[0].heading, *texts_of(tree.front_matter, _NAME_FIELDS)])[:MAX_HEADING]
    return terms(" ".join(_FILE_WORDS.split(f"{path.removesuffix('.md')} {version_words(path)} {names}")))


def _fields_of(document: Document, tree: SectionTree, numbers: _Numbers, deadline: Deadline) -> list[_Fields]:
    """Return the terms of each section.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    file_terms, result = _file_terms(document, tree), list[_Fields]()
    # The front matter belongs to the first text.
    bodies = (Span(section.heading_lines.stop, section.own.stop) for section in tree.sections)
    described = next((index for index, lines in enumerate(bodies) if tree.text(lines).strip()), 0)
    for section in tree.sections:
        heading = _heading_terms(tree, section)
        above = result[section.parent].path + result[section.parent].heading if section.parent else file_terms
        front = texts_of(tree.front_matter, _BODY_FIELDS) if section.index == described else []
        body = numbers.of([] if section.index else heading + terms(" ".join(front)[:_CHUNK]))
        lines = section.heading_lines
        # The source of a heading has words that it does not show, such as addresses of links.
        source = chain.from_iterable(all_terms("\n".join((tree.text(lines)[:_CHUNK], *front))))
        further = numbers.of(sorted(set(source).difference(heading)))
        # The body of a section with a shortened heading includes the whole heading.
        begin = lines.start if len(section.heading) == MAX_HEADING else lines.stop
        for chunk in CHUNKS.findall(tree.text(Span(begin, section.own.stop))):
            deadline.check()
            counted, uncounted = all_terms(chunk)
            body += numbers.of(counted)
            further += numbers.of(uncounted)
        result.append(_Fields(heading, above, body + further, len(further)))
    return result


def _heading_terms(tree: SectionTree, section: Section) -> list[str]:
    """Return the terms of a heading or a title; a heading of stop words only ("How to") keeps them.

    The title of an untitled document with text before its headings is its name.
    """
    untitled = not (section.index or section.heading or tree.title) and section.own_traits.word_count
    text = section.name if section.level or untitled else section.heading
    return terms(text) or terms(text, keep_stop_words=True)


def dump_sections(parsed: ParsedDocument) -> bytes:
    """Return a document's sections and their selectors as bytes, for :func:`restore_sections`."""
    # A line for each section: an answer needs few of them.
    record = ((*_TREE(parsed.tree), parsed.steps), *map(_SECTION, parsed.tree.sections))
    return zlib.compress("\n".join(map(_LINE, record)).encode(), 1)


def restore_sections(
    packed: bytes, describe: Callable[[str], Document], read: Callable[[], bytes]
) -> ParsedDocument:
    """Return the document from which :func:`dump_sections` made these bytes.

    :param describe: returns the document with a name, possibly without its bytes.
    :param read: returns the bytes when the text is needed.
    """
    head, *rows = zlib.decompress(packed).decode().split("\n")
    name, front, dialect, title, doubtful, steps = json.loads(head)
    text = DocumentText(lambda: decoded(read(), name))

    @cache
    def section(number: int) -> Section:
        level, heading, shown, version, *spans, parent, children, traits, whole_traits = json.loads(
            rows[number]
        )
        lines = (Span(*pair) for pair in spans)
        rest: Any = (*lines, parent, tuple(children), Traits(*traits), Traits(*whole_traits))
        return Section(number, level, heading, shown, version, *rest)

    sections = LazySequence(len(rows), section)
    tree = SectionTree(name, sections, text, front, dialect, title, tuple(doubtful))
    return ParsedDocument(describe(name), tree, known_steps=tuple(steps))


class Summary(NamedTuple):
    """Numbers of a document.

    :param headings: number of headings.
    :param matching: number of headings that meet some conditions.
    :param tokens: tokens of the document, ``None`` if they are not counted yet.
    :param doubtful: first lines of fences without a proper end.
    """

    headings: int
    matching: int
    tokens: int | None
    doubtful: Sequence[int]

    @classmethod
    def of(
        cls,
        sections: Iterable[tuple[Traits, int]],
        tokens: int | None,
        doubtful: Sequence[int],
        conditions: TraitFilter,
    ) -> Summary:
        """Return the numbers of a document.

        :param sections: traits and level of each section as a whole.
        """
        headings = [section for section in sections if section[1]]
        free = conditions == NO_TRAITS
        matching = len(headings) if free else sum(conditions.matches(*section) for section in headings)
        return cls(len(headings), matching, tokens, doubtful)


def summarized(packed: bytes, tokens: int | None, conditions: TraitFilter) -> Summary:
    """Return the numbers of the document from which :func:`dump_sections` made these bytes.

    :param tokens: its tokens, if they are known.
    """
    head, *rows = zlib.decompress(packed).decode().split("\n")
    *_, doubtful, _ = json.loads(head)
    sections = [(Traits(*row[-1]), row[0]) for row in map(json.loads, rows)]
    return Summary.of(sections, tokens, doubtful, conditions)


class Collection(ABC):
    """Documents that are ranked together.

    ``documents`` has the documents in order, ``paths`` their absolute paths, ``vocabulary`` the terms, and
    ``names`` the names of the sections.
    """

    documents: Sequence[ParsedDocument]
    paths: Sequence[str]
    vocabulary: Vocabulary
    names: Names
    partial = False
    """Whether further documents are not indexed yet."""

    def __len__(self) -> int:
        """Number of sections."""
        return self.vocabulary.sections

    @property
    @abstractmethod
    def state(self) -> Hashable:
        """A value that is equal while the documents are the same."""

    @abstractmethod
    def passages(
        self, terms: Sequence[str], also: Collection_[int] = (), among: NDArray[Any] | None = None
    ) -> Passages:
        """Return the sections of the candidates for a question.

        :param terms: terms of the question.
        :param also: further candidates.
        :param among: whether each document may be a candidate; ``None`` for all.
        """

    def holders(self, terms: Sequence[str]) -> Sequence[int]:  # noqa: ARG002
        """Return documents with all of some terms, unless all documents are always candidates."""
        return ()

    @abstractmethod
    def sections(self, document: int) -> Sections:
        """Return the sections of a document as arrays, with rows of the vocabulary."""

    def tokens_of(self, document: int) -> array[int]:  # noqa: ARG002
        """Return the stored token counts of a document's sections, possibly none."""
        return NOTHING

    def reading(self) -> AbstractContextManager[None]:
        """Read one state of the collection within the context."""
        return nullcontext()

    def document_at(self, path: str) -> int | None:
        """Return the document with an absolute path."""
        return self._by_path.get(path)

    @cached_property
    def _by_path(self) -> dict[str, int]:
        return {path: number for number, path in enumerate(self.paths)}

    def holder(self, row: int) -> tuple[int, int]:
        """Return a section with a term: the document, and the section in it."""
        passages = self.passages(self.vocabulary.texts([row]))
        documents, sections = passages.locate(passages.postings.find([row]).sections[:1])
        return documents[0], sections[0]

    def heading_terms(self, document: int, section: int) -> set[str]:
        """Return the terms of a section's heading."""
        return set(self.vocabulary.texts(self.sections(document).field(section, 0).tolist()))

    def is_unique(self, document: int, section: int) -> bool:
        """Return whether no other section of the collection has this one's level and name."""
        node = self.documents[document].tree.sections[section]
        return self.names.is_unique(node.level, heading_label(node.name))

    def headings(self, document: int) -> int:
        """Return the number of a document's sections with a heading."""
        return int(np.count_nonzero(self.sections(document).levels & LEVEL))

    def summaries(
        self,
        conditions: TraitFilter,
        counter: TokenCounter,  # noqa: ARG002
        clock: Deadline = NO_DEADLINE,
    ) -> Iterator[Summary]:
        """Yield the numbers of each document.

        :param conditions: conditions of the matching headings.
        :param counter: counter of the tokens, if they are stored.
        :raises DocumentTimeoutError: the deadline has passed.
        """
        for document in self.documents:
            clock.check()
            sections = ((section.whole_traits, section.level) for section in document.tree.sections)
            yield Summary.of(sections, None, document.tree.doubtful_fences, conditions)

    def meeting(self, tests: Sequence[FieldTest]) -> NDArray[Any]:
        """Return whether each document meets conditions on its front matter.

        :raises InvalidRequestError: no document has a field, and none is missing.
        """
        kept = np.ones(len(self.documents), bool)
        for test in tests:
            there = self.with_field(test.name)
            if not there.any() and not self.partial:
                raise unknown_field(test.name, self.field_counts())
            if test.wanted:
                kept &= self.with_field(test.name, test.wanted)
            if test.unwanted:
                kept &= ~self.with_field(test.name, test.unwanted)
        return kept

    def with_field(self, name: str, values: Collection_[str] | None = None) -> NDArray[Any]:
        """Return whether each document has a field in its front matter, with one of some values.

        :param values: folded values; ``None`` for any.
        """
        return np.array(
            [
                any(key == name and (values is None or value in values) for key, value in field_values(front))
                for front in (parsed.tree.front_matter for parsed in self.documents)
            ]
        )

    def field_counts(self) -> dict[str, int]:
        """Return the number of documents with each field."""
        fronts = (parsed.tree.front_matter for parsed in self.documents)
        names = ({name for name, _ in field_values(front)} for front in fronts)
        return dict(Counter(chain.from_iterable(names)))

    def copies(self, document: int, section: int) -> tuple[Sequence[Place], Sequence[Place]]:  # noqa: ARG002
        """Return the sections of other documents with the text of a section, and those with a similar one."""
        return (), ()

    def relative_paths(self) -> Sequence[str]:
        """Return the path of each document below its root, with a slash in front."""
        return [f"/{parsed.document.path}" for parsed in self.documents]

    @cached_property
    def versions(self) -> Versions:
        """The versions of the documents."""
        versions = _known_versions(tuple(self.relative_paths()))
        alone = list(versions.alone)[:MAX_RENAMED]
        return versions.with_renamed(self.heading_names(alone)) if alone else versions

    def heading_names(self, documents: Sequence[int]) -> dict[int, frozenset[str]]:
        """Return the different headings of some documents, folded."""
        trees = {number: self.documents[number].tree for number in documents}
        return {
            number: frozenset(fold(section.name) for section in tree.sections if section.level)
            for number, tree in trees.items()
        }


class KnownCollection(Collection):
    """A few documents in memory.

    :param documents: at least one.
    """

    def __init__(self, documents: Sequence[IndexedDocument]) -> None:
        self.documents = documents
        self.paths = [parsed.document.fingerprint.path for parsed in documents]
        terms, self._sections = documents[0].terms, [parsed.sections for parsed in documents]
        if len(documents) > 1:
            terms = tuple(sorted(set(chain.from_iterable(parsed.terms for parsed in documents))))
            row_of = {term: row for row, term in enumerate(terms)}
            for number, parsed in enumerate(documents):
                rows = np.array([row_of[term] for term in parsed.terms], np.uint32)
                self._sections[number] = parsed.sections._replace(rows=rows[parsed.sections.rows])
        self.vocabulary = KnownVocabulary(terms, self._sections)
        titles = [(parsed.tree.name, parsed.tree.sections[0].name) for parsed in documents]
        self.names: KnownNames = KnownNames(titles, [parsed.names for parsed in documents])

    @property
    def state(self) -> Hashable:
        """The digests of the documents."""
        return tuple(parsed.document.digest for parsed in self.documents)

    @cached_property
    def whole(self) -> Passages:
        """All sections."""
        numbers = np.arange(len(self._sections))
        return Passages(numbers, Postings(self._sections), self.vocabulary, self._standings)

    def copies(self, document: int, section: int) -> tuple[Sequence[Place], Sequence[Place]]:
        """Return the sections of other documents with the text of a section, and those with a similar one."""
        return self.names.copies((document, section))

    def _standings(self) -> list[Standing]:
        trees = [document.tree for document in self.documents]
        return [Standing(language_of(tree.source), status_in(tree.front_matter)) for tree in trees]

    def passages(
        self,
        terms: Sequence[str],  # noqa: ARG002
        also: Collection_[int] = (),  # noqa: ARG002
        among: NDArray[Any] | None = None,  # noqa: ARG002
    ) -> Passages:
        """Return all sections."""
        return self.whole

    def sections(self, document: int) -> Sections:
        """Return the sections of a document as arrays."""
        return self._sections[document]
