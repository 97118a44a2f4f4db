"""Activity over time: the number of rows per time unit, for a picture with a limited number of bars."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NamedTuple

MAX_PARTS = 120
"""Maximum bars of a picture: more would be narrower than two pixels on a phone."""

_REST = "0001-01-01T00:00:00"


class Unit(NamedTuple):
    """A unit of time.

    :param characters: number of characters of a stored time that identify the unit.
    :param seconds: length of the unit.
    """

    characters: int
    seconds: int


_UNITS = (
    Unit(19, 1),
    Unit(18, 10),
    Unit(16, 60),
    Unit(15, 600),
    Unit(13, 3600),
    Unit(10, 86_400),
    Unit(7, 31 * 86_400),
    Unit(4, 366 * 86_400),
)


@dataclass(frozen=True, slots=True)
class Count:
    """The number of entries in a unit of time.

    :param at: common beginning of the times in the unit.
    :param count: number of entries in the unit.
    """

    at: str
    count: int


def unit_for(first: str, last: str) -> Unit:
    """Return the shortest unit that divides a span of time into at most :data:`MAX_PARTS` parts."""
    span = seconds_of(last) - seconds_of(first)
    return next((unit for unit in _UNITS if span / unit.seconds < MAX_PARTS), _UNITS[-1])


def seconds_of(begin: str) -> int:
    """Return the first moment of a truncated timestamp, in seconds since 1970."""
    full = begin[:19] + _REST[len(begin) :]
    return int(datetime.fromisoformat(full).replace(tzinfo=timezone.utc).timestamp())
