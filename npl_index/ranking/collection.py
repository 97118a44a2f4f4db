"""Collections of documents that are ranked together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Collection as Collection_
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any

from npl_index.cached import cached_property
from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.markdown.front_matter import field_values
from npl_index.markdown.traits import LEVEL
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Passages
from npl_index.ranking.documents import ParsedDocument, Summary
from npl_index.ranking.postings import Postings, Sections
from npl_index.ranking.standing import Standing, Versions, language_of, status_in, versions_of
from npl_index.ranking.vocabulary import KnownVocabulary, Vocabulary
from npl_index.selectors.filters import FieldTest, TraitFilter, unknown_field
from npl_index.selectors.labels import heading_label
from npl_index.selectors.names import KnownNames, Name, Names, Place
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.sections import NOTHING

_TERM_BYTES = 300


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
        self, terms: Sequence[str], also: Collection_[int] = (), weights: NDArray[Any] | None = None
    ) -> Passages:
        """Return the sections of the candidates for a question.

        :param terms: terms of the question.
        :param also: further candidates.
        :param weights: weight of each document as a candidate; 0 excludes it.
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

    def value_counts(self) -> Mapping[tuple[str, str], int]:
        """Return the number of documents with each folded value of a field, of those that several have."""
        fronts = (parsed.tree.front_matter for parsed in self.documents)
        counts = Counter(chain.from_iterable(map(field_values, fronts)))
        return {field: number for field, number in counts.items() if number > 1}

    def copies(self, document: int, section: int) -> tuple[Sequence[Place], Sequence[Place]]:  # noqa: ARG002
        """Return the sections of other documents with the text of a section, and those with a similar one."""
        return (), ()

    def relative_paths(self) -> Sequence[str]:
        """Return the path of each document below its root, with a slash in front."""
        return [f"/{parsed.document.path}" for parsed in self.documents]

    @cached_property
    def versions(self) -> Versions:
        """The versions of the documents."""
        return versions_of(self.relative_paths())


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
        weights: NDArray[Any] | None = None,  # noqa: ARG002
    ) -> Passages:
        """Return all sections."""
        return self.whole

    def sections(self, document: int) -> Sections:
        """Return the sections of a document as arrays."""
        return self._sections[document]


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
