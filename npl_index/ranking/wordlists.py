"""Lists of words that come with the library, and the stems of words."""

from __future__ import annotations

from functools import cache
from importlib import resources
from string import ascii_lowercase

import Stemmer

RARE = 0.002
"""Assumed share of sections with a word that is not in the list of common words."""

# One for all threads, because a call keeps the interpreter's lock.
_stemmer = Stemmer.Stemmer("english", 0)


@cache
def data_lines(name: str) -> tuple[str, ...]:
    """Return the lines of a list, without comments."""
    text = resources.files("npl_index").joinpath("data").joinpath(name).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


@cache
def stop_words() -> frozenset[str]:
    """Return the English words that carry no subject."""
    return frozenset(word for line in data_lines("stop_words.txt") for word in line.split())


@cache
def stop_word_parts() -> frozenset[str]:
    """Return the parts of stop words between apostrophes, such as ``isn``."""
    return frozenset(part for word in stop_words() for part in word.split("'"))


@cache
def _commonness() -> dict[str, float]:
    shares: dict[str, float] = {}
    for line in data_lines("common_words.txt"):
        share, *words = line.split()
        shares.update(dict.fromkeys(words, float(share) / 1000))
    return shares


def commonness(term: str) -> float:
    """Return the share of sections with a term in ordinary technical prose, 0 to 1."""
    return _commonness().get(term, RARE)


@cache
def _irregular() -> dict[str, str]:
    """Return the stems of forms that the stemmer takes for other words, each with the right stem."""
    lines = (_stemmer.stemWords(line.split()) for line in data_lines("irregular_words.txt"))
    return {form: first for first, *forms in lines for form in forms}


def stem(word: str) -> str:
    """Return the stem of an English word."""
    regular: str = _stemmer.stemWord(word)
    return _irregular().get(regular, regular)


def respelt(word: str) -> frozenset[str]:
    """Return the stems of all words that differ from a word in one letter after the first."""
    spellings: set[str] = set()
    for at in range(1, len(word) + 1):
        before, after = word[:at], word[at:]
        spellings |= {before + after[1:], before + after[1:2] + after[:1] + after[2:]}
        spellings.update(before + letter + rest for letter in ascii_lowercase for rest in (after, after[1:]))
    return frozenset(_stemmer.stemWords(list(spellings)))
