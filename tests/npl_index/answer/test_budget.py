"""Promises of :mod:`npl_index.answer.budget`, with units made of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from npl_index.answer.budget import Packed, Part, Size, Unit, pack
from npl_index.markdown.sections import Span

ROW, TRACE = 10, 4


class Prices:
    """A text costs its tokens, a row ten, a name four, and the first unit of a document some more."""

    def __init__(self, entry: int = 0) -> None:
        self._entry = entry

    def text(self, unit: Unit) -> int:
        return unit.tokens

    def row(self, _: Unit) -> int:
        return ROW

    def entry(self, _: int) -> int:
        return self._entry

    def trace(self, _: Unit) -> int:
        return TRACE


def part(number: int, tokens: int, document: int = 0) -> Part:
    lines = Span(number * 1000, number * 1000 + tokens)
    return Part(document, number, lambda: lines, lambda: Size(tokens, tokens, tokens))


def units(*tokens: int) -> list[Unit]:
    return [Unit((part(number, one),), 1 - number / 100) for number, one in enumerate(tokens)]


def halve(one: Part, room: int, at_any_cost: bool) -> Sequence[Part] | None:
    """Cut so that what fits is kept, if that is at least ten tokens."""
    if room < 10 or room >= one.size.last:
        return None
    return part(one.section, room, one.document), part(one.section, one.size.last - room, one.document)


def never(one: Part, room: int, at_any_cost: bool) -> None:
    return None


def alone(unit: Unit) -> list[Unit]:
    return [Unit((one,), unit.score) for one in unit.parts]


def sections(of: Sequence[Unit]) -> list[int]:
    return [one.section for unit in of for one in unit.parts]


def packed(
    given: Sequence[Unit],
    room: int,
    cut: object = never,
    entry: int = 0,
    names: int = 0,
    most: int | None = None,
) -> Packed:
    return pack(given, room, Prices(entry), alone, cut, names=(0, names), most=most)  # type: ignore[arg-type]


def test_no_lesser_unit_takes_the_place_of_one_that_does_not_fit() -> None:
    """It ends the list, unless nothing is kept yet; then it is owed its name."""
    found = packed(units(60, 50, 20), 118)
    assert sections(found.kept) == [0]
    assert sections(found.dropped) == [1, 2]
    found = packed(units(200, 50), 118)
    assert sections(found.kept) == [1]
    assert found.owed == 1
    assert found.left == 118 - 50 - ROW


def test_a_long_text_is_cut_to_what_one_may_have() -> None:
    """The next one gets its place."""
    found = packed(units(300, 30), 1000, halve, most=100)
    assert [one.tokens for one in found.kept] == [100, 30]
    assert sections(found.rests) == [0]


def test_a_better_unit_is_cut_before_a_lesser_one_is_kept() -> None:
    """What ranks high is cut, and not replaced by what would fit whole."""
    found = packed(units(30, 500, 20), 200, halve)
    assert sections(found.kept)[:2] == [0, 1]
    assert found.kept[1].cut
    assert sections(found.rests)[0] == 1


def test_a_cut_takes_the_room_there_is() -> None:
    """A long hit is cut to the room that the names leave, that of its own remaining part among them."""
    found = packed(units(500, 40), 200, halve, names=8)
    assert sections(found.kept) == [0]
    assert found.kept[0].tokens == 200 - ROW - TRACE - 8


def test_a_piece_that_is_not_worth_its_row_ends_the_list() -> None:
    """Nothing of lower rank takes its place."""
    assert sections(packed(units(60, 500, 20), 70 + 3 * ROW + TRACE, halve).kept) == [0]
    assert sections(packed(units(60, 500, 20), 71 + 3 * ROW + TRACE, halve).kept) == [0, 1]


def test_the_best_comes_before_any_name() -> None:
    """Where there is room for nothing else, the best unit is cut to all of it."""
    found = packed(units(500, 30), 25, halve, names=20)
    assert sections(found.kept) == [0]


def test_sections_that_do_not_fit_together_are_tried_one_by_one() -> None:
    """A section with its subsections is one unit only as long as it fits."""
    family = Unit((part(0, 30), part(1, 30), part(2, 200)), 1.0)
    assert packed([family], 280).kept == (family,)
    found = packed([family], 150)
    assert sections(found.kept) == [0, 1]
    assert sections(found.dropped) == [2]


def test_entering_a_document_costs_once() -> None:
    """The mark that names a file is paid with its first unit."""
    given = [*units(40, 40), Unit((part(2, 40, document=1),), 0.5)]
    assert len(packed(given, 160, entry=5).kept) == 3
    assert len(packed(given, 159, entry=5).kept) == 2


@given(
    costs=st.lists(st.tuples(st.integers(1, 300), st.integers(0, 3)), max_size=30),
    room=st.integers(0, 1000),
    entry=st.integers(0, 20),
)
def test_the_room_holds_and_nothing_is_lost(costs: list[tuple[int, int]], room: int, entry: int) -> None:
    """What is kept fits with the names it owes; kept and left out together are what was given."""
    given = [
        Unit((part(number, cost, document),), 1 - number / 100)
        for number, (cost, document) in enumerate(costs)
    ]
    found = packed(given, room, halve, entry)
    spent = sum(one.tokens + ROW for one in found.kept) + entry * len({one.document for one in found.kept})
    better = [one for one in found.dropped if found.kept and one.score > found.kept[-1].score]
    assert not found.kept or spent + TRACE * len(better) <= room
    assert len(better) <= found.owed
    assert found.left <= room
    assert {*sections(found.kept), *sections(found.dropped)} == set(range(len(costs)))
    assert sum(one.tokens for one in (*found.kept, *found.dropped, *found.rests)) == sum(
        cost for cost, _ in costs
    )
