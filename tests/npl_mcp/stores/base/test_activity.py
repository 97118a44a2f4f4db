"""Parts of time: as short as a picture allows, whatever it spans."""

from __future__ import annotations

import pytest

from npl_mcp.stores.base.activity import MAX_PARTS, seconds_of, unit_for

START = "2026-01-31T23:59:59.000000Z"


@pytest.mark.parametrize(
    ("last", "characters", "seconds"),
    [
        (START, 19, 1),
        ("2026-02-01T00:01:00.000000Z", 19, 1),
        ("2026-02-01T00:10:00.000000Z", 18, 10),
        ("2026-02-01T01:30:00.000000Z", 16, 60),
        ("2026-02-01T12:00:00.000000Z", 15, 600),
        ("2026-02-04T00:00:00.000000Z", 13, 3600),
        ("2026-04-01T00:00:00.000000Z", 10, 86_400),
        ("2029-01-01T00:00:00.000000Z", 7, 31 * 86_400),
        ("2126-01-01T00:00:00.000000Z", 4, 366 * 86_400),
        ("9999-12-31T23:59:59.999999Z", 4, 366 * 86_400),
    ],
)
def test_parts_fit_a_picture(last: str, characters: int, seconds: int) -> None:
    unit = unit_for(START, last)
    assert (unit.characters, unit.seconds) == (characters, seconds)
    span = seconds_of(last) - seconds_of(START)
    assert span / unit.seconds < MAX_PARTS or unit.characters == 4


@pytest.mark.parametrize("characters", [4, 7, 10, 13, 15, 16, 18, 19])
def test_a_part_begins_where_its_times_do(characters: int) -> None:
    """What stands behind it counts as little as it can."""
    begin = seconds_of(START[:characters])
    assert begin <= seconds_of(START)
    assert seconds_of("1970-01-01T00:00:00"[:characters]) == 0
