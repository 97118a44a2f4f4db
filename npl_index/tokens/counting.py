"""Token counters; :mod:`exact` and :mod:`estimated` make them.

Answers are packed from parts that were counted one by one. That works because no piece of the vocabularies
continues past a line end with a character that is neither white space nor ``/``. Where ``a`` ends in a line
end and ``b`` starts a token, exact counts and estimates add up::

    count(a + b) == count(a) + count(b)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

from npl_index.choices import VOCABULARIES
from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.errors import InvalidRequestError

WINDOW = 100_000
"""Characters counted in one step. The deadline is checked between two windows; a window of punctuation, or of
Chinese without any space, takes some tenths of a second. A run of a million white-space characters overflows
tiktoken's regular expressions, and up to version 0.12 its time grows with the square of a piece's length."""

# A window ends where a piece certainly ends. A text of a window's length without such a place is cut
# anywhere, which can change the count by one or two tokens.
_WINDOWS = re.compile(rf"(?s:.{{1,{WINDOW}}})(?:\Z|(?<=\S\n)(?=[^\s/])|(?<=\S)(?= \S))|(?s:.{{1,{WINDOW}}})")


@dataclass(eq=False)
class TokenCounter:
    """A counter of tokens in one vocabulary. Safe to share between threads.

    :param name: ``tiktoken:<vocabulary>`` for exact counts, ``estimate:<vocabulary>`` for estimates.
    :param count_window: counts the tokens of a text of at most :data:`WINDOW` characters; special tokens are
        plain text.
    :param margin: per cent by which a true count is almost never greater; 0 for exact counts.
    """

    name: str
    count_window: Callable[[str], int]
    margin: int = 0

    def count(self, text: str, clock: Deadline = NO_DEADLINE) -> int:
        """Return the number of tokens, or the best estimate.

        :param clock: deadline, which is checked between windows.
        :raises DocumentTimeoutError: the deadline has passed.
        """
        tokens = 0
        for window in [text] if len(text) <= WINDOW else map(itemgetter(0), _WINDOWS.finditer(text)):
            clock.check()
            tokens += self.count_window(window)
        return tokens

    def upper_bound(self, count: int) -> int:
        """Return a number that the true count of a text almost never exceeds.

        The bounds of the parts of a text add up to at least the bound of the text.

        :param count: result of :meth:`count` for the text.
        """
        return -(-count * (100 + self.margin) // 100)


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
