"""Token counts of all sections of a document, made once and added up for every answer.

An answer consists of sections joined by blank lines. Where each section starts a new token, the tokens of the
answer are the sum of the sections' tokens, each counted with the following blank line
(:mod:`~npl_index.tokens.counting`). No blank line follows the last section, so each section has two counts.
"""

from __future__ import annotations

import json
import re
import zlib
from array import array

from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.markdown.sections import SectionTree, Span
from npl_index.tokens.counting import TokenCounter

_MAX_TAIL = 4_096
"""Maximum characters at the end of a text that are counted twice; a token has at most 128."""

_MAX_INDENTATION = 3
"""Maximum indentation of a line that is no code."""

_LAST_TOKEN = re.compile(r"(?s:.*)(?:(?<=\n)(?=[^\s/])|(?<=\S)(?= \S))")
"""Text up to the last place where a token certainly begins (:mod:`~npl_index.tokens.counting`)."""

NOTHING = array("I")
"""Counts of a document without stored counts."""

dumped = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Encodes compact JSON; characters outside ASCII are not escaped."""


def trimmed_text(tree: SectionTree, lines: Span) -> str:
    """Return lines as answers show them: no surrounding blank lines, no indentation before a first heading.

    Therefore nearly every such text begins with a character that starts a new token.
    """
    return unindented(tree.text(lines).lstrip("\n"))


def unindented(text: str) -> str:
    """Return a text without the indentation of its first line, unless so much makes the line code."""
    bare = text.lstrip(" ")
    return bare if len(text) - len(bare) <= _MAX_INDENTATION else text


def measure(text: str, counter: TokenCounter, clock: Deadline = NO_DEADLINE) -> tuple[int, int]:
    """Return the tokens of a text with a blank line after it, and without.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    last = counter.count(text, clock)
    tail = _tail(text)
    return last + (counter.count(tail + "\n") - counter.count(tail) if tail else 0), last


def escaped_tokens(text: str, counter: TokenCounter) -> int:
    """Return the tokens of a text inside a JSON string, with a blank line before it."""
    return counter.count(dumped("\n" + text)[1:-1])


class KnownCounts:
    """The known token counts of a document's sections, by section index.

    :param sections: number of sections.
    :param stored: result of :meth:`TokenCounts.stored` for the document; other numbers are ignored.

    ``escaped`` is 0 for an unknown count; ``followed`` and ``last`` are known where ``measured`` is 1.
    """

    def __init__(self, sections: int, counter: TokenCounter, stored: array[int] = NOTHING) -> None:
        known = len(stored) == 2 * sections + 1 and stored[0] == _number_of(counter)
        numbers = array("I", stored[1:].tobytes() if known else bytes(8 * sections))
        self.followed, self.last = numbers[:sections], numbers[sections:]
        self.escaped = array("I", bytes(4 * sections))
        self.measured = bytearray([known]) * sections

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the counts take."""
        return 200 + 13 * len(self.measured)


class TokenCounts:
    """Tokens of each section's own text. A section is counted at the first request for its count.

    Each method raises :class:`DocumentTimeoutError` if it counts and the deadline has passed.

    :param clock: the deadline.
    :param known: earlier counts of the document; new counts are added to them.
    """

    def __init__(
        self,
        tree: SectionTree,
        counter: TokenCounter,
        clock: Deadline = NO_DEADLINE,
        known: KnownCounts | None = None,
    ) -> None:
        self._tree, self._counter, self._clock = tree, counter, clock
        self._known = known or KnownCounts(len(tree.sections), counter)

    def followed(self, index: int) -> int:
        """Return the tokens of a section with the blank line that separates it from the next text."""
        return self._measured(index).followed[index]

    def last(self, index: int) -> int:
        """Return the tokens of a section without the blank line."""
        return self._measured(index).last[index]

    def escaped(self, index: int) -> int:
        """Return the tokens of a section with the blank line, escaped as in JSON."""
        escaped = self._known.escaped
        if not escaped[index]:
            self._clock.check()
            escaped[index] = escaped_tokens(self._text(index), self._counter)
        return escaped[index]

    def total(self, sections: range) -> int:
        """Return the tokens of one or several sections' own texts, joined by blank lines."""
        return sum(map(self.followed, sections[:-1])) + self.last(sections[-1])

    def stored(self) -> array[int]:
        """Return all counts in their stored form: the counter's number, ``followed``, ``last``."""
        for index in range(len(self._tree.sections)):
            self._measured(index)
        return array("I", [_number_of(self._counter), *self._known.followed, *self._known.last])

    def _measured(self, index: int) -> KnownCounts:
        known = self._known
        if not known.measured[index]:
            known.followed[index], known.last[index] = measure(self._text(index), self._counter, self._clock)
            known.measured[index] = 1
        return known

    def _text(self, index: int) -> str:
        return trimmed_text(self._tree, self._tree.sections[index].own)


def stored_total(stored: array[int], counter: TokenCounter) -> int | None:
    """Return the tokens of a whole document from its stored counts; ``None`` without those of a counter."""
    sections = len(stored) // 2
    return sum(stored[1:sections]) + stored[-1] if sections and stored[0] == _number_of(counter) else None


def _number_of(counter: TokenCounter) -> int:
    return zlib.crc32(counter.name.encode())


def _tail(text: str) -> str:
    """Return the end of a text, from the last place where a token certainly begins.

    The cost of a blank line after the text depends only on this tail, so only the tail is counted again. If
    no such place is near enough, the tail is the last :data:`_MAX_TAIL` characters.
    """
    first = max(0, len(text) - _MAX_TAIL)
    begin = _LAST_TOKEN.match(text, first)
    return text[begin.end() if begin else first :]
