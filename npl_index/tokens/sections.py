"""Token counts of all sections of a document, made once and added up for every answer.

An answer is made of whole sections joined by blank lines. Where a section starts a token of its own, the
tokens of the whole are the sum of the sections' tokens, each counted with the blank line that follows it
(:mod:`~npl_index.tokens.counting`). The last one has no blank line behind it, so each section has two counts.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of each section's own text, by section index.

    :param counter: name of the counter they come from.
    :param followed: with the blank line that separates it from more text.
    :param last: without it.
    :param costs: upper bound of both; packing adds these up.
    :param largest: the highest of the costs; 0 where they are worked out one by one.
    :param escaped: with the blank line, escaped as in JSON; 0 where nobody has counted it yet.
    """

    counter: str
    followed: Sequence[int]
    last: Sequence[int]
    costs: Sequence[int]
    largest: int
    escaped: array[int]

    @property
    def nbytes(self) -> int:
        """Bytes of memory the counts take."""
        return 200 + 4 * self.escaped.itemsize * len(self.escaped)

    def total(self, sections: Iterable[int]) -> int:
        """Return the tokens of several sections' own texts in order, joined by blank lines."""
        count, final = 0, None
        for index in sections:
            count += self.followed[index]
            final = index
        return count if final is None else count - self.followed[final] + self.last[final]


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


def count_sections(tree: SectionTree, counter: TokenCounter, clock: Deadline = NO_DEADLINE) -> TokenCounts:
    """Count the own text of every section.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    followed, last = array("I"), array("I")
    for section in tree.sections:
        both = measure(trimmed_text(tree, section.own), counter, clock)
        followed.append(both[0])
        last.append(both[1])
    costs = array("I", map(counter.upper_bound, map(max, followed, last)))
    return TokenCounts(counter.name, followed, last, costs, max(costs), array("I", bytes(4 * len(costs))))


def kept_counts(tree: SectionTree, counter: TokenCounter, clock: Deadline = NO_DEADLINE) -> array[int]:
    """Return the counts of every section's own text as they are kept: whose they are, ``followed``, ``last``.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    counts = count_sections(tree, counter, clock)
    return array("I", [_number_of(counter), *counts.followed, *counts.last])


def _number_of(counter: TokenCounter) -> int:
    return zlib.crc32(counter.name.encode())


def escaped_tokens(text: str, counter: TokenCounter) -> int:
    """Return the tokens of a text inside a JSON string, with the blank line before it."""
    return counter.count(dumped("\n" + text)[1:-1])


def count_ahead(tree: SectionTree, counts: TokenCounts, counter: TokenCounter, clock: Deadline) -> None:
    """Count what :attr:`TokenCounts.escaped` lacks, so that no answer waits for it.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    if len(tree.source) > _AHEAD or 0 not in counts.escaped:
        return
    for index, section in enumerate(tree.sections):
        if not counts.escaped[index]:
            clock.check()
            counts.escaped[index] = escaped_tokens(trimmed_text(tree, section.own), counter)


class Unmeasured:
    """Counts of a document's sections that are made one by one, when an answer needs them.

    A set has many documents, and an answer needs a few sections of each.

    :param sections: how many there are.
    :param counter: counts them.
    :param kept: what :func:`kept_counts` returned for the document; of another counter it says nothing.
    """

    def __init__(self, sections: int, counter: TokenCounter, kept: array[int] = NOTHING) -> None:
        known = len(kept) == 2 * sections + 1 and kept[0] == _number_of(counter)
        numbers = array("I", kept[1:].tobytes() if known else bytes(8 * sections))
        self.followed, self.last = numbers[:sections], numbers[sections:]
        self.escaped = array("I", bytes(4 * sections))
        self.measured = bytearray([known]) * sections

    @property
    def nbytes(self) -> int:
        """Bytes of memory the counts take."""
        return 200 + 13 * len(self.measured)

    def counts(self, tree: SectionTree, counter: TokenCounter, clock: Deadline) -> TokenCounts:
        """Return the counts, to be asked for section by section.

        :param clock: when counting one gives up.
        """

        def measured(index: int) -> int:
            if not self.measured[index]:
                text = trimmed_text(tree, tree.sections[index].own)
                self.followed[index], self.last[index] = measure(text, counter, clock)
                self.measured[index] = 1
            return index

        def cost(index: int) -> int:
            index = measured(index)
            return counter.upper_bound(max(self.followed[index], self.last[index]))

        size = len(self.measured)
        followed: Sequence[int] = self.followed
        last: Sequence[int] = self.last
        if not all(self.measured):
            followed = _Column(size, lambda index: self.followed[measured(index)])
            last = _Column(size, lambda index: self.last[measured(index)])
        return TokenCounts(counter.name, followed, last, _Column(size, cost), 0, self.escaped)


class _Column(Sequence[int]):
    """Numbers that are worked out when they are asked for."""

    def __init__(self, size: int, at: Callable[[int], int]) -> None:
        self._size, self._at = size, at

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> int:  # type: ignore[override]
        if not -self._size <= index < self._size:
            raise IndexError(index)
        return self._at(index)


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
