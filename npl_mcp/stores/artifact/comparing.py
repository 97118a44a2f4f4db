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
    blocks = _blocks(before, after)
    hunks: list[list[ComparedLine]] = [[]]
    room = MAX_SHOWN
    for at, (same, left, right) in enumerate(blocks):
        if same:
            head, tail = CONTEXT * (at > 0), CONTEXT * (at < len(blocks) - 1)
            lines = [
                ComparedLine("", cut_line(after[n]), o + 1, n + 1) for o, n in zip(left, right, strict=True)
            ]
            if len(lines) > head + tail:
                hunks[-1] += lines[:head]
                hunks.append([])
                lines = lines[len(lines) - tail :]
        else:
            lines = [ComparedLine("−", cut_line(before[n]), old=n + 1) for n in left]
            lines += [ComparedLine("+", cut_line(after[n]), new=n + 1) for n in right]
        hunks[-1] += lines[:room]
        room -= len(lines)
        if room < 0:
            break
    removed = sum(len(left) for same, left, _ in blocks if not same)
    added = sum(len(right) for same, _, right in blocks if not same)
    return Comparison([hunk for hunk in hunks if hunk], added, removed, room < 0)


def _blocks(before: Sequence[str], after: Sequence[str]) -> list[tuple[bool, range, range]]:
    """Return the equal and the different ranges of both texts, in order."""
    shortest = min(len(before), len(after))
    start = next((n for n in range(shortest) if before[n] != after[n]), shortest)
    rest = shortest - start
    end = next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)
    stops = len(before) - end, len(after) - end
    blocks = [(True, range(start), range(start))]
    if max(stops) - start > MAX_LINES:
        blocks.append((False, range(start, stops[0]), range(start, stops[1])))
    else:
        # Frequent lines, such as empty ones, are no anchors: they would make the comparison slow.
        old, new = before[start : stops[0]], after[start : stops[1]]
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
            blocks.append((tag == "equal", range(start + a, start + b), range(start + c, start + d)))
    blocks.append((True, range(stops[0], len(before)), range(stops[1], len(after))))
    return [block for block in blocks if block[1] or block[2]]
