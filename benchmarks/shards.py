"""A collection in several shards of one process: what each of many machines would do, in a thread of its own.

Each shard has its own documents and the statistics of all. An edit is told to the others as the whole numbers
that it changes; a question is ranked by all shards at once, which meet where a ranking needs all sections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from heapq import merge
from itertools import chain
from operator import itemgetter
from threading import Barrier
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from npl_index.ranking.evidence import DEPTH
from npl_index.ranking.indexing import Collection, IndexedDocument
from npl_index.ranking.parts import Postings, Statistics, with_elsewhere
from npl_index.ranking.reading import reach
from npl_index.ranking.scoring import Hit, Query, look
from npl_index.ranking.segments import segment_of
from npl_index.ranking.together import Best, Ranked

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBER = 8
"""Bytes of a number as it would be sent."""

PATIENCE = 60
"""Seconds that shards wait for one another at most."""


class Counted(NamedTuple):
    """What sections add to the statistics, or take off."""

    terms: Sequence[str]
    statistics: Statistics

    @classmethod
    def between(cls, before: Postings | None, after: Postings) -> Counted:
        """Return what made one state of a shard the next one; where there was none, all of it."""
        new = after.statistics
        counts = np.array((new.own, new.any, new.path), np.int64)
        sizes = np.array((new.sections, new.pages, new.words))
        if before is not None:
            old = before.statistics
            counts[:, : len(old.any)] -= np.array((old.own, old.any, old.path))
            sizes -= (old.sections, old.pages, old.words)
        rows = np.flatnonzero(counts.any(axis=0))
        common = np.asarray(new.common)[rows]
        return cls(after.terms.texts(rows.tolist()), Statistics(*sizes.tolist(), *counts[:, rows], common))

    @property
    def nbytes(self) -> int:
        """Bytes of it as it would be sent: each term, a line end and three numbers of four bytes."""
        return sum(len(term.encode()) + 1 + 3 * 4 for term in self.terms) + 3 * NUMBER


class Meeting:
    """Where shards exchange what they know while a question is ranked.

    :param sent: bytes that each of them has sent so far.
    """

    def __init__(self, size: int) -> None:
        self.sent = [0] * size
        self._barrier = Barrier(size, timeout=PATIENCE)
        self._said: list[Any] = [None] * size

    def exchange(self, shard: int, said: Any, nbytes: int) -> list[Any]:
        """Say something, and return what all say."""
        self.sent[shard] += nbytes
        self._said[shard] = said
        self._barrier.wait()
        every = list(self._said)
        self._barrier.wait()
        return every

    def leave(self) -> None:
        """Tell the others not to wait."""
        self._barrier.abort()


class Participant:
    """One shard's side of a meeting; see :class:`npl_index.ranking.together.Together`.

    :param paths: of the shard's documents, which say which of equal sections comes first.
    :param places: positions of documents among those of all shards, by their paths.
    """

    def __init__(
        self, meeting: Meeting, number: int, paths: Sequence[str], places: Callable[[str], int]
    ) -> None:
        self._meeting, self._number, self._paths, self._places = meeting, number, paths, places

    def most(self, *arrays: NDArray[Any]) -> Sequence[float]:
        """Return the highest number of each array, at least 0."""
        own = [float(array.max(initial=0.0)) for array in arrays]
        every = self._meeting.exchange(self._number, own, NUMBER * len(own))
        return [max(column) for column in zip(*every, strict=True)]

    def total(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of whole numbers."""
        every: NDArray[Any] = sum(self._meeting.exchange(self._number, counts, NUMBER * counts.size))
        return every

    def read(self, best: Best) -> int:
        """Return how many of the best, from the first, are among those of all that are read."""
        documents, sections = best.collection.locate(best.numbers)
        lengths = best.collection.postings.lengths[best.numbers].tolist()
        rows = self._merged(best.values, documents, sections, lengths)[:DEPTH]
        first = rows[: reach(np.array([length for *_, length in rows]))]
        return sum(shard == self._number for _, _, _, shard, _ in first)

    def ranking(self, ranked: Ranked) -> Ranked:
        """Return the best of all."""
        rows = self._merged(ranked.values, ranked.documents, ranked.sections, ranked.parts.T.tolist())
        values, paths, sections, _, parts = zip(*rows, strict=True) if rows else ((),) * 5
        return Ranked(np.array(values), [self._places(path) for path in paths], sections, np.array(parts).T)

    def _merged(
        self, values: NDArray[Any], documents: Sequence[int], sections: Sequence[int], more: Sequence[Any]
    ) -> list[tuple[float, str, int, int, Any]]:
        """Return the sections of all: value, path, section, shard and something else of each, in order."""
        paths = [self._paths[document] for document in documents]
        own = list(zip((-values).tolist(), paths, sections, [self._number] * len(paths), more, strict=True))
        size = sum(
            len(path.encode()) + 1 + NUMBER * (2 + len(np.atleast_1d(one))) for _, path, *_, one in own
        )
        every = merge(*self._meeting.exchange(self._number, own, size), key=itemgetter(0, 1, 2))
        return [(-value, *others) for value, *others in every]


class Answer(NamedTuple):
    """What shards found.

    :param hits: best first; documents are numbered among all.
    :param sent: bytes that each shard sent.
    """

    hits: list[Hit]
    sent: list[int]


class Shards:
    """A collection in shards; documents have the order of their paths.

    :param collections: of each shard its own documents, with the statistics of all.
    """

    def __init__(self, parts: Sequence[Sequence[IndexedDocument]]) -> None:
        spare = next(iter(chain.from_iterable(parts)))
        alone = [_collection(part) if part else _collection([spare]).changed([]) for part in parts]
        counted = [Counted.between(None, one.postings) for one in alone]
        self.collections = [
            _told(one, (other for at, other in enumerate(counted) if at != number))
            for number, one in enumerate(alone)
        ]
        self._pool = ThreadPoolExecutor(len(parts))

    @property
    def paths(self) -> list[str]:
        """Those of all documents, in their order."""
        return sorted(chain.from_iterable(shard.paths for shard in self.collections))

    def change(self, number: int, gone: Iterable[str], come: Sequence[IndexedDocument]) -> int:
        """Take documents off one shard, add others, and tell the other shards; return the bytes of that."""
        shard, gone = self.collections[number], set(gone)
        kept = [at for at, path in enumerate(shard.paths) if path not in gone]
        paths = [*shard.paths, *map(_path, come)]
        order = sorted([*kept, *range(len(shard.paths), len(paths))], key=paths.__getitem__)
        changed = shard.changed(order, [segment_of(come)] if come else [])
        self.collections[number] = changed.with_documents((), [paths[at] for at in order])
        told = Counted.between(shard.postings, changed.postings)
        for other, one in enumerate(self.collections):
            if other != number:
                self.collections[other] = _told(one, [told])
        return told.nbytes

    def rank(self, query: Query) -> Answer:
        """Return what a question finds; every shard finds the same."""
        meeting = Meeting(len(self.collections))
        places = {path: place for place, path in enumerate(self.paths)}

        def ask(number: int) -> list[Hit]:
            shard = self.collections[number]
            together = Participant(meeting, number, shard.paths, places.__getitem__)
            try:
                return look(shard, query, together=together).hits
            except BaseException:
                meeting.leave()
                raise

        hits, *others = self._pool.map(ask, range(len(self.collections)))
        if any(other != hits for other in others):
            raise AssertionError("shards disagree")
        return Answer(hits, meeting.sent)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def _path(indexed: IndexedDocument) -> str:
    return indexed.document.fingerprint.path


def _collection(documents: Sequence[IndexedDocument]) -> Collection:
    """Return documents in the order of their paths."""
    return Collection.build(sorted(documents, key=_path))


def _told(collection: Collection, changes: Iterable[Counted]) -> Collection:
    """Return a shard's collection after others told what they have."""
    postings = collection.postings
    for change in changes:
        postings = with_elsewhere(postings, *change)
    return replace(collection, postings=postings)
