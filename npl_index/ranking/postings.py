"""Which section holds which term, how often, in which field.

The fields of a section are its heading, its path (the headings above it and the words of the file's name) and
its body. rank-bm25 counts: one ``BM25Plus`` per field is built from the sections' lists of terms, and its
``doc_freqs`` (term to count, per section) and ``doc_len`` (terms per section) become the arrays here. A model
knows one field and one file only; :mod:`~npl_index.ranking.bm25f` extends its score to three fields and any
number of files, and :func:`~npl_index.ranking.evidence.from_titles` uses a model's own score.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, ClassVar

from npl_index.ranking.analysis import without_compounds
from npl_index.ranking.arrays import NDArray, np

MAX_TERMS = 250_000
"""Different terms kept of one document. Prose of ten megabytes has a tenth of that."""

_TERM_BYTES = 70
_POSTING_BYTES = 6


@dataclass(frozen=True, slots=True)
class Counts:
    """Terms of one document, counted.

    Row ``r`` is ``terms[r]``; its postings are those from ``starts[r]`` to ``starts[r + 1]``.

    :param terms: sorted, without repetition.
    :param headings: terms of each section's heading, in order.
    :param bodies: rows of the terms of each section's body, in order, one section after another, uint32.
    :param starts: one more than there are terms, uint32.
    :param sections: section of each posting, ascending within a term, uint16 or uint32.
    :param in_heading: occurrences in the section's heading, at most 255, uint8.
    :param in_path: occurrences in its path, at most 255, uint8.
    :param in_body: occurrences in its body, at most 65,535, uint16.
    :param lengths: terms per field (heading, path, body) and section; shape (3, sections), uint32.
    """

    terms: tuple[str, ...]
    headings: tuple[tuple[str, ...], ...]
    bodies: NDArray[Any]
    starts: NDArray[Any]
    sections: NDArray[Any]
    in_heading: NDArray[Any]
    in_path: NDArray[Any]
    in_body: NDArray[Any]
    lengths: NDArray[Any]

    ARRAYS: ClassVar[dict[str, str]] = {
        "headings": "<u4",
        "bodies": "<u4",
        "starts": "<u4",
        "sections": "<u4",
        "in_heading": "<u1",
        "in_path": "<u1",
        "in_body": "<u2",
        "lengths": "<u4",
    }
    """Number type of each array when it is stored."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored; headings as rows of their terms."""
        rows = {term: row for row, term in enumerate(self.terms)}
        values = {name: getattr(self, name) for name in self.ARRAYS}
        values["headings"] = [rows[term] for section in self.headings for term in section]
        return {name: np.array(values[name], kind) for name, kind in self.ARRAYS.items()}

    @classmethod
    def restore(cls, terms: Sequence[str], sections: int, stored: dict[str, bytes]) -> Counts:
        """Make counts from the bytes of their arrays.

        :raises ValueError: the numbers do not fit together, so the bytes must be damaged.
        """
        arrays = {name: np.frombuffer(stored[name], dtype=kind) for name, kind in cls.ARRAYS.items()}
        starts, owners = arrays["starts"], arrays["sections"]
        sound = (
            len(starts) == len(terms) + 1
            and starts[0] == 0
            and starts[-1] == len(owners)
            and (starts[1:] >= starts[:-1]).all()
            and (owners < sections).all()
            and {len(arrays[name]) for name in ("in_heading", "in_path", "in_body")} == {len(owners)}
            and all((arrays[name] < len(terms)).all() for name in ("headings", "bodies"))
            and int(arrays["lengths"][2 * sections :].sum(dtype="int64")) == len(arrays["bodies"])
            and all(one < other for one, other in pairwise(terms))
        )
        if not sound:
            raise ValueError("the numbers of a stored index do not fit together")
        lengths = arrays["lengths"] = arrays["lengths"].reshape(3, sections)
        arrays["sections"] = owners.astype(id_type(sections))
        interned = tuple(map(sys.intern, terms))
        headings = _split(interned, arrays.pop("headings"), lengths[0])
        return cls(interned, headings, **arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes; an estimate."""
        texts = sum(map(sys.getsizeof, self.headings)) + self.bodies.nbytes
        return texts + _TERM_BYTES * len(self.terms) + _POSTING_BYTES * len(self.sections)

    def spelt_headings(self) -> Iterator[str]:
        """Return the terms of each section's heading, compounds left out, joined by spaces."""
        for heading in self.headings:
            yield " ".join(without_compounds(heading))


def _split(terms: Sequence[str], rows: NDArray[Any], lengths: NDArray[Any]) -> tuple[tuple[str, ...], ...]:
    """Turn rows into terms, cut into sections of these lengths.

    :raises ValueError: the lengths do not add up.
    """
    ends = lengths.cumsum(dtype="int64").tolist()
    if ends[-1] != len(rows):
        raise ValueError("the sections of a stored index have other lengths than their terms")
    words = [terms[row] for row in rows.tolist()]
    return tuple(tuple(words[begin:end]) for begin, end in pairwise([0, *ends]))


def count(headings: Sequence[list[str]], paths: Sequence[list[str]], bodies: Sequence[list[str]]) -> Counts:
    """Count the terms of a document's sections, given per section in document order."""
    from rank_bm25 import BM25Plus  # slow to import, see arrays

    fields = [headings, paths, bodies]
    terms = sorted(set(chain.from_iterable(chain.from_iterable(fields))))
    if len(terms) > MAX_TERMS:
        kept = set(terms[:MAX_TERMS])
        fields = [[[word for word in words if word in kept] for words in texts] for texts in fields]
        terms = terms[:MAX_TERMS]
    rows = {term: row for row, term in enumerate(terms)}
    size = len(headings)
    models = [BM25Plus(texts) for texts in fields]
    row = rows.__getitem__
    # A posting is numbered row * size + section, so that sorting the numbers sorts the postings.
    numbers = []
    for model in models:
        frequencies = model.doc_freqs
        held = np.fromiter(map(row, chain.from_iterable(frequencies)), np.int64)
        numbers.append(held * size + np.arange(size).repeat(list(map(len, frequencies))))
    found, position = np.unique(np.concatenate(numbers), return_inverse=True)
    tallies = np.zeros((len(fields), len(found)), dtype=np.int64)
    ends = np.cumsum(list(map(len, numbers)))
    for tally, model, own in zip(tallies, models, np.split(position, ends[:-1]), strict=True):
        times = chain.from_iterable(section.values() for section in model.doc_freqs)
        tally[own] = np.fromiter(times, np.int64, len(own))
    return Counts(
        terms=tuple(terms),
        headings=tuple(map(tuple, fields[0])),
        bodies=np.fromiter(map(row, chain.from_iterable(fields[2])), np.uint32, sum(models[2].doc_len)),
        starts=np.searchsorted(found, np.arange(len(terms) + 1) * size).astype(np.uint32),
        sections=(found % size).astype(id_type(size)),
        in_heading=np.minimum(tallies[0], 0xFF).astype(np.uint8),
        in_path=np.minimum(tallies[1], 0xFF).astype(np.uint8),
        in_body=np.minimum(tallies[2], 0xFFFF).astype(np.uint16),
        lengths=np.array([model.doc_len for model in models], dtype=np.uint32),
    )


def id_type(size: int) -> str:
    """Return the smallest number type for sections below ``size``."""
    return "uint16" if size <= 0xFFFF else "uint32"
