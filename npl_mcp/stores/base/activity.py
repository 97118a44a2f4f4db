"""How much happened when: rows counted by parts of their time, as many parts as fit a picture."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

MOST_PARTS = 120
"""Parts of a picture: more would be narrower than two pixels on a phone."""

_UNITS = (
    (19, 1),
    (18, 10),
    (16, 60),
    (15, 600),
    (13, 3600),
    (10, 86_400),
    (7, 31 * 86_400),
    (4, 366 * 86_400),
)
"""Characters of a stored time that tell its part, and the seconds of such a part."""

_REST = "0001-01-01T00:00:00"


@dataclass(frozen=True, slots=True)
class Unit:
    """Parts of time of one length.

    :param characters: of a stored time that tell its part.
    :param seconds: of a part.
    """

    characters: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Count:
    """What happened in a part of time.

    :param at: how the times in it begin.
    :param count: what happened in it.
    """

    at: str
    count: int


def unit_for(first: str, last: str) -> Unit:
    """Return the shortest parts by which a picture from one time to another is not too fine."""
    span = seconds_of(last) - seconds_of(first)
    for characters, seconds in _UNITS:
        if span / seconds < MOST_PARTS:
            return Unit(characters, seconds)
    return Unit(*_UNITS[-1])


def seconds_of(begin: str) -> int:
    """Return the moment at which times begin that begin so, in seconds since 1970."""
    full = begin[:19] + _REST[len(begin) :]
    return int(datetime.fromisoformat(full).replace(tzinfo=timezone.utc).timestamp())
