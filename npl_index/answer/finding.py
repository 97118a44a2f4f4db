"""Occurrences of terms in sections, found without parsing them, and words that no section contains."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log2
from typing import NamedTuple

from npl_index.answer.document_set import DocumentSet, SectionPart
from npl_index.answer.frames import MAX_LINES_BACK, Fences
from npl_index.library.references import near_names
from npl_index.markdown.sections import SectionTree, Span
from npl_index.ranking.analysis import Word
from npl_index.ranking.verdict import MAX_WORDS, Coverage

MAX_LINE = 80
"""Maximum characters of a shown line: about twenty tokens."""

MAX_NEAR = 2
"""Maximum similar words for one word."""

_MAX_SEARCHED = 1 << 18
"""Maximum searched characters of a section, which takes a few milliseconds."""

_MAX_PLACES = 64
"""Maximum occurrences of one term: a frequent term does not distinguish places."""

_SHORT = 3  # maximum length of a term that counts only as a whole word; a longer one is a prefix
_ENDING = re.compile(r"i\Z|(?<=[a-z]{3}[ai]b)l\Z")
_EMPTY = re.compile(r"[\s>]*\Z")
_BEFORE = MAX_LINE // 4
_MAX_TRIED = 6
_WORD = re.compile(r"\w[\w.-]*\w|\w")
_BEGINS_BLOCK = re.compile(r"[-+*:~|]|[0-9]{1,9}[.)]")


class Occurrence(NamedTuple):
    """One occurrence of a query term.

    :param at: offset in the source.
    :param term: number of the term.
    :param worth: weight of the term, which falls with the number of its occurrences.
    """

    at: int
    term: int
    worth: float


def find_all(source: str, begin: int, end: int, wanted: Sequence[tuple[str, float]]) -> list[Occurrence]:
    """Return the occurrences of index terms in a range of a text, in order.

    :param wanted: the terms with their weights.
    """
    text = source[begin : min(end, begin + _MAX_SEARCHED)]
    lower = text.lower()
    text = lower if len(lower) == len(text) else text
    found: list[Occurrence] = []
    for number, (term, weight) in enumerate(wanted):
        # A stem in "i" stands for words in "y" or "ies", and one in "abl" also for words in "ability".
        stem = _ENDING.sub("", term) if len(term) > _SHORT and term.isascii() else term
        places = [at for at in _places(text, stem) if _is_word(text, at, stem)] if stem else []
        worth = weight / log2(1 + len(places)) if places else 0.0
        found += (Occurrence(begin + at, number, worth) for at in places)
    return sorted(found)


def _places(text: str, word: str) -> list[int]:
    places: list[int] = []
    at = text.find(word)
    while at >= 0 and len(places) < _MAX_PLACES:
        places.append(at)
        at = text.find(word, at + len(word))
    return places


def _is_word(text: str, at: int, word: str) -> bool:
    """Return whether a word begins at an offset; in scripts without spaces, always true."""
    if not word.isascii():
        return True
    end = at + len(word)
    return not text[at - 1 : at].isalnum() and (len(word) > _SHORT or not text[end : end + 1].isalnum())


def best_place(found: Sequence[Occurrence], width: int, begin: int, end: int) -> int:
    """Return the start of the best window.

    :param width: characters of the window.
    :param begin: start of the text, which is the result if no window is better.
    :param end: end of the text.
    """
    near = {one.term: one.worth for one in found if one.at - begin <= width}
    best, place = (round(sum(near.values()), 6), 0), begin
    inside: Counter[int] = Counter()
    first, worth = 0, 0.0
    for last in found:
        worth += 0.0 if inside[last.term] else last.worth
        inside[last.term] += 1
        while last.at - found[first].at > width:
            inside[found[first].term] -= 1
            worth -= 0.0 if inside[found[first].term] else found[first].worth
            first += 1
        span = last.at - found[first].at
        if (round(worth, 6), -span) > best:
            best = round(worth, 6), -span
            # The text after a word says more about it than the text before it.
            place = max(begin, min(found[first].at - (width - span) // 3, end - width))
    return place


def safe_start(tree: SectionTree, own: Span, line: int, fences: Fences) -> int:
    """Return the nearest line at or before a given one where parsing can start, or one far before it.

    :param own: lines of the section's own text.
    """
    line = next((one.line for one in fences.around(line) if one.sign[0] != ":"), line)
    last = max(own.start, line - MAX_LINES_BACK)
    for at in range(line, last, -1):
        text = tree.line(at)
        if text[:1].isspace() or not text:
            continue
        if _BEGINS_BLOCK.match(text) or _EMPTY.match(tree.line(at - 1)):
            return at
    return last


def matching_line(documents: DocumentSet, part: SectionPart) -> tuple[int, str] | None:
    """Return the line below a part's heading with the most terms of the question.

    :returns: its number, from 0, and its shortened text; ``None`` without a matching line.
    """
    tree = documents.tree(part.document)
    starts = tree.line_starts
    body = max(part.lines.start, tree.sections[part.section].heading_lines.stop)
    found = find_all(tree.source, starts[body], starts[part.lines.stop], documents.wanted)
    lines: dict[int, dict[int, Occurrence]] = {}
    for one in found:
        lines.setdefault(bisect_right(starts, one.at) - 1, {}).setdefault(one.term, one)
    if not lines:
        return None
    line, held = max(lines.items(), key=lambda item: sum(one.worth for one in item[1].values()))
    text = tree.line(line)
    first = min(one.at for one in held.values()) - starts[line]
    return line, _around(text.rstrip(), first)


def _around(text: str, at: int) -> str:
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
    absent = [word for word in coverage.words if all(row(term) is None for term in word.meant)]
    absent.sort(key=lambda word: -coverage.weights[coverage.words.index(word)])
    return {
        word.shown: near_names(word.shown, dict.fromkeys(_spellings_of_variants(documents, word)), MAX_NEAR)
        for word in absent[:MAX_WORDS]
    }


def _spellings_of_variants(documents: DocumentSet, word: Word) -> Iterator[str]:
    """Yield the variants of a word as spelt in a section."""
    vocabulary = documents.collection.vocabulary
    variants = sorted(vocabulary.variants(word.terms[-1]), key=lambda one: -one[1])[:_MAX_TRIED]
    for (row, _), term in zip(variants, vocabulary.texts([row for row, _ in variants]), strict=True):
        text = documents.text(documents.collection.holder(row))
        for place in find_all(text, 0, len(text), [(term, 1.0)])[:1]:
            found = _WORD.match(text, place.at)
            if found:
                yield found[0]
