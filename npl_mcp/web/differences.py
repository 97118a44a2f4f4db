"""Differences between two texts, line by line, for pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

LINES = 2_000
"""Maximum lines of a compared text: the time of a comparison grows with the square of the lines."""

AROUND = 3
"""Context lines before and after each difference."""

Row = dict[str, Any]
"""``sign`` (``=``, ``-``, ``+`` or ``…``) and ``text`` of a line."""


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
    head, tail = before[max(0, start - AROUND) : start], before[len(before) - stop :][:AROUND]
    rows = [*_same(head), *_inner(left, right), *_same(tail)]
    return [_GAP, *rows] if start > AROUND else rows


_GAP: Row = {"sign": "…", "text": ""}


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of equal lines at the beginning of both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _same(lines: Sequence[str]) -> Iterator[Row]:
    return ({"sign": "=", "text": line} for line in lines)


def _inner(old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    for kind, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            yield from _around(old[a:b])
            continue
        yield from ({"sign": "-", "text": line} for line in old[a:b])
        yield from ({"sign": "+", "text": line} for line in new[c:d])


def _around(lines: Sequence[str]) -> Iterator[Row]:
    if len(lines) <= 2 * AROUND:
        yield from _same(lines)
        return
    yield from _same(lines[:AROUND])
    yield _GAP
    yield from _same(lines[-AROUND:])
