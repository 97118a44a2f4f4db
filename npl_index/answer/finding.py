"""Where in a long section what was asked for stands, without parsing the section."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log2
from typing import NamedTuple

from npl_index.answer.frames import LINES_BACK, Fences
from npl_index.markdown.sections import SectionTree, Span

_LOOKED_AT = 1 << 18
"""Characters of a section that are searched; it takes a few milliseconds."""

_MOST_PLACES = 64
"""Places where a term is noted: what stands everywhere does not say which one is meant."""

_SHORT = 3  # a term up to so long counts as a whole word only, a longer one at the beginning of one
_ENDING = re.compile(r"i\Z|(?<=[a-z]{3}[ai]b)l\Z")
_EMPTY = re.compile(r"[\s>]*\Z")
_BEGINS_BLOCK = re.compile(r"[-+*:~|]|[0-9]{1,9}[.)]")


class Found(NamedTuple):
    """A place of something that was asked for.

    :param at: offset in the source.
    :param term: number of the term.
    :param worth: how much the term is asked for; the less, the more places have it.
    """

    at: int
    term: int
    worth: float


def find_all(source: str, begin: int, end: int, wanted: Sequence[tuple[str, float]]) -> list[Found]:
    """Return the places of index terms in a stretch of a text, in its order.

    :param wanted: the terms, and how much each is asked for.
    """
    text = source[begin : min(end, begin + _LOOKED_AT)]
    lower = text.lower()
    text = lower if len(lower) == len(text) else text
    found: list[Found] = []
    for number, (term, weight) in enumerate(wanted):
        # A stem ends in "i" where its words end in "y" or "ies", in "abl" also where they end in "ability".
        stem = _ENDING.sub("", term) if len(term) > _SHORT and term.isascii() else term
        places = [at for at in _places(text, stem) if _is_word(text, at, stem)] if stem else []
        worth = weight / log2(1 + len(places)) if places else 0.0
        found += (Found(begin + at, number, worth) for at in places)
    return sorted(found)


def _places(text: str, word: str) -> list[int]:
    places: list[int] = []
    at = text.find(word)
    while at >= 0 and len(places) < _MOST_PLACES:
        places.append(at)
        at = text.find(word, at + len(word))
    return places


def _is_word(text: str, at: int, word: str) -> bool:
    """Return whether a word begins at a place, in scripts that have spaces between words."""
    if not word.isascii():
        return True
    end = at + len(word)
    return not text[at - 1 : at].isalnum() and (len(word) > _SHORT or not text[end : end + 1].isalnum())


def best_place(found: Sequence[Found], width: int, begin: int, end: int) -> int:
    """Return where to begin to read so many characters that hold most of what was found.

    :param begin: the answer where nothing was found, or as much can be read from there.
    :param end: of what can be read.
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
            # What follows says more about a word than what stands before it.
            place = max(begin, min(found[first].at - (width - span) // 3, end - width))
    return place


def safe_start(tree: SectionTree, own: Span, line: int, fences: Fences) -> int:
    """Return the nearest line, at or before a given one, at which parsing may begin, or one far before it.

    :param own: lines of the section's own text.
    """
    line = next((one.line for one in fences.around(line) if one.sign[0] != ":"), line)
    last = max(own.start, line - LINES_BACK)
    for at in range(line, last, -1):
        text = tree.line(at)
        if text[:1].isspace() or not text:
            continue
        if _BEGINS_BLOCK.match(text) or _EMPTY.match(tree.line(at - 1)):
            return at
    return last
