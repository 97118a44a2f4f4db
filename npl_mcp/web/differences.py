"""Differences between two texts, line by line, for pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

Row = dict[str, str]
"""``sign`` (``=``, ``-``, ``+`` or ``…``) and ``text`` of a line."""

LINES = 2_000
"""Maximum lines of a compared text: the time of a comparison grows with the square of the lines."""

AROUND = 3
"""Context lines before and after each difference."""

_GAP = {"sign": "…", "text": ""}


def differences(old: str, new: str) -> list[Row] | None:
    """Return the removed and the added lines, with context lines around them.

    :returns: an empty list for equal texts, ``None`` for texts above :data:`LINES`.
    """
    before, after = old.splitlines(), new.splitlines()
    start = _alike(before, after)
    stop = _alike(before[start:][::-1], after[start:][::-1])
    left, right = before[start : len(before) - stop], after[start : len(after) - stop]
    if max(len(left), len(right)) > LINES:
        return None
    if not left and not right:
        return []
    rows = [_GAP] if start > AROUND else []
    rows += _rows("=", before[max(0, start - AROUND) : start])
    for number, group in enumerate(SequenceMatcher(None, left, right).get_grouped_opcodes(AROUND)):
        rows += [_GAP] if number else []
        for kind, a, b, c, d in group:
            rows += _rows("=" if kind == "equal" else "-", left[a:b])
            rows += _rows("+", right[c:d]) if kind != "equal" else []
    return [*rows, *_rows("=", before[len(before) - stop :][:AROUND])]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of equal lines at the beginning of both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _rows(sign: str, lines: Iterable[str]) -> list[Row]:
    return [{"sign": sign, "text": line} for line in lines]
