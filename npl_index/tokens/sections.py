"""Token counts of all sections of a document, made once and added up for every answer.

An answer is made of whole sections joined by blank lines. Where a section starts a token of its own, the
tokens of the whole are the sum of the sections' tokens, each counted with the blank line that follows it
(:mod:`~npl_index.tokens.counting`). The last one has no blank line behind it, so each section has two counts.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterable

from npl_index.markdown.sections import SectionTree, Span
from npl_index.markdown.state import NO_DEADLINE, Deadline
from npl_index.tokens.counting import TokenCounter, count_tokens, starts_token

_TAIL = 4_096
"""Characters at a text's end that are counted a second time, at most; a token has 128 at most."""

_AHEAD = 1 << 18
"""Characters of a document whose sections are counted escaped, too, before one is asked for: some 30 ms. Of a
longer one those are counted that an answer may bring."""

NOTHING = array("I")
"""Counts of a document of which none are kept."""

dumped = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Writes compact JSON; characters outside ASCII stay as they are."""


def trimmed_text(tree: SectionTree, lines: Span) -> str:
    """Return lines as an answer has them: no blank lines around, no indentation before a first heading.

    The first character of nearly every such text is therefore one that starts a token of its own.
    """
    text = tree.text(lines).lstrip("\n")
    bare = text.lstrip(" ")
    return bare if len(text) - len(bare) <= 3 else text


def measure(text: str, counter: TokenCounter, clock: Deadline = NO_DEADLINE) -> tuple[int, int]:
    """Return the tokens of a text with a blank line behind it, and without.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    last = count_tokens(text, counter, clock)
    tail = _tail(text)
    return last + (counter.count(tail + "\n") - counter.count(tail) if tail else 0), last


def escaped_tokens(text: str, counter: TokenCounter) -> int:
    """Return the tokens of a text inside a JSON string, with the blank line before it."""
    return counter.count(dumped("\n" + text)[1:-1])


class KnownCounts:
    """Tokens of a document's sections as far as they are known, by section index.

    :param sections: number of sections.
    :param stored: what :meth:`TokenCounts.stored` returned for the document; else it is ignored.

    ``escaped`` is 0 where it is unknown; the others are known where ``measured`` is 1.
    """

    def __init__(self, sections: int, counter: TokenCounter, stored: array[int] = NOTHING) -> None:
        known = len(stored) == 2 * sections + 1 and stored[0] == _number_of(counter)
        numbers = array("I", stored[1:].tobytes() if known else bytes(8 * sections))
        self.followed, self.last = numbers[:sections], numbers[sections:]
        self.escaped = array("I", bytes(4 * sections))
        self.measured = bytearray([known]) * sections

    @property
    def nbytes(self) -> int:
        """Bytes of memory the counts take."""
        return 200 + 13 * len(self.measured)


class TokenCounts:
    """Tokens of each section's own text. A section is counted when it is first asked for.

    Each method raises :class:`DocumentTimeoutError` if it counts and the deadline has passed.

    :param clock: the deadline.
    :param known: earlier counts of the document, which get the new ones.
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
        """Return the tokens of a section with the blank line that separates it from more text."""
        return self._measured(index).followed[index]

    def last(self, index: int) -> int:
        """Return its tokens without the blank line."""
        return self._measured(index).last[index]

    def escaped(self, index: int) -> int:
        """Return its tokens with the blank line, escaped as in JSON."""
        escaped = self._known.escaped
        if not escaped[index]:
            self._clock.check()
            escaped[index] = escaped_tokens(self._text(index), self._counter)
        return escaped[index]

    def total(self, sections: Iterable[int]) -> int:
        """Return the tokens of several sections' own texts in order, joined by blank lines."""
        count, final = 0, None
        for index in sections:
            count += self.followed(index)
            final = index
        return count if final is None else count - self.followed(final) + self.last(final)

    def count_ahead(self) -> None:
        """Count all sections of a document that is not long, so that no later answer waits for it."""
        known = self._known
        if (0 in known.escaped or 0 in known.measured) and len(self._tree.source) <= _AHEAD:
            for index in range(len(self._tree.sections)):
                self._measured(index)
                self.escaped(index)

    def stored(self) -> array[int]:
        """Return all counts as they are kept: whose they are, ``followed``, ``last``."""
        for index in range(len(self._tree.sections)):
            self._measured(index)
        return array("I", [_number_of(self._counter), *self._known.followed, *self._known.last])

    def _measured(self, index: int) -> KnownCounts:
        known = self._known
        if not known.measured[index]:
            both = measure(self._text(index), self._counter, self._clock)
            known.followed[index], known.last[index] = both
            known.measured[index] = 1
        return known

    def _text(self, index: int) -> str:
        return trimmed_text(self._tree, self._tree.sections[index].own)


def count_sections(tree: SectionTree, counter: TokenCounter, clock: Deadline = NO_DEADLINE) -> TokenCounts:
    """Count the own text of every section.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    counts = TokenCounts(tree, counter, clock)
    counts.stored()
    return counts


def _number_of(counter: TokenCounter) -> int:
    return zlib.crc32(counter.name.encode())


def _tail(text: str) -> str:
    """Return the end of a text from a place where a token surely begins.

    What a blank line behind the text costs depends on its tail alone, so that only this is counted again. Of
    a line that is longer than a window, only the end is.
    """
    first, at = max(0, len(text) - _TAIL), len(text)
    while (at := text.rfind("\n", first, at)) > 0:
        if at + 1 < len(text) and starts_token(text[at + 1 : at + 2]):
            return text[at + 1 :]
    return text[first:]
