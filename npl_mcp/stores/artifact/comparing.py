"""Line-by-line comparison of two texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MAX_LINES = 2_000
"""Maximum lines of each text for a comparison one by one, between the common beginning and end. The work may
be quadratic: a third of a second at this limit. Above it, everything in between counts as changed.
"""

MAX_SHOWN = 3_000
"""Maximum lines of a comparison in an answer."""

MAX_LINE = 2_000
"""Maximum characters of a displayed line; a longer one is data."""

CONTEXT = 3
"""Lines shown before and after a change."""


def cut_line(line: str) -> str:
    """Return a line, or the beginning of a line too long for display."""
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A line of a comparison.

    :param sign: ``−`` for a removed line, ``+`` for an added one, empty for a line of both texts.
    :param text: the line.
    :param old: number of the line in the old text, from 1.
    :param new: number of the line in the new text, from 1.
    """

    sign: str
    text: str
    old: int | None = None
    new: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two texts.

    :param hunks: changes with lines around them.
    :param added: number of lines that only the new text has.
    :param removed: number of lines that only the old text has.
    :param cut: whether the text has more changes than ``hunks``.
    """

    hunks: Sequence[Sequence[ComparedLine]]
    added: int
    removed: int
    cut: bool


def compare(old: str, new: str) -> Comparison:
    """Compare two texts."""
    before, after = old.splitlines(), new.splitlines()
    shortest = min(len(before), len(after))
    start = next((n for n in range(shortest) if before[n] != after[n]), shortest)
    end = next((n for n in range(shortest - start) if before[-1 - n] != after[-1 - n]), shortest - start)
    # Without the common beginning and end, except for the lines shown there.
    head, tail = min(start, CONTEXT), min(end, CONTEXT)
    first = start - head
    before, after = before[first : len(before) - end + tail], after[first : len(after) - end + tail]
    stops = len(before) - tail, len(after) - tail
    whole = [("equal", 0, head, 0, head), ("replace", head, stops[0], head, stops[1])]
    whole.append(("equal", stops[0], len(before), stops[1], len(after)))
    # Frequent lines, such as empty ones, are no anchors: they would make the comparison slow.
    matcher = SequenceMatcher(None, before, after, autojunk=True)
    is_long = max(stops) - head > MAX_LINES
    hunks, room, added, removed = list[list[ComparedLine]](), MAX_SHOWN, 0, 0
    for group in [whole] if is_long else matcher.get_grouped_opcodes(CONTEXT):
        lines: list[ComparedLine] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                shift = first + a - c + 1
                lines += [ComparedLine("", cut_line(after[n]), n + shift, first + n + 1) for n in range(c, d)]
            else:
                added, removed = added + d - c, removed + b - a
                lines += [ComparedLine("−", cut_line(before[n]), old=first + n + 1) for n in range(a, b)]
                lines += [ComparedLine("+", cut_line(after[n]), new=first + n + 1) for n in range(c, d)]
        hunks.append(lines[: max(room, 0)])
        room -= len(lines)
    return Comparison([hunk for hunk in hunks if hunk], added, removed, room < 0)
