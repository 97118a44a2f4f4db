"""The interface of token counters; :mod:`exact` and :mod:`estimated` each implement it.

Answers are packed from parts that were counted one by one. That works because no piece of the vocabularies
continues past a line end with a character that is neither white space nor ``/``. Where ``a`` ends in a line
end and ``b`` starts a token, exact counts and estimates add up::

    count(a + b) == count(a) + count(b)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from npl_index.choices import VOCABULARIES
from npl_index.errors import InvalidRequestError
from npl_index.markdown.state import NO_DEADLINE, Deadline

WINDOW = 100_000
"""Characters counted in one step. The deadline is checked between two windows; a window of punctuation, or of
Chinese without any space, takes some tenths of a second."""

# A window ends where a piece certainly ends. A text of a window's length without such a place is cut
# anywhere, which can change the count by one or two tokens.
_WINDOWS = re.compile(rf"(?s:.{{1,{WINDOW}}})(?:\Z|(?<=\S\n)(?=[^\s/])|(?<=\S)(?= \S))|(?s:.{{1,{WINDOW}}})")


class TokenCounter(Protocol):
    """A counter of tokens in one vocabulary. Safe to share between threads."""

    @property
    def name(self) -> str:
        """``tiktoken:<vocabulary>`` for exact counts, ``estimate:<vocabulary>`` for estimates."""

    @property
    def exact(self) -> bool:
        """Whether ``count`` returns the true number."""

    def count(self, text: str) -> int:
        """Return the number of tokens, or the best estimate; special tokens count as plain text."""

    def upper_bound(self, count: int) -> int:
        """Return a number that the true count of a text almost never exceeds.

        The bounds of the parts of a text add up to at least the bound of the text.

        :param count: result of :meth:`count` for the text.
        """


def windows(text: str) -> Iterator[str]:
    """Cut a long text into windows whose counts add up."""
    return (match[0] for match in _WINDOWS.finditer(text))


def count_tokens(text: str, counter: TokenCounter, clock: Deadline = NO_DEADLINE) -> int:
    """Count the tokens of a text with a counter, and check the deadline between windows.

    :raises DocumentTimeoutError: the deadline has passed.
    """

    def count(window: str) -> int:
        clock.check()
        return counter.count(window)

    return sum(map(count, windows(text)))


def starts_token(text: str) -> bool:
    """Return whether a text that follows a line end certainly begins a new token."""
    return not (text[:1].isspace() or text.startswith("/"))


def base_vocabulary(vocabulary: str) -> str:
    """Return the vocabulary with the same plain-text counts: ``o200k_harmony`` adds only special tokens.

    :raises InvalidRequestError: it is not one of :data:`~npl_index.choices.VOCABULARIES`.
    """
    if vocabulary not in VOCABULARIES:
        problem = f"there is no vocabulary {vocabulary!r}"
        raise InvalidRequestError(problem, parameter="vocabulary", hint=f"use {' or '.join(VOCABULARIES)}")
    return "o200k_base" if vocabulary == "o200k_harmony" else vocabulary
