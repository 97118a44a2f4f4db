"""Promises of :mod:`npl_index.answer.budget`, with parts made of numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from npl_index.answer.budget import Part, fit
from npl_index.markdown.sections import Span


def part(number: int, cost: int, document: int = 0) -> Part:
    return Part(document, number, Span(number * 1000, number * 1000 + cost), cost, cost, cost)


def halve(one: Part, room: int) -> tuple[Part, Part] | None:
    """Cut so that what fits is kept, if that is at least ten tokens."""
    if room < 10:
        return None
    return one._replace(cost=room), one._replace(cost=one.cost - room)


def never(one: Part, room: int) -> None:
    return None


def test_what_does_not_fit_is_skipped_not_stopped_at() -> None:
    """A smaller part further down still gets its place."""
    parts = [part(0, 60), part(1, 50), part(2, 30)]
    packed = fit(parts, 100, never)
    assert [one.section for one in packed.kept] == [0, 2]
    assert [one.section for one in packed.dropped] == [1]


def test_without_a_limit_everything_is_kept() -> None:
    """None means no limit, zero means nothing."""
    parts = [part(0, 60), part(1, 50)]
    assert fit(parts, None, never).kept == tuple(parts)
    assert fit(parts, 0, never).kept == ()


def test_only_a_part_larger_than_the_whole_limit_is_cut() -> None:
    """One that would fit alone is left whole for the next call."""
    packed = fit([part(0, 30), part(1, 80), part(2, 500)], 100, halve)
    assert [(one.section, one.cost) for one in packed.kept] == [(0, 30), (2, 60)]
    assert packed.cut == packed.kept[1]
    assert [(one.section, one.cost) for one in packed.dropped] == [(1, 80), (2, 440)]


def test_what_a_selector_asked_for_may_take_the_whole_limit() -> None:
    """Only hits leave room to others when they are cut."""
    packed = fit([part(0, 500)._replace(chosen=True)], 100, halve)
    assert [one.cost for one in packed.kept] == [100]


def test_large_hits_wait_for_smaller_ones() -> None:
    """One long section further down does not push three short ones out; the best hit never waits."""
    parts = [part(0, 20), part(1, 70), part(2, 25), part(3, 25)]
    assert [one.section for one in fit(parts, 100, never).kept] == [0, 2, 3]
    assert [one.section for one in fit(parts[1:], 100, never).kept] == [1, 2]
    assert [one.section for one in fit(parts[:3], 120, never).kept] == [0, 1, 2]


def test_entering_a_document_costs_once() -> None:
    """The mark that names a file is paid with its first part."""
    parts = [part(0, 40), part(1, 40), part(2, 40, document=1)]
    packed = fit(parts, 125, never, lambda _: 5)
    assert [one.section for one in packed.kept] == [0, 1]
    assert [one.section for one in fit(parts, 130, never, lambda _: 5).kept] == [0, 1, 2]


@given(
    costs=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3)), max_size=30),
    limit=st.integers(0, 1000),
    entry=st.integers(0, 20),
)
def test_the_limit_holds_and_nothing_is_lost(costs: list[tuple[int, int]], limit: int, entry: int) -> None:
    """Kept and dropped together are what was given, and what is kept fits with its marks."""
    parts = [part(number, cost, document) for number, (cost, document) in enumerate(costs)]
    packed = fit(parts, limit, halve, lambda _: entry)
    spent = sum(one.cost for one in packed.kept) + entry * len({one.document for one in packed.kept})
    assert spent <= limit or not packed.kept
    assert {one.section for one in (*packed.kept, *packed.dropped)} == {one.section for one in parts}
    assert sum(one.cost for one in (*packed.kept, *packed.dropped)) == sum(one.cost for one in parts)
