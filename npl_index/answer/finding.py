"""Occurrences of terms in sections, by the analysis of the index, and words that no section contains."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from math import log2
from typing import NamedTuple

from npl_index.answer.blocks import Blocks
from npl_index.answer.document_set import DocumentSet, SectionPart, once
from npl_index.answer.frames import MARKER
from npl_index.library.references import near_names
from npl_index.markdown.sections import SectionTree
from npl_index.ranking.analysis import locate
from npl_index.ranking.arrays import np
from npl_index.ranking.indexing import CHUNKS
from npl_index.ranking.keywords import Word
from npl_index.ranking.verdict import MAX_WORDS, Coverage
from npl_index.ranking.vocabulary import VARIANT_WEIGHT
from npl_index.selectors.names import Place

MAX_LINE = 80
"""Maximum characters of a shown line: about twenty tokens."""

MAX_NEAR = 2
"""Maximum similar words for one word."""

_MAX_PLACES = 64
"""Maximum occurrences of one term: a frequent term does not distinguish places."""

_BEFORE = MAX_LINE // 4
_MAX_TRIED = 6
_WORD = re.compile(r"\w[\w.-]*\w|\w")
_LETTERS = re.compile(r"[^\W_]+")

DEFINING = 2.0
"""Weight of a term where it begins a block, compared with its weight elsewhere."""

START = 1e-5
"""Worth of the start of a section: of pieces with the same terms, the first is best."""

_MARKS = re.compile(
    rf"[ \t>]*(?:(?:{MARKER}|\|)[ \t]*)?(?:\[[ x]\][ \t]+)?(?:<[^<>\n]*>|[*_`\"'“(\[-])*", re.IGNORECASE
)
"""The text before the first word of a block."""

_ASIDE = re.compile(r"[ \t>]*(?:\[(?!\^)[^\]\n]+\]:|\{\{[<%].*[>%]\}\}\s*\Z|\{%.*%\}\s*\Z)")


class Occurrence(NamedTuple):
    """One occurrence of a query term.

    :param at: offset in the source.
    :param term: number of the term.
    :param worth: weight of the term, which falls with the number of its occurrences.
    """

    at: int
    term: int
    worth: float


@once
def find_all(documents: DocumentSet, place: Place) -> list[Occurrence]:
    """Return the occurrences of the wanted terms in a section's own text, in order.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    sought, tree, own = _sought(documents), documents.tree(place[0]), documents.section(place).own
    begin, end = tree.line_starts[own.start], tree.line_starts[own.stop]
    offsets_of: list[list[tuple[int, float]]] = [[] for _ in documents.wanted]
    for chunk in CHUNKS.finditer(tree.source, begin, end):
        documents.clock.check()
        first = chunk.start()
        for at, term in locate(chunk[0], sought.keys(), _MAX_PLACES):
            number, weight = sought[term]
            offsets_of[number].append((first + at, weight))
    matches: list[Occurrence] = []
    for number, offsets in enumerate(offsets_of):
        share = log2(1 + min(len(offsets), _MAX_PLACES))
        matches += (Occurrence(at, number, weight / share) for at, weight in nsmallest(_MAX_PLACES, offsets))
    return sorted(matches)


@once
def _sought(documents: DocumentSet) -> dict[str, tuple[int, float]]:
    """Return the wanted terms and their variants, each with the number of the wanted term and its weight."""
    vocabulary, wanted = documents.collection.vocabulary, documents.wanted
    sought = {term: (number, weight) for number, (term, weight) in enumerate(wanted)}
    for number, (term, weight) in enumerate(wanted):
        variants = vocabulary.variants(term)
        texts = vocabulary.texts([row for row, _ in variants])
        for text, (_, share) in zip(texts, variants, strict=True):
            sought.setdefault(text, (number, weight * share))
    return sought


@once
def occurrences(documents: DocumentSet, place: Place) -> list[Occurrence]:
    """Return the occurrences of the wanted terms below a section's heading, in order.

    Terms of the heading do not count, because the heading is above every piece. A block that begins with a
    term says what it is, and others mention it: there it counts as a further term as well. So does the start
    of the section, a little.
    """
    tree, blocks, terms = documents.tree(place[0]), documents.blocks(place), len(documents.wanted)
    every = find_all(documents, place)
    below = bisect_left(every, (blocks.body,))
    above = {match.term for match in every[:below]}
    found = [match for match in every[below:] if match.term not in above and not _is_aside(tree, match.at)]
    defining = [match for match in found if _begins_block(tree.source, blocks, match.at)]
    number = Counter(match.term for match in defining)
    found += (
        Occurrence(at, terms + term, DEFINING * worth / log2(1 + number[term]))
        for at, term, worth in defining
    )
    return sorted([Occurrence(blocks.starts[0], -1, START), *found])


def _is_aside(tree: SectionTree, at: int) -> bool:
    """Return whether an offset is in a link definition or a shortcode, which no reader sees as text."""
    return _ASIDE.match(tree.line(bisect_right(tree.line_starts, at) - 1)) is not None


def _begins_block(source: str, blocks: Blocks, at: int) -> bool:
    start = blocks.starts[bisect_right(blocks.starts, at) - 1]
    return _MARKS.fullmatch(source, max(start, blocks.body), at) is not None


def best_run(
    matches: Sequence[Occurrence], ranges: Sequence[tuple[int, int]], width: int
) -> tuple[int, int] | None:
    """Return the ends of the run with the highest worth of different terms; of equal ones, the shortest.

    :param matches: occurrences in order.
    :param ranges: ends of the text that shows each of them.
    :param width: maximum characters of a run.
    """
    best, run = (-1.0, 0), None
    inside: Counter[int] = Counter()
    first, worth = 0, 0.0
    for last, match in enumerate(matches):
        worth += 0.0 if inside[match.term] else match.worth
        inside[match.term] += 1
        while first <= last and ranges[last][1] - ranges[first][0] > width:
            inside[matches[first].term] -= 1
            worth -= 0.0 if inside[matches[first].term] else matches[first].worth
            first += 1
        if first <= last:
            begin, end = ranges[first][0], ranges[last][1]
            if (value := (round(worth, 6), begin - end)) > best:
                best, run = value, (begin, end)
    return run


def matching_line(documents: DocumentSet, part: SectionPart) -> tuple[int, str] | None:
    """Return the line below a part's heading with the most terms of the question.

    :returns: its number, from 0, and its shortened text; ``None`` without a matching line.
    """
    tree = part.tree
    starts = tree.line_starts
    body = max(part.lines.start, tree.sections[part.section].heading_lines.stop)
    begin, end = starts[body], starts[part.lines.stop]
    matches = [match for match in find_all(documents, part.place) if begin <= match.at < end]
    lines: dict[int, dict[int, Occurrence]] = {}
    for match in matches:
        lines.setdefault(bisect_right(starts, match.at) - 1, {}).setdefault(match.term, match)
    if not lines:
        return None
    line = max(lines, key=lambda line: sum(match.worth for match in lines[line].values()))
    begin, end = starts[line], starts[line + 1]
    in_line = [match for match in matches if begin <= match.at < end]
    at, _ = best_run(in_line, [(match.at, match.at) for match in in_line], MAX_LINE - _BEFORE) or (begin, end)
    return line, _shortened(tree.line(line).rstrip(), at - begin)


def _shortened(text: str, at: int) -> str:
    """Return the characters of a text around an offset, cut between words."""
    begin = max(0, min(at - _BEFORE, len(text) - MAX_LINE))
    if begin:
        begin = text.find(" ", begin, at) + 1 or begin
    end = begin + MAX_LINE
    if end < len(text):
        space = text.rfind(" ", at, end)
        end = space if space > at else end
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"


def nowhere(documents: DocumentSet, coverage: Coverage) -> dict[str, tuple[str, ...]]:
    """Return the words of a question without any section, each with similar words as spelt in the documents.

    The ranking treats a misspelt word as the correct one; here it is absent, and the correct one is similar.
    """
    row = documents.collection.vocabulary.row
    absent = [
        word for word in coverage.words if word.is_certain and all(row(term) is None for term in word.meant)
    ]
    absent.sort(key=lambda word: -coverage.weights[coverage.words.index(word)])
    return {word.shown: _near(documents, word) for word in absent[:MAX_WORDS]}


def _near(documents: DocumentSet, word: Word) -> tuple[str, ...]:
    """Return the words of documents that begin with a word, most frequent first, then those similar to it."""
    spellings = _spellings_of_variants(documents, word)
    longer = [spelling for spelling in spellings if spelling.casefold().startswith(word.shown.casefold())]
    longer.sort(key=spellings.__getitem__, reverse=True)
    return tuple(dict.fromkeys([*longer, *near_names(word.shown, spellings, MAX_NEAR)]))[:MAX_NEAR]


def _spellings_of_variants(documents: DocumentSet, word: Word) -> dict[str, int]:
    """Return the variants of a word as spelt in a document, each with its number of sections.

    Those that a misspelling may mean are tried first, then frequent ones.
    """
    vocabulary = documents.collection.vocabulary
    shares = vocabulary.variants(word.terms[-1])
    rows = [row for row, _ in shares]
    counts = vocabulary.counts(np.array(rows, np.intp)).any.tolist()
    variants = sorted(
        zip(shares, vocabulary.texts(rows), counts, strict=True),
        key=lambda variant: (variant[0][1] < VARIANT_WEIGHT, -variant[2]),
    )
    spellings: dict[str, int] = {}
    for (row, _), term, count in variants[:_MAX_TRIED]:
        place = documents.collection.holder(row)
        # A title may stand in the front matter alone, or in the name of the file.
        texts = (documents.text(place), documents.tree(place[0]).front_matter, documents.path(place[0]))
        pattern = _LETTERS if term.isalpha() else _WORD
        matches = (
            pattern.match(text, at) for text in texts for at, _ in nsmallest(1, locate(text, (term,), 1))
        )
        spelling = next(filter(None, matches), None)
        if spelling and spelling[0].casefold() not in map(str.casefold, spellings):
            spellings[spelling[0]] = count
    return spellings
