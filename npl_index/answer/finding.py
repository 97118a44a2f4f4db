"""Occurrences of terms in a long section, found without parsing it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log2
from typing import NamedTuple

from npl_index.answer.frames import MAX_LINES_BACK, Fences
from npl_index.markdown.sections import SectionTree, Span

_MAX_SEARCHED = 1 << 18
"""Maximum searched characters of a section, which takes a few milliseconds."""

_MAX_PLACES = 64
"""Maximum occurrences of one term: a frequent term does not distinguish places."""

_SHORT = 3  # maximum length of a term that counts only as a whole word; a longer one is a prefix
_ENDING = re.compile(r"i\Z|(?<=[a-z]{3}[ai]b)l\Z")
_EMPTY = re.compile(r"[\s>]*\Z")
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
    """Return whether a word begins at an offset; in scripts without spaces, always."""
    if not word.isascii():
        return True
    end = at + len(word)
    return not text[at - 1 : at].isalnum() and (len(word) > _SHORT or not text[end : end + 1].isalnum())


def best_place(found: Sequence[Occurrence], width: int, begin: int, end: int) -> int:
    """Return the begin of the best window.

    :param width: characters of the window.
    :param begin: begin of the text, which is the result without a better window.
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
    """Return the nearest line, at or before a given one, for the begin of parsing, or one far before it.

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
