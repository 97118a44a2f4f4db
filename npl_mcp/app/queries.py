"""Words, phrases and conditions of a search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from npl_index.cached import cached_property
from npl_index.ranking.spelling import pattern
from npl_index.selectors.filters import ANY, SectionFilter

_WORD = re.compile(r"\w[\w.+#@/-]*|[\u2190-\u2bff\U0001f000-\U0001faff]")  # or a symbol
_PHRASE = re.compile(r"""["“]([^"“”]+)["”]""")
_CODE = re.compile("`([^`]+)`")
_MARKUP = str.maketrans("", "", "`*")

_MAX_WORDS = 8
"""Words of a question that are compared with rows; each costs a scan of all rows."""

_MIN_LENGTH = 3

MAX_WAIT = 8.0
"""Seconds that a search waits for the index of documents: a folder of some hundred files is answered."""


@dataclass(frozen=True)
class QueryConditions:
    """Conditions that every hit meets, and the time for the search.

    :param path: parts of the path of its document, ignoring case; other records have no path.
    :param without: words and phrases that it does not contain.
    :param seconds: maximum wait for the index of documents.
    :param among: conditions of sections and of the front matter of their documents.
    """

    path: Sequence[str] = ()
    without: Sequence[str] = ()
    seconds: float = MAX_WAIT
    among: SectionFilter = ANY

    @cached_property
    def unwanted(self) -> re.Pattern[str] | None:
        """Pattern of the words that no hit contains."""
        return pattern_of(self.without) if self.without else None


def pattern_of(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for whole words as spelt, ignoring case."""
    return re.compile("|".join(map(pattern, words)), re.IGNORECASE)


def phrases_of(query: str) -> list[str]:
    """Return the quoted phrases without marks, on one line."""
    return [phrase for quoted in _PHRASE.findall(query) if (phrase := normalised(quoted))]


def texts_of(query: str) -> list[str]:
    """Return the quoted phrases, or the texts in code marks."""
    return phrases_of(query) or list(filter(None, map(normalised, _CODE.findall(query))))


def normalised(text: str) -> str:
    """Return a phrase without marks, on one line, in lower case."""
    return " ".join(text.translate(_MARKUP).split()).casefold()


def words_of(query: str) -> list[str]:
    """Return the phrases and words that are compared with rows."""
    words = dict.fromkeys(word.strip("./-").lower() for word in _WORD.findall(query))
    long = [word for word in words if len(word) >= _MIN_LENGTH or not word.isascii()]
    return list(dict.fromkeys([*phrases_of(query), *(long or words)]))[:_MAX_WORDS]
