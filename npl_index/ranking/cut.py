"""The relevance cut: how many of the ranked sections are returned.

A fixed number of hits is wrong for nearly every question, and so is a fixed score: scores of different
questions cannot be compared. What a further section is worth depends on three things that can:

- its score, as a share of the best one's;
- how much of the query what was taken before leaves open, and how many words the query has. A short question
  is answered by one section; of a task with many aspects each section answers a few;
- its size, since a long section costs what several short ones do.

The first section that is worth less than asked ends the list, so that nothing is handed over in place of
something better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import exp, log
from typing import Any, NamedTuple

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Concept
from npl_index.ranking.evidence import OTHER_FORM
from npl_index.ranking.indexing import Collection
from npl_index.ranking.reading import Sought, Texts, held, read
from npl_index.ranking.scoring import Hit, Looked, Query

ORDINARY = 800
"""Bytes of an ordinary section; longer ones need a higher score, shorter ones a lower one."""

BRIEF = 16
"""Words of a short question; a task with many aspects has several times as many. Of a question so long a
third counts as settled by the first section, whatever it covers, of a longer one less."""

SAME_DOCUMENT = 0.25
"""What a task of many aspects takes off the worth of a section for each better one of the same document, as a
share of it: such a task needs several documents. A short question takes off less."""

HARDNESS = 4
"""Power of the covered share: half the words of a question answer hardly any of it."""

AS_GOOD = 0.9
"""A section with this share of the best score is a second answer to the question."""

OTHER_SUBJECT = 0.4
RELATED = 0.4
"""Share of the question that makes another subject, and share of the best score that its section needs."""

FEW_DOCUMENTS = 4

_NEAR_TOP = 20
_LEAST = ORDINARY / 4
_FIRST = 12
"""Sections that are read first; mostly no more are needed."""


class Demand(NamedTuple):
    """Which share of the best score a section needs.

    :param open: while nothing of the query is settled.
    :param answered: when all of it is.
    :param size: by what share more for a section e times as long as an ordinary one.
    """

    open: float
    answered: float
    size: float

    def least(self, settled: float, size: int) -> float:
        """Return the share that a section needs, at most 1.

        :param settled: share of the query that the sections taken so far settle.
        :param size: bytes of the section.
        """
        share = self.open + (self.answered - self.open) * settled
        return min(1.0, share * (1 + self.size * log(max(size, _LEAST) / ORDINARY)))


FEW = Demand(open=0.85, answered=0.85, size=0.0)
MANY = Demand(open=0.4, answered=0.6, size=0.2)
"""What is asked for without a budget, and with one: the caller said how much is welcome. Without one all that
is nearly as good as the best comes, and nothing else.

They are those that kept the labelled sections with the fewest tokens (``benchmarks/relevance``)."""


def cut(
    hits: Sequence[Hit],
    collection: Collection,
    query: Query,
    *,
    generous: bool = False,
    looked: Looked,
) -> list[Hit]:
    """Keep the hits that are worth handing over, best first; further ones of a document come later.

    Headings without text of their own are left out; what stands below them has part of their score. A section
    whose heading is a topic that the caller named is always worth it.

    :param hits: best first.
    :param generous: a budget limits the answer, so that more may be of use.
    :param looked: what the hits come from; what was read there is not read again.
    """
    shares, concepts = _Shares(looked), looked.concepts
    demand, opened = (MANY if generous else FEW), _Open(concepts, len(query.keywords.weights))
    further = 1 - SAME_DOCUMENT * opened.aspects
    kept: list[Hit] = []
    for some in (hits[:_FIRST], hits[_FIRST:]):
        for hit, held_by in zip(some, shares.of(some), strict=True):
            size = collection.size_of(hit.document, hit.section)
            if not size:
                continue
            if kept and hit.score.topic < OTHER_FORM:
                least = demand.least(opened.settled, size)
                if hit.score.total < least * kept[0].score.total:
                    return _mixed(kept, further)
            kept.append(hit)
            opened.take(held_by.tolist())
    return _mixed(kept, further)


def best_of_each_subject(
    hits: Sequence[Hit], collection: Collection, query: Query, *, looked: Looked
) -> list[Hit]:
    """Keep the best hit, those as good, and the best one of each further subject of the question.

    Where a few documents were asked for, each is a subject.

    :param hits: best first.
    :param looked: what the hits come from.
    """
    shares, concepts = _Shares(looked), looked.concepts
    opened = _Open(concepts, len(query.keywords.weights))
    first = [hit for hit in hits[:_NEAR_TOP] if collection.size_of(hit.document, hit.section)]
    kept: list[Hit] = []
    few = len(collection.paths) <= FEW_DOCUMENTS
    for hit, held_by in zip(first, shares.of(first), strict=True):
        share = hit.score.total / kept[0].score.total if kept else 1.0
        other = few and all(hit.document != one.document for one in kept)
        other = other or opened.gain(held_by.tolist()) >= OTHER_SUBJECT
        if share >= AS_GOOD or (share >= RELATED and other):
            kept.append(hit)
            opened.take(held_by.tolist())
    return kept


def _mixed(hits: Sequence[Hit], further: float) -> list[Hit]:
    """Sort hits, best first, by their worth.

    :param further: by what the total of a hit is multiplied for each better one of the same document.
    """
    better: Counter[int] = Counter()

    def worth(hit: Hit) -> float:
        better[hit.document] += 1
        return -hit.score.total * further ** better[hit.document]

    return sorted(hits, key=worth)


class _Open:
    """What of a query no section that was taken covers."""

    def __init__(self, concepts: Sequence[Concept], words: int) -> None:
        self.aspects = 1 - exp(-words / BRIEF)
        self._weights = [concept.weight for concept in concepts]
        self._whole = sum(self._weights) or 1.0
        self._open = [1.0] * len(concepts)
        self.settled = 0.0

    def gain(self, shares: Sequence[float]) -> float:
        """Return the share of the query that a section with these shares of the concepts would add."""
        rows = zip(self._weights, self._open, shares, strict=True)
        return sum(weight * max(0.0, rest - (1 - share)) for weight, rest, share in rows) / self._whole

    def take(self, shares: Sequence[float]) -> None:
        """Take a section that has these shares of the concepts."""
        self._open = [min(rest, 1 - share) for rest, share in zip(self._open, shares, strict=True)]
        rest = sum(weight * rest for weight, rest in zip(self._weights, self._open, strict=True))
        covered = 1 - rest / self._whole
        self.settled = 1 - self.aspects * (1 - covered**HARDNESS)


class _Shares:
    """The shares that sections have of the concepts; those that were read before are not read again."""

    def __init__(self, looked: Looked) -> None:
        self._looked = looked
        self._columns: dict[int, NDArray[Any]] = {}
        if looked.texts is not None:
            self._add(looked.texts)

    def _add(self, texts: Texts) -> None:
        self._columns.update(zip(texts.numbers.tolist(), held(texts).T, strict=True))

    def of(self, hits: Sequence[Hit]) -> Iterator[NDArray[Any]]:
        """Return for each hit its shares."""
        passages, concepts = self._looked.passages, self._looked.concepts
        numbers = [passages.number(hit.document, hit.section) for hit in hits]
        others = [number for number in numbers if number not in self._columns]
        if others:
            self._add(read(passages.postings, np.array(others), Sought.of(concepts)))
        nothing = np.zeros(len(concepts))  # what is too long to be read covers nothing
        return (self._columns.get(number, nothing) for number in numbers)
