"""Some documents' sections and postings as arrays that never change, in memory or in a mapped file.

A segment holds counts and nothing that depends on other documents, so that it stays as it is whatever is
added or removed beside it. Rows, sections, pages and documents are numbered within it.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, NamedTuple, Protocol

from npl_index.markdown.sections import Section, SectionTree
from npl_index.ranking.analysis import commonness
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Counts
from npl_index.ranking.strings import KeptStrings, Strings
from npl_index.selectors.labels import fold, heading_label

LEVEL = 7
"""Bits of :attr:`Segment.levels` that hold the level; each bit above says that a section has a trait."""

_TRAITS = ("has_examples", "has_tables", "has_code", "has_definitions")

_NOT_NEEDED = getattr(mmap, "MADV_DONTNEED", None)
_BLANK = re.compile(r"\s*\Z")


class Indexed(Protocol):
    """A document whose sections and terms are known."""

    @property
    def tree(self) -> SectionTree:
        """Its sections."""
        ...

    @property
    def counts(self) -> Counts:
        """Its terms."""
        ...


class Lists(NamedTuple):
    """Lists of numbers, one after another.

    :param values: of all lists.
    :param starts: where each begins, and where the last one ends.
    """

    values: NDArray[Any]
    starts: NDArray[Any]

    def of(self, number: int) -> NDArray[Any]:
        """Return one list."""
        return self.values[self.starts[number] : self.starts[number + 1]]

    def gather(self, numbers: NDArray[Any], most: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return some lists, one after another, and their lengths.

        :param most: numbers of each list at most.
        """
        begins = self.starts[numbers]
        lengths = self.starts[numbers + 1] - begins
        lengths = lengths if most is None else np.minimum(lengths, most)
        values: NDArray[Any] = self.values[ranges(begins, lengths)]
        return values, lengths


def ranges(begins: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of some ranges, one after another."""
    # All ranges as one: number them through, then move each to where it begins.
    moves = begins - (lengths.cumsum() - lengths)
    numbers: NDArray[Any] = np.arange(int(lengths.sum())) + moves.repeat(lengths)
    return numbers


@dataclass(frozen=True)
class Segment:
    """Sections and postings of at least one document.

    Row ``r`` is the term ``terms`` has there; its postings are those from ``starts[r]`` to ``starts[r + 1]``.

    :param terms: of all documents.
    :param common: share of sections of ordinary prose that hold each term.
    :param starts: one more than there are terms.
    :param sections: section of each posting, ascending within a term.
    :param in_heading: occurrences in the section's heading.
    :param in_path: occurrences in its path.
    :param in_body: occurrences in its body.
    :param own: for each term the sections that hold it in heading or body.
    :param path: for each term the sections that hold it in their path.
    :param lengths: terms of each section's body.
    :param bodies: rows of the terms of each section's body, in order.
    :param headings: the same of its heading.
    :param named: rows of the different terms of each section's heading, ascending.
    :param files: rows of the different terms of each document's path.
    :param parents: parent of each section; its own number where there is none.
    :param page_starts: first section of each page, and the number of sections. A page is a document, or
        within a document that has several headings of level 1 the part below one of them.
    :param documents: first section of each document, and the number of sections.
    :param spelt: the terms of the headings there are, compounds left out, joined by spaces.
    :param spelt_in: sections of each.
    :param spelt_with: for each term the rows in ``spelt`` of the headings that hold it.
    :param labels: level and label of the headings there are, as :func:`labelled` writes them.
    :param labels_in: sections of each.
    :param folds: the names of sections there are, compared loosely (:func:`npl_index.selectors.labels.fold`).
    :param folds_in: sections of each; every section is in one of them.
    :param written: the same of headings as they are written, where that is another text.
    :param written_in: sections of each.
    :param levels: heading level of each section, and above it what its own text holds (:func:`holds`), uint8.
    :param titles: name of each document and of its first section in UTF-8, a NUL between.
    :param sizes: bytes of each section's own text; 0 where it is nothing but the heading.
    :param records: the sections of each document as bytes, for who makes its tree again; may be empty.
    :param tokens: the tokens of each document's sections (:func:`npl_index.tokens.sections.kept_counts`),
        uint32; may be empty.
    """

    terms: Strings
    common: NDArray[Any]
    starts: NDArray[Any]
    sections: NDArray[Any]
    in_heading: NDArray[Any]
    in_path: NDArray[Any]
    in_body: NDArray[Any]
    own: NDArray[Any]
    path: NDArray[Any]
    lengths: NDArray[Any]
    bodies: Lists
    headings: Lists
    named: Lists
    files: Lists
    parents: NDArray[Any]
    page_starts: NDArray[Any]
    documents: NDArray[Any]
    spelt: Strings
    spelt_in: Lists
    spelt_with: Lists
    labels: Strings
    labels_in: Lists
    folds: Strings
    folds_in: Lists
    written: Strings
    written_in: Lists
    levels: NDArray[Any]
    titles: Lists
    sizes: NDArray[Any]
    records: Lists
    tokens: Lists

    @property
    def size(self) -> int:
        """Number of sections."""
        return len(self.lengths)

    @property
    def document_count(self) -> int:
        """Number of documents."""
        return len(self.documents) - 1

    @property
    def page_count(self) -> int:
        """Number of pages."""
        return len(self.page_starts) - 1

    @cached_property
    def pages(self) -> NDArray[Any]:
        """Page of each section."""
        pages: NDArray[Any] = np.arange(self.page_count, dtype=np.uint32).repeat(np.diff(self.page_starts))
        return pages

    @cached_property
    def fold_row(self) -> NDArray[Any]:
        """For each section the row of its name in ``folds``."""
        rows = np.zeros(self.size, dtype=np.int32)
        lengths = np.diff(self.folds_in.starts)
        rows[self.folds_in.values] = np.arange(len(lengths), dtype=np.int32).repeat(lengths)
        return rows

    @cached_property
    def positions(self) -> NDArray[Any]:
        """Where each section stands on its page: 0 for the first, towards 1 for the last."""
        within = np.arange(self.size) - np.asarray(self.page_starts)[self.pages]
        positions: NDArray[Any] = within / np.diff(self.page_starts)[self.pages]
        return positions

    @cached_property
    def children(self) -> NDArray[Any]:
        """How many children each section has."""
        inside = np.flatnonzero(self.parents != np.arange(self.size))
        counts: NDArray[Any] = np.bincount(self.parents[inside], minlength=self.size).astype(np.uint16)
        return counts

    @property
    def mapped(self) -> bool:
        """Whether its arrays lie in a mapped file."""
        return isinstance(self.sections.base, mmap.mmap)

    def let_go(self) -> None:
        """Take what was read of a mapped file out of this process until it is looked at again."""
        data: Any = self.sections.base
        if isinstance(data, mmap.mmap) and _NOT_NEEDED is not None:
            data.madvise(_NOT_NEEDED)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        total = 0
        for field in fields(self):
            value = getattr(self, field.name)
            arrays = value if isinstance(value, Lists) else (value,)
            total += sum(getattr(array, "nbytes", 0) for array in arrays)
        return total


def holds(traits: Iterable[str]) -> int:
    """Return the bits that say that a section has some traits."""
    return sum((LEVEL + 1) << _TRAITS.index(name) for name in set(traits))


def labelled(level: int, label: str) -> str:
    """Return level and label of a heading as one string."""
    return f"{level} {label}"


def with_tokens(segment: Segment, found: Mapping[int, Sequence[int]]) -> Segment:
    """Return a segment with the tokens of some documents, by their numbers in it."""
    every = [found.get(one) or segment.tokens.of(one).tolist() for one in range(segment.document_count)]
    return replace(segment, tokens=_numbers(every, len(every)))


class Name(NamedTuple):
    """What a section is called, and what it holds.

    :param label: of its name, as readers see it.
    :param written: label of its heading, empty where that is the same.
    :param holds: what its own text holds, as :func:`holds` says.
    """

    level: int
    label: str
    written: str
    holds: int = 0

    @classmethod
    def of(cls, section: Section) -> Name:
        """Return what a section is called."""
        label = heading_label(section.name)
        same = section.heading == section.name or not section.index
        held = holds(name for name in _TRAITS if getattr(section.own_traits, name))
        return cls(section.level, label, "" if same else heading_label(section.heading), held)


class Layout(NamedTuple):
    """How the sections of some documents stand to each other.

    :param parents: of each section; its own number where there is none.
    :param page_starts: first section of each page, and the number of sections.
    :param names: of each section.
    :param titles: name of each document and of its first section, a NUL between.
    :param sizes: bytes of each section's own text; 0 where it is nothing but the heading.
    """

    parents: Sequence[int]
    page_starts: Sequence[int]
    names: Sequence[Name]
    titles: Sequence[str]
    sizes: Sequence[int]

    @classmethod
    def flat(cls, size: int) -> Layout:
        """Return the layout of sections without names that stand side by side on one page."""
        return cls(range(size), [0, size], [Name(1, "", "")] * size, ["\0"], [1] * size)


def segment_of(
    documents: Sequence[Indexed], records: Sequence[bytes] = (), tokens: Sequence[Sequence[int]] = ()
) -> Segment:
    """Make a segment of some documents, at least one, in memory.

    :param records: of each document, or none at all; so are the tokens.
    """
    parents: list[int] = []
    page_starts: list[int] = []
    names: list[Name] = []
    sizes: list[int] = []
    for indexed in documents:
        first, tree = len(parents), indexed.tree
        several = sum(section.level == 1 for section in tree.sections) > 1
        for section in tree.sections:
            number = first + section.index
            if section.index == 0 or (several and section.level == 1):
                page_starts.append(number)
            parents.append(number if section.parent is None else first + section.parent)
            names.append(Name.of(section))
            own = section.own_bytes
            begin, end = tree.line_starts[section.heading_lines.stop], tree.line_starts[section.own.stop]
            blank = _BLANK.match(tree.source, begin, end)
            sizes.append(0 if blank else own.stop - own.start)
    titles = [f"{one.tree.name}\0{one.tree.sections[0].name}" for one in documents]
    layout = Layout(parents, [*page_starts, len(parents)], names, titles, sizes)
    return segment_from([indexed.counts for indexed in documents], layout, records, tokens)


def segment_from(
    parts: Sequence[Counts],
    layout: Layout,
    records: Sequence[bytes] = (),
    tokens: Sequence[Sequence[int]] = (),
) -> Segment:
    """Make a segment of counts, at least one."""
    terms = parts[0].terms if len(parts) == 1 else sorted(set(chain.from_iterable(p.terms for p in parts)))
    known = KeptStrings(terms)
    rows = [np.array(known.rows(part.terms), dtype=np.uint32) for part in parts]
    firsts = list(accumulate((len(part.headings) for part in parts), initial=0))
    postings = _postings(parts, rows, firsts, len(terms))
    lengths = np.concatenate([part.lengths for part in parts], axis=1)
    words = chain.from_iterable(chain.from_iterable(part.headings) for part in parts)
    spelt, spelt_in = _by_text(text or None for part in parts for text in part.spelt_headings())
    names = layout.names
    labels, labels_in = _by_text(labelled(one.level, one.label) if one.level else None for one in names)
    folds, folds_in = _by_text(fold(one.label) for one in names)
    written, written_in = _by_text(fold(one.written) if one.written else None for one in names)
    named = _held_by(postings, postings["in_heading"] > 0, firsts[-1])
    return Segment(
        terms=known,
        common=np.fromiter(map(commonness, terms), dtype=np.float64, count=len(terms)),
        **postings,
        lengths=lengths[2],
        bodies=Lists(
            np.concatenate([own[part.bodies] for part, own in zip(parts, rows, strict=True)]),
            ends(lengths[2]),
        ),
        headings=Lists(np.array(known.rows(list(words)), dtype=np.uint32), ends(lengths[0])),
        named=named,
        files=_files(postings, firsts),
        parents=np.array(layout.parents, dtype=np.uint32),
        page_starts=np.array(layout.page_starts, dtype=np.uint32),
        documents=np.array(firsts, dtype=np.uint32),
        spelt=spelt,
        spelt_in=spelt_in,
        spelt_with=headings_by_term(named, spelt_in, len(terms)),
        labels=labels,
        labels_in=labels_in,
        folds=folds,
        folds_in=folds_in,
        written=written,
        written_in=written_in,
        levels=np.array([one.level | one.holds for one in names], dtype=np.uint8),
        titles=_bytes([title.encode(errors="surrogatepass") for title in layout.titles], len(parts)),
        sizes=np.array(layout.sizes, dtype=np.uint32),
        records=_bytes(records, len(parts)),
        tokens=_numbers(tokens, len(parts)),
    )


def _bytes(texts: Sequence[bytes], count: int) -> Lists:
    """Return byte strings as lists; empty ones where there are none."""
    lengths = np.array(list(map(len, texts)) or [0] * count, np.int64)
    return Lists(np.frombuffer(b"".join(texts), np.uint8), ends(lengths))


def _numbers(lists: Sequence[Sequence[int]], count: int) -> Lists:
    """Return numbers as lists; empty ones where there are none."""
    lengths = np.array(list(map(len, lists)) or [0] * count, np.int64)
    return Lists(np.fromiter(chain.from_iterable(lists), np.uint32, int(lengths.sum())), ends(lengths))


def _postings(
    parts: Sequence[Counts], rows: Sequence[NDArray[Any]], firsts: Sequence[int], terms: int
) -> dict[str, NDArray[Any]]:
    """Join postings; those of one document stand in order already."""
    owners = np.concatenate([own.repeat(np.diff(part.starts)) for part, own in zip(parts, rows, strict=True)])
    joined = {
        "sections": np.concatenate(
            [part.sections.astype(np.uint32) + np.uint32(at) for part, at in zip(parts, firsts, strict=False)]
        ),
        "in_heading": np.concatenate([part.in_heading for part in parts]),
        "in_path": np.concatenate([part.in_path for part in parts]),
        "in_body": np.concatenate([part.in_body for part in parts]),
    }
    if len(parts) > 1:
        order = np.argsort(owners, kind="stable")
        owners = owners[order]
        joined = {name: array[order] for name, array in joined.items()}
    holds = (joined["in_heading"] > 0) | (joined["in_body"] > 0)
    return {
        "starts": ends(np.bincount(owners, minlength=terms)),
        **joined,
        "own": np.bincount(owners[holds], minlength=terms).astype(np.int32),
        "path": np.bincount(owners[joined["in_path"] > 0], minlength=terms).astype(np.int32),
    }


def ends(lengths: NDArray[Any]) -> NDArray[Any]:
    """Return where lists of these lengths begin, one after another, and where the last one ends."""
    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _held_by(postings: dict[str, NDArray[Any]], chosen: NDArray[Any], size: int) -> Lists:
    """Return for each section the rows that some postings give it, ascending."""
    rows = np.arange(len(postings["own"]), dtype=np.uint32).repeat(np.diff(postings["starts"]))[chosen]
    sections = postings["sections"][chosen]
    order = np.argsort(sections, kind="stable")
    return Lists(rows[order], ends(np.bincount(sections, minlength=size)))


def headings_by_term(named: Lists, spelt_in: Lists, size: int) -> Lists:
    """Return for each term the rows of the different headings that hold it, ascending.

    :param named: rows of the terms of each section's heading.
    :param spelt_in: sections of each heading.
    :param size: number of terms.
    """
    rows, lengths = named.gather(spelt_in.values[spelt_in.starts[:-1]])
    headings = np.arange(len(lengths), dtype=np.uint32).repeat(lengths)
    return Lists(headings[np.argsort(rows, kind="stable")], ends(np.bincount(rows, minlength=size)))


def _files(postings: dict[str, NDArray[Any]], firsts: Sequence[int]) -> Lists:
    """Return for each document the rows in the path of its first section, which are those of its file."""
    held = _held_by(postings, postings["in_path"] > 0, firsts[-1])
    numbers = np.array(firsts[:-1])
    values, lengths = held.gather(numbers)
    return Lists(values, ends(lengths))


def _by_text(texts: Iterable[str | None]) -> tuple[Strings, Lists]:
    """Return the different texts of sections, and the sections of each; ``None`` is none."""
    found: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if text is not None:
            found.setdefault(text, []).append(number)
    known = sorted(found)
    values = np.array([number for text in known for number in found[text]], dtype=np.uint32)
    return KeptStrings(known), Lists(values, ends(np.array([len(found[text]) for text in known], np.int64)))
