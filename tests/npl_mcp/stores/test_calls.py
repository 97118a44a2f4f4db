"""The log of calls in the database: views of callers, removal, and rows of earlier versions."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from npl_mcp.stores import calls as module
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.paging import stamp
from npl_mcp.stores.calls import KEPT_DAYS, LoggedCall
from npl_mcp.stores.checking import check_rows
from tests import engines

ALL = 100
NOW = datetime.now(timezone.utc)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = engines.database(tmp_path / "data")
    yield made
    made.close()


def call(ago: timedelta = timedelta(), **given: object) -> LoggedCall:
    """Return a call as one that loads sections is logged."""
    usual = LoggedCall(
        created_at=stamp(NOW - ago),
        tool="npl_load_tailored",
        domains="npl",
        who="ann",
        owner=None,
        micros=1_500,
        file="a.md",
        used=30,
    )
    return replace(usual, **given)  # type: ignore[arg-type]


def test_the_latest_calls_come_first(database: Database) -> None:
    database.writing(
        module.add, [call(who=who, tool=tool) for who in ("ann", "ben") for tool in ("x", "y", "z")]
    )
    failed = call(
        who="cleo", owner="cleo", context="why", error="NOT_FOUND", message="no \u00fc", arguments="{}"
    )
    database.writing(module.add, [replace(failed, taken=("## A", "## \u00dc"), absent=("bonsai",))])
    page = database.reading(module.latest, 3)
    assert [(row.who, row.tool) for row in page[1:]] == [("ben", "z"), ("ben", "y")]
    (only,) = database.reading(module.latest, ALL, owner="cleo")
    assert only == replace(failed, id=7, taken=("## A", "## \u00dc"), absent=("bonsai",))


def test_old_calls_and_those_that_are_too_many_are_removed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CALLS", 3)
    database.writing(module.add, [call(ago=timedelta(days=KEPT_DAYS + 1)), call()])
    assert [row.id for row in database.reading(module.latest, ALL)] == [2]
    database.writing(module.add, [call(tool=str(at)) for at in range(4)])
    assert [row.tool for row in database.reading(module.latest, ALL)] == ["3", "2", "1"]


def test_rows_of_earlier_versions_are_read_and_removed(database: Database) -> None:
    """Their offers have their own table."""
    with database.write() as tx:
        old = {"tool": "x", "domains": "npl", "who": "ann", "micros": 1, "bytes": 2, "hits": 3, "misses": 4}
        expired = stamp(NOW - timedelta(days=KEPT_DAYS + 1))
        tx.insert_many("tool_call", [{"created_at": at, **old} for at in (expired, stamp(NOW))])
        offer = {"number": 0, "kind": "more", "digest": "d", "selector": "## A"}
        tx.insert_many("tool_call_offer", [{"call_id": number, **offer} for number in (1, 2)])
    (only,) = database.reading(module.latest, ALL)
    assert (only.id, only.tool, only.message, only.absent) == (2, "x", None, None)
    database.writing(module.add, [call()])
    with database.read() as tx:
        assert [row["call_id"] for row in tx.all("SELECT call_id FROM tool_call_offer")] == [2]


def test_a_log_can_be_checked(database: Database, tmp_path: Path) -> None:
    database.writing(module.add, [call(taken=("## A",), absent=("x",))])
    assert list(check_rows(database)) == []
    database.close()
    engines.execute(tmp_path / "data", "UPDATE tool_call SET taken = '[' WHERE id = 1")
    assert [line for line in check_rows(database) if "column taken" in line]


@pytest.mark.parametrize(
    ("domains", "expected"),
    [
        (None, ["", "npl", "chat", "review artifact"]),
        ({"npl", "review"}, ["npl"]),
        ({"review", "artifact"}, ["review artifact"]),
        (set(), []),
    ],
)
def test_a_call_is_seen_by_callers_that_see_all_it_needs(
    database: Database, domains: set[str] | None, expected: list[str]
) -> None:
    database.writing(
        module.add,
        [call(domains=domains, tool=domains) for domains in ("", "npl", "chat", "review artifact")],
    )
    seen = None if domains is None else frozenset(domains)
    assert [row.tool for row in database.reading(module.latest, ALL, seen)][::-1] == expected


def test_without_calls_nothing_is_seen(database: Database) -> None:
    database.writing(module.add, [])
    assert database.reading(module.latest, ALL, frozenset({"npl"})) == []
