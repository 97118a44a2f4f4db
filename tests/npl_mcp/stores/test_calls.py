"""The log of calls in the database: what follows what, what is removed, what is summed up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from npl_mcp.stores import calls as module
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.base.paging import Slice, stamp
from npl_mcp.stores.calls import KEPT_DAYS, CallFilter, CallStore, Chosen, Figures, LoggedCall
from npl_mcp.stores.checking import check_rows
from tests import engines

ALL = Slice(100, 0)
NOW = datetime.now(timezone.utc)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = engines.database(tmp_path / "data")
    yield found
    found.close()


@pytest.fixture
def store(database: Database) -> CallStore:
    return CallStore(database)


def call(ago: timedelta = timedelta(), **given: object) -> LoggedCall:
    """Return a call as one that loads sections is logged."""
    when, tool = stamp(NOW - ago), "npl_load_tailored"
    made = LoggedCall(when, tool, "npl", "ann", None, None, 1_500, 40, "a.md", 100, 30, 60)
    return replace(made, **given)  # type: ignore[arg-type]


def offering(*selectors: str, **given: object) -> LoggedCall:
    return call(offered=tuple(("suggestion", one) for one in selectors), **given)  # type: ignore[arg-type]


FOLLOWING = {
    "the same": (call(wanted=("## A",)), [True, False]),
    "both": (call(wanted=("## B", "## A")), [True, True]),
    "another selector": (call(wanted=("## C",)), [False, False]),
    "another file": (call(wanted=("## A",), file="b.md"), [False, False]),
    "another caller": (call(wanted=("## A",), who="ben"), [False, False]),
    "nothing": (call(), [False, False]),
}


@pytest.mark.parametrize("case", FOLLOWING)
def test_what_was_offered_is_followed_by_the_same_caller(store: CallStore, case: str) -> None:
    later, expected = FOLLOWING[case]
    store.add([offering("## A", "## B")])
    store.add([later])
    last, first = store.list(CallFilter(), ALL).items
    assert [one.followed_by == last.id for one in first.offers or ()] == expected
    assert sum(one.followed for one in store.figures(CallFilter(), "day").values()) == sum(expected)


def test_an_offer_is_followed_once(store: CallStore) -> None:
    store.add([offering("## A"), call(wanted=("## A",)), call(wanted=("## A",))])
    items = store.list(CallFilter(), ALL).items
    assert [one.followed_by for one in items[-1].offers or ()] == [items[1].id]


def test_a_list_is_paged_and_narrowed(store: CallStore) -> None:
    store.add([call(who=who, tool=tool) for who in ("ann", "ben") for tool in ("x", "y", "z")])
    store.add([call(who="cleo", owner="cleo", taken=("## A", "## Ü"), context="why", error="NOT_FOUND")])
    page = store.list(CallFilter(), Slice(2, 1))
    assert (page.total, [(one.who, one.tool) for one in page.items]) == (7, [("ben", "z"), ("ben", "y")])
    assert store.list(CallFilter(tool="x", who="ann"), ALL).total == 1
    assert store.list(CallFilter(tool="none"), ALL).total == 0
    (only,) = store.list(CallFilter(owner="cleo"), ALL).items
    assert (only.taken, only.context, only.error, only.ms) == (("## A", "## Ü"), "why", "NOT_FOUND", 1.5)
    assert store.callers(CallFilter()) == (("ann", "ben", "cleo"), ("npl_load_tailored", "x", "y", "z"))


def test_sums_are_those_of_the_rows(store: CallStore) -> None:
    rows = [
        call(asked=None, hits=2, misses=1),
        call(whole=None, error="NOT_FOUND"),
        offering("## A", "## B"),
        call(wanted=("## A",), offered=(("more", "## C"),)),
    ]
    store.add(rows)
    day = stamp(NOW)[:10]
    expected = Figures(4, 1, 300, 120, 90, 90, 180, 2, 1, 1, 0, 2, 1)
    assert store.figures(CallFilter(), "day") == {day: expected}
    assert store.figures(CallFilter(), "hour") == {stamp(NOW)[:13]: expected}


def test_old_calls_and_those_that_are_too_many_are_removed(
    store: CallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CALLS", 3)
    store.add([offering("## A", ago=timedelta(days=KEPT_DAYS + 1)), offering("## B")])
    assert [one.offers for one in store.list(CallFilter(), ALL).items] == [
        store.list(CallFilter(), ALL).items[0].offers
    ]
    store.add([call(tool=str(at)) for at in range(4)])
    assert [one.tool for one in store.list(CallFilter(), ALL).items] == ["3", "2", "1"]
    assert store.figures(CallFilter(), "day")[stamp(NOW)[:10]].suggested == 0


def test_calls_are_chosen_and_sorted(store: CallStore) -> None:
    """By what came of them, and by a column, with those that lack it last."""
    kinds: list[dict[str, object]] = [
        {"outcome": "found", "used": 5, "micros": 30},
        {"outcome": "nothing", "used": None, "micros": 10},
        {"outcome": "weak", "used": 9, "micros": 20, "again": 1},
        {"error": "NOT_FOUND", "used": 7, "micros": 40},
    ]
    store.add([call(**one) for one in kinds])
    kinds_of: tuple[Chosen, ...] = ("nothing", "weak", "failed", "again", "questions")
    chosen = {kind: [one.id for one in store.list(CallFilter(chosen=kind), ALL).items] for kind in kinds_of}
    assert chosen == {"nothing": [2], "weak": [3], "failed": [4], "again": [3], "questions": [3, 2, 1]}
    assert [one.id for one in store.list(CallFilter(), ALL, "used").items] == [3, 4, 1, 2]
    assert [one.id for one in store.list(CallFilter(), ALL, "micros", rising=True).items] == [2, 3, 1, 4]
    assert store.percentiles(CallFilter()) == {"micros": (30, 40), "used": (7, 9)}
    assert store.percentiles(CallFilter(chosen="weak"))["used"] == (9, 9)


def test_a_log_can_be_checked(store: CallStore, database: Database, tmp_path: Path) -> None:
    store.add([call(taken=("## A",)), offering("## A")])
    assert list(check_rows(database)) == []
    database.close()
    engines.execute(tmp_path / "data", "UPDATE tool_call SET taken = '[' WHERE id = 1")
    assert [line for line in check_rows(database) if "column taken" in line]


def test_a_folder_without_a_database_has_no_calls(tmp_path: Path) -> None:
    if engines.SERVER is None:
        store = CallStore(database_of(tmp_path / "none"))
        assert (store.list(CallFilter(), ALL).total, store.figures(CallFilter(), "day")) == (0, {})
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("domains", "expected"),
    [
        (None, ["", "npl", "chat", "review artifact"]),
        ({"npl", "review"}, ["npl"]),
        ({"review", "artifact"}, ["review artifact"]),
        (set(), []),
    ],
)
def test_a_call_is_seen_by_who_sees_all_that_it_needs(
    store: CallStore, domains: set[str] | None, expected: list[str]
) -> None:
    store.add([call(domains=one, tool=one) for one in ("", "npl", "chat", "review artifact")])
    seen = CallFilter(domains=None if domains is None else frozenset(domains))
    assert [one.tool for one in store.list(seen, ALL).items][::-1] == expected
    assert sum(one.calls for one in store.figures(seen, "day").values()) == len(expected)


def test_where_nobody_called_nothing_is_seen(store: CallStore) -> None:
    store.add([])
    assert store.list(CallFilter(domains=frozenset({"npl"})), ALL).total == 0
