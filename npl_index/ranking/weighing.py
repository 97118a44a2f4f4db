"""Passages, and the weights of their postings: the numbers of BM25F that depend on the whole collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from npl_index.ranking.analysis import commonness
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Postings
from npl_index.ranking.vocabulary import Vocabulary

FIELD_WEIGHTS = (4.0, 0.5, 1.0)
"""Weight of an occurrence in heading, path and body."""

BODY_NORM = 0.7
"""``b`` of BM25 for the body: 0 ignores its length, 1 divides by it.

A long body repeats its words because it is long. A long heading or path repeats no words, so the lengths of
these do not count."""

BACKGROUND = 12.0
"""Assumed sections of ordinary prose in every collection. In a file of ten sections, chance decides which
word occurs in a single one; the frequencies of English words say more."""

OTHER_PAGES = 24
"""Assumed pages without any term in every collection: a word on both of two pages is not yet common."""

COMMON = 0.2
"""Minimum sections of a term, as a share of the pages, for which its pages are counted."""


class Weighed(NamedTuple):
    """Weights of postings; arrays have one number for each posting.

    :param runs: number of the requested row of the posting.
    :param sections: section of the posting.
    :param names: mass from heading and path.
    :param masses: mass from all fields.
    :param headings: the term's share of the section's heading, by idf; 0 if it is not in the heading.
    """

    runs: NDArray[Any]
    sections: NDArray[Any]
    names: NDArray[Any]
    masses: NDArray[Any]
    headings: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Passages:
    """Sections of a collection that may answer a question: those of some documents, numbered consecutively.

    :param documents: numbers of these documents in the collection, ascending.
    :param postings: postings of their sections.
    :param vocabulary: vocabulary of the whole collection.
    """

    documents: NDArray[Any]
    postings: Postings
    vocabulary: Vocabulary

    def number(self, document: int, section: int) -> int:
        """Return the number of a section."""
        return int(self.postings.firsts[self.documents.searchsorted(document)]) + section

    def locate(self, numbers: NDArray[Any]) -> tuple[list[int], list[int]]:
        """Return the documents of some numbers, and the sections in them."""
        places = self.postings.firsts.searchsorted(numbers, side="right") - 1
        return self.documents[places].tolist(), (numbers - self.postings.firsts[places]).tolist()

    def body_norms(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the divisors of the counts in the bodies of some sections, which depend on their lengths."""
        mean = self.vocabulary.words / self.vocabulary.sections or 1.0
        return 1 - BODY_NORM + BODY_NORM * self.postings.lengths[numbers] / mean

    def weigh(self, rows: Sequence[int]) -> Weighed:
        """Return the weights of the postings of some rows, row by row; rows may be repeated."""
        known = self.vocabulary
        runs, sections, in_heading, in_path, in_body = self.postings.find(rows)
        # The name of a common folder distinguishes no section, and would make all of them match.
        path_counts = known.counts(np.array(rows, np.intp)).path
        path_weights = np.where(path_counts == known.sections, 0.0, FIELD_WEIGHTS[1])
        if known.pages == 1:  # nor does a page's title distinguish its sections
            in_heading = np.where(self.postings.levels[sections] == 0, 0, in_heading)
        names = FIELD_WEIGHTS[0] * in_heading + path_weights[runs] * in_path
        masses = names + FIELD_WEIGHTS[2] * in_body / self.body_norms(sections)
        headings = np.zeros(len(sections))
        headed = in_heading.nonzero()[0]
        if len(headed):
            headings[headed] = idf(known, rows)[runs[headed]] / self._heading_weights(sections[headed])
        return Weighed(runs, sections, names, masses, headings)

    def _heading_weights(self, sections: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the idf of all different terms in the headings of some sections."""
        rows, owners = self.postings.heading_terms(sections)
        weights = idf(self.vocabulary, rows)
        # Rows differ from index to index, and only sums in the same order are equal.
        order = np.lexsort((weights, owners))
        return np.bincount(owners[order], weights[order], len(sections))


def idf(vocabulary: Vocabulary, rows: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """Return the inverse document frequency of terms: ``log((N + B + 1) / (n + B * p))``.

    ``n`` of ``N`` sections have the term in heading or body, ``B`` is :data:`BACKGROUND`, and ``p`` is the
    term's share of the background. Without background it is the idf of ``BM25Plus``. A term in a path
    describes a whole branch, so these occurrences count only for a term without others.
    """
    kept, asked = vocabulary.idf, rows.tolist() if isinstance(rows, np.ndarray) else rows
    if missing := list(set(asked).difference(kept)):
        known = vocabulary.counts(np.array(missing))
        common = np.array(list(map(commonness, vocabulary.texts(missing))))
        holders = np.where(known.own > 0, known.own, known.any)
        found = np.log((vocabulary.sections + BACKGROUND + 1) / (holders + BACKGROUND * common))
        kept.update(zip(missing, found.tolist(), strict=True))
    return np.array(list(map(kept.__getitem__, asked)))


def spread(vocabulary: Vocabulary, rows: Sequence[int]) -> NDArray[Any]:
    """Return the factors of idf for the pages of terms: ``1 - (n / (N + B))**2``.

    ``n`` of ``N`` pages have the term, and ``B`` is :data:`OTHER_PAGES`. A word on nearly every page
    distinguishes no page, even if few sections of each repeat it.
    """
    known, pages = vocabulary.counts(np.array(rows, np.intp)), vocabulary.pages + OTHER_PAGES
    return np.where(known.any > COMMON * pages, 1 - (known.pages / pages) ** 2, 1.0)
