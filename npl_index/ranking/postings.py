"""Inverted index: term to sections, with BM25 statistics.

Counting is per document (:func:`count`, through rank-bm25, one model per field); a collection of one or
many documents shares merged statistics (:func:`merge`). The fields of a section are its heading, its path
(the headings above it and the words of the file's name) and its body.

A posting holds the section's *mass* for the term, which is BM25F's weighted sum of the term's counts, each
divided by its field's length norm (Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple
weighted fields", 2004)::

    mass = sum over fields of  weight * count / (1 - b + b * length / average length)

A query term then gives a section ``idf * mass / (mass + K1)``.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from rapidfuzz import process
from rapidfuzz.distance import OSA

from npl_index.ranking.analysis import RARE, commonness, without_compounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

K1 = 1.3
"""Saturation: a section whose mass is ``K1`` has half of what a term can give."""

FIELD_WEIGHTS = (4.5, 0.7, 1.0)
"""What an occurrence in heading, path and body counts."""

FIELD_NORMS = (0.0, 0.0, 0.55)
"""``b`` of BM25 for heading, path and body: 0 ignores the field's length, 1 divides by it."""

BACKGROUND = 12.0
"""Sections of ordinary prose that every collection is thought to hold besides its own. In a file of ten
sections it is chance which word stands in one of them only; what is known about English says more."""

MAX_TERMS = 250_000
"""Different terms kept of one document. Prose of ten megabytes has a tenth of that."""

MIN_PART = 3
MIN_SHARE = 0.3
VARIANT_WEIGHT = 0.5
"""A word can stand for another that begins with it, or that it ends with: it needs at least ``MIN_PART``
letters and ``MIN_SHARE`` of the longer one's, and counts ``VARIANT_WEIGHT`` times the share it has."""

MAX_EXTENSIONS = 24
_VARIANTS_KEPT = 4096
_SHORT_WORD = 7
_TERM_BYTES = 70
_POSTING_BYTES = 6
_FIRST = 0x5D
_SURROGATES = 0xD800
_SURROGATE_COUNT = 0x800


def symbol(row: int) -> str:
    """Return the character that stands for a document's term in its texts.

    Characters that JSON would escape and UTF-8 would refuse are left out.
    """
    code = row + _FIRST
    return chr(code if code < _SURROGATES else code + _SURROGATE_COUNT)


def _row(char: str) -> int:
    code = ord(char)
    return code - _FIRST if code < _SURROGATES else code - _FIRST - _SURROGATE_COUNT


@dataclass(frozen=True, slots=True)
class Counts:
    """Terms of one document, counted.

    Row ``r`` is ``terms[r]``; its postings are those from ``starts[r]`` to ``starts[r + 1]``.

    :param terms: sorted, without repetition.
    :param headings: one text per section, one character (:func:`symbol`) per term.
    :param bodies: the same for the bodies.
    :param starts: one more than there are terms, uint32.
    :param sections: section of each posting, ascending within a term, uint16 or uint32.
    :param in_heading: occurrences in the section's heading, at most 255, uint8.
    :param in_path: occurrences in its path, at most 255, uint8.
    :param in_body: occurrences in its body, at most 65,535, uint16.
    :param lengths: terms per field (heading, path, body) and section; shape (3, sections), uint32.
    """

    terms: tuple[str, ...]
    headings: tuple[str, ...]
    bodies: tuple[str, ...]
    starts: NDArray[Any]
    sections: NDArray[Any]
    in_heading: NDArray[Any]
    in_path: NDArray[Any]
    in_body: NDArray[Any]
    lengths: NDArray[Any]

    ARRAYS: ClassVar[dict[str, str]] = {
        "starts": "<u4",
        "sections": "<u4",
        "in_heading": "<u1",
        "in_path": "<u1",
        "in_body": "<u2",
        "lengths": "<u4",
    }
    """Number type of each array when it is stored."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored."""
        return {name: getattr(self, name).astype(kind) for name, kind in self.ARRAYS.items()}

    @classmethod
    def restore(
        cls,
        terms: tuple[str, ...],
        headings: tuple[str, ...],
        bodies: tuple[str, ...],
        stored: dict[str, bytes],
    ) -> Counts:
        """Make counts from their texts and the bytes of their arrays.

        :raises ValueError: the bytes are no whole number of values.
        """
        import numpy as np  # see count

        arrays = {name: np.frombuffer(stored[name], dtype=kind) for name, kind in cls.ARRAYS.items()}
        arrays["lengths"] = arrays["lengths"].reshape(3, len(headings))
        arrays["sections"] = arrays["sections"].astype(_id_type(len(headings)))
        return cls(tuple(map(sys.intern, terms)), headings, bodies, **arrays)

    def is_sound(self) -> bool:
        """Return whether all numbers fit together, as they do unless they come from a damaged file."""
        starts, postings = self.starts, len(self.sections)
        if len(starts) != len(self.terms) + 1 or starts[0] != 0 or starts[-1] != postings:
            return False
        return bool(
            (starts[1:] >= starts[:-1]).all()
            and len(self.in_heading) == len(self.in_path) == len(self.in_body) == postings
            and (self.sections < len(self.headings)).all()
            and all(one < other for one, other in pairwise(self.terms))
            and max(map(_row, set().union(*self.headings, *self.bodies)), default=-1) < len(self.terms)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes; an estimate."""
        texts = sum(map(sys.getsizeof, self.headings)) + sum(map(sys.getsizeof, self.bodies))
        return texts + _TERM_BYTES * len(self.terms) + _POSTING_BYTES * len(self.sections)

    def spelt_headings(self) -> Iterator[str]:
        """Return the terms of each section's heading, compounds left out, joined by blanks."""
        for text in self.headings:
            yield " ".join(without_compounds(self.terms[_row(char)] for char in text))


def count(headings: Sequence[list[str]], paths: Sequence[list[str]], bodies: Sequence[list[str]]) -> Counts:
    """Count the terms of a document's sections, given per section in document order.

    One ``BM25Plus`` is fitted to each field; counts and lengths are read from the fitted models.
    """
    # numpy and, through it, rank_bm25 cost a tenth of a second to import: a process that never searches
    # does without.
    import numpy as np

    fields = (headings, paths, bodies)
    terms = tuple(sorted({term for texts in fields for words in texts for term in words}))[:MAX_TERMS]
    symbols = {term: symbol(row) for row, term in enumerate(terms)}
    spelt = [
        tuple("".join([symbols[w] for w in words if w in symbols]) for words in texts) for texts in fields
    ]
    size = len(headings)
    fitted = [_fit(texts) for texts in spelt]
    found, position = np.unique(
        np.concatenate([rows * size + owners for rows, owners, _, _ in fitted]), return_inverse=True
    )
    tallies = np.zeros((len(fields), len(found)), dtype=np.int64)
    begin = 0
    for tally, (_, _, times, _) in zip(tallies, fitted, strict=True):
        tally[position[begin : begin + len(times)]] = times
        begin += len(times)
    return Counts(
        terms=terms,
        headings=spelt[0],
        bodies=spelt[2],
        starts=np.searchsorted(found, np.arange(len(terms) + 1) * size).astype(np.uint32),
        sections=(found % size).astype(_id_type(size)),
        in_heading=np.minimum(tallies[0], 0xFF).astype(np.uint8),
        in_path=np.minimum(tallies[1], 0xFF).astype(np.uint8),
        in_body=np.minimum(tallies[2], 0xFFFF).astype(np.uint16),
        lengths=np.array([lengths for _, _, _, lengths in fitted], dtype=np.uint32),
    )


def _fit(texts: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[int]]:
    """Fit a model to one field: rows, sections and counts of its postings, and its lengths."""
    import numpy as np
    from rank_bm25 import BM25Plus

    # The library divides by the summed length of all texts, so one field must not be empty everywhere.
    model = BM25Plus(texts if any(texts) else [symbol(0)])
    frequencies = model.doc_freqs if any(texts) else []
    seen = "".join("".join(section) for section in frequencies)
    rows = np.frombuffer(seen.encode("utf-32-le"), dtype="<u4").astype(np.int64)
    rows -= np.where(rows < _SURROGATES, _FIRST, _FIRST + _SURROGATE_COUNT)
    owners = np.repeat(np.arange(len(frequencies)), [len(section) for section in frequencies])
    times = np.fromiter(
        (n for section in frequencies for n in section.values()), dtype=np.int64, count=len(rows)
    )
    return rows, owners, times, list(map(len, texts)) if not frequencies else model.doc_len


def _id_type(size: int) -> str:
    return "uint16" if size <= 0xFFFF else "uint32"


@dataclass(frozen=True, slots=True)
class Postings:
    """Merged postings of one or many documents; sections are numbered through all documents.

    :param size: sections.
    :param rows: term to row.
    :param terms: the terms in the order of their rows, which is sorted.
    :param idf: one per row: ``log((N + B + 1) / (n + B * p))`` for ``n`` of ``N`` sections that hold the
        term in heading or body, ``B`` sections of background, ``p`` the term's share of those. Without
        background it is the idf of ``BM25Plus``.
    :param starts: where each row's postings begin, and where the last end.
    :param ids: section of each posting, ascending within a row.
    :param masses: mass of each posting, float32.
    :param name_starts: where each row's postings in headings and paths begin, and where the last end.
    :param name_ids: sections that have the term in heading or path.
    :param name_masses: the part of the mass that comes from there, float32.
    :param heading_shares: the term's share of the heading, by idf; 0 where only the path has it, float32.
    :param body_norms: length norm of each section's body.
    """

    size: int
    rows: dict[str, int]
    terms: Sequence[str]
    idf: NDArray[Any]
    starts: list[int]
    ids: NDArray[Any]
    masses: NDArray[Any]
    name_starts: list[int]
    name_ids: NDArray[Any]
    name_masses: NDArray[Any]
    heading_shares: NDArray[Any]
    body_norms: list[float]
    _variants: dict[str, tuple[tuple[int, float], ...]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def variants(self, term: str) -> tuple[tuple[int, float], ...]:
        """Return the rows that stand for a query's term, with their share of its weight.

        The term itself has 1. Words that begin with it, and those it begins or ends with, have up to
        ``VARIANT_WEIGHT``, less the more letters one has beyond the other: ``env`` and ``environ``,
        ``kube`` and ``kuberay``. A word that is unknown has the words most like it, too.
        """
        known = self._variants.get(term)
        if known is None:
            known = tuple(self._find_variants(term))
            if len(self._variants) >= _VARIANTS_KEPT:
                self._variants.clear()
            self._variants[term] = known
        return known

    def _find_variants(self, term: str) -> Iterator[tuple[int, float]]:
        row = self.rows.get(term)
        if row is not None:
            yield row, 1.0
        if len(term) < MIN_PART or not term[0].isalpha():
            return
        others = dict(self._parts_and_extensions(term))
        if row is None:
            others.update(dict.fromkeys(self._misspelt(term), 1.0))
        for other, share in others.items():
            yield other, VARIANT_WEIGHT * share

    def _parts_and_extensions(self, term: str) -> Iterator[tuple[int, float]]:
        length = len(term)
        for part_length in range(max(MIN_PART, int(length * MIN_SHARE)), length):
            for part in (term[:part_length], term[-part_length:]):
                row = self.rows.get(part)
                if row is not None:
                    yield row, part_length / length
        begin = bisect_left(self.terms, term)
        for row in range(begin, min(begin + MAX_EXTENSIONS, len(self.terms))):
            other = self.terms[row]
            if not other.startswith(term):
                break
            if len(other) > length and length >= MIN_SHARE * len(other) and other.isalpha():
                yield row, length / len(other)

    def _misspelt(self, term: str) -> list[int]:
        """Rows of the words nearest to an unknown one: same first letter, nearly the same length, at most
        two letters wrong, left out, added or swapped (one in short words).
        """
        if len(term) == MIN_PART or commonness(term) > RARE:
            return []
        begin = bisect_left(self.terms, term[0])
        end = bisect_left(self.terms, chr(ord(term[0]) + 1))
        near = {
            row: self.terms[row] for row in range(begin, end) if abs(len(self.terms[row]) - len(term)) <= 1
        }
        allowed = 1 if len(term) <= _SHORT_WORD else 2
        matches = process.extract(term, near, scorer=OSA.distance, score_cutoff=allowed, limit=3)
        return [row for _, distance, row in matches if distance == matches[0][1]]


def merge(parts: Sequence[Counts]) -> Postings:
    """Join documents' counts into postings with common statistics."""
    import numpy as np

    size = sum(len(part.headings) for part in parts)
    terms: Sequence[str] = (
        parts[0].terms if len(parts) == 1 else sorted({t for part in parts for t in part.terms})
    )
    rows = {term: row for row, term in enumerate(terms)}
    owner, section, tallies = _joined(parts, rows)
    tallies[1][_held_by_all(owner, tallies[1], size)] = 0
    lengths = np.concatenate([part.lengths for part in parts], axis=1).astype(np.float64)
    norms = [_length_norm(b, of_field) for b, of_field in zip(FIELD_NORMS, lengths, strict=True)]
    in_heading, in_path, in_body = (
        weight * tally / norm[section]
        for weight, tally, norm in zip(FIELD_WEIGHTS, tallies, norms, strict=True)
    )
    name_mass = in_heading + in_path
    named = np.flatnonzero(name_mass)
    own = np.bincount(owner[(in_heading + in_body) > 0], minlength=len(terms))
    holders = np.where(own > 0, own, np.bincount(owner, minlength=len(terms)))
    common = np.fromiter(map(commonness, terms), dtype=np.float64, count=len(terms))
    bounds = np.arange(len(terms) + 1)
    idf = np.log((size + BACKGROUND + 1) / (holders + BACKGROUND * common))
    in_this = np.where(in_heading > 0, idf[owner], 0)[named]
    whole = np.bincount(section[named], in_this, size)[section[named]]
    return Postings(
        size=size,
        rows=rows,
        terms=terms,
        idf=idf.astype(np.float32),
        starts=np.searchsorted(owner, bounds).tolist(),
        ids=section.astype(_id_type(size)),
        masses=(name_mass + in_body).astype(np.float32),
        name_starts=np.searchsorted(owner[named], bounds).tolist(),
        name_ids=section[named].astype(_id_type(size)),
        name_masses=name_mass[named].astype(np.float32),
        heading_shares=np.divide(in_this, whole, out=np.zeros(len(named)), where=whole > 0).astype(
            np.float32
        ),
        body_norms=norms[2].tolist(),
    )


def _joined(
    parts: Sequence[Counts], rows: dict[str, int]
) -> tuple[NDArray[Any], NDArray[Any], list[NDArray[Any]]]:
    """Rows, sections and counts per field of all postings, ordered by row and section."""
    import numpy as np

    owners, sections, first = [], [], 0
    for part in parts:
        own_rows = np.fromiter((rows[term] for term in part.terms), dtype=np.int64, count=len(part.terms))
        owners.append(np.repeat(own_rows, part.starts[1:] - part.starts[:-1]))
        sections.append(part.sections.astype(np.int64) + first)
        first += len(part.headings)
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    tallies = [
        np.concatenate([getattr(part, name) for part in parts])[order].astype(np.float64)
        for name in ("in_heading", "in_path", "in_body")
    ]
    return owner[order], np.concatenate(sections)[order], tallies


def _held_by_all(owner: NDArray[Any], in_path: NDArray[Any], size: int) -> NDArray[Any]:
    """Find the postings of terms that every section's path holds, such as those of a common folder."""
    import numpy as np

    rows = int(owner[-1]) + 1 if len(owner) else 0
    common: NDArray[Any] = np.bincount(owner[in_path > 0], minlength=rows) == size
    return np.asarray(common[owner])


def _length_norm(b: float, lengths: NDArray[Any]) -> NDArray[Any]:
    return 1 - b + b * lengths / (lengths.mean() or 1.0)
