"""Lists of words that come with the library, and the stems of words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib import resources
from math import log
from string import ascii_lowercase

import Stemmer

RARE = 0.002
"""Assumed share of sections with a word that is not in the list of common words."""

_BRITISH_VERB = re.compile(r"(?<=[a-z]{4})is(?=(?:e[ds]?|ing|ers?|ations?)\Z)")  # organise
_BRITISH = re.compile(r"(?<=[a-z]{3})(?:our|ogu)\Z|(?<=[a-z]{2})(?:[tb]r|enc)\Z")
_AMERICAN = {"our": "or", "tr": "ter", "br": "ber", "ogu": "og", "enc": "ens"}
"""Endings of stems in British spelling, and in American: colour, centre, fibre, catalogue, licence."""

_BRITISH_ENDS = tuple(_AMERICAN)

_ARTICLE = re.compile("\\A[وبكف]?ال(?=\\w{3})")

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
def unspaced_words() -> tuple[str, ...]:
    """Return the Chinese words that carry no subject, longest first."""
    words = (word for line in data_lines("unspaced_words.txt") for word in line.split())
    return tuple(sorted(words, key=len, reverse=True))


@cache
def stop_word_parts() -> frozenset[str]:
    """Return the parts of stop words between apostrophes, such as ``isn``."""
    return frozenset(part for word in stop_words() for part in word.split("'"))


@cache
def _commonness() -> dict[str, float]:
    shares: dict[str, float] = {}
    for line in data_lines("common_words.txt"):
        share, *words = line.split()
        shares.update(dict.fromkeys(map(_american, words), float(share) / 1000))
    return shares


def commonness(term: str) -> float:
    """Return the share of sections with a term in ordinary technical prose, 0 to 1."""
    return _commonness().get(term, RARE)


def rarity(term: str) -> float:
    """Return the weight of a term by its rarity in English."""
    return -log(commonness(term))


@cache
def _irregular() -> dict[str, str]:
    """Return the forms that the stemmer takes for other words, each with the right stem.

    A plural is the word itself, because its stem may be that of another word (indices, indicate).
    """
    lines = ((_regular(first), forms) for first, *forms in map(str.split, data_lines("irregular_words.txt")))
    return {form if form.endswith("s") else _regular(form): first for first, forms in lines for form in forms}


def forms_of(stems: Collection[str]) -> Iterator[str]:
    """Yield some stems and the irregular forms of their words."""
    yield from stems
    yield from (form for form, first in _irregular().items() if first in stems)


def _american(stem: str) -> str:
    """Return the stem of a word in American spelling."""
    # Few words end so, and the test of their ends is faster than the expression.
    return _BRITISH.sub(lambda match: _AMERICAN[match[0]], stem) if stem.endswith(_BRITISH_ENDS) else stem


def _regular(word: str) -> str:
    return _american(_stemmer.stemWord(_BRITISH_VERB.sub("iz", word) if "is" in word else word))


def stem(word: str) -> str:
    """Return the stem of an English word in American spelling, or an Arabic word without its article."""
    irregular = _irregular()
    regular = _regular(word if word.isascii() else _ARTICLE.sub("", word))
    return irregular.get(word) or irregular.get(regular, regular)


@cache
def question_terms() -> frozenset[str]:
    """Return the terms that shape a question and are not its subject."""
    return frozenset(stem(word) for line in data_lines("question_words.txt") for word in line.split())


def respelt(word: str) -> frozenset[str]:
    """Return the stems of all words that differ from a word in one letter after the first."""
    spellings: set[str] = set()
    for at in range(1, len(word) + 1):
        before, after = word[:at], word[at:]
        spellings |= {before + after[1:], before + after[1:2] + after[:1] + after[2:]}
        spellings.update(before + letter + rest for letter in ascii_lowercase for rest in (after, after[1:]))
    return frozenset(map(_american, _stemmer.stemWords(list(spellings))))
