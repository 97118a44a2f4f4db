"""The log of calls stands in nobody's way, whatever becomes of the database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from npl_mcp.app import call_log
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base.paging import Slice
from npl_mcp.stores.calls import CallFilter
from npl_mcp.stores.data_folder import Stores
from tests import engines
from tests.conftest import calls

LOAD = [("npl_load_tailored", {"file": "guide.md", "context": "how to begin"})]


@pytest.fixture
def logged(settings: Settings, docs: Path) -> Settings:
    (docs / "guide.md").write_text("# Guide\n\n## Begin\n\nBegin here.\n", encoding="utf-8")
    return replace(settings, log_calls="on")


def rows(settings: Settings) -> list[tuple[str, str | None]]:
    stores = engines.stores(settings.data_folder)
    found = stores.calls.list(CallFilter(), Slice(100, 0)).items
    stores.close()
    return [(one.tool, one.context) for one in found]


def test_what_is_left_is_written_when_the_server_ends(logged: Settings) -> None:
    """A context is kept by who asks for that alone."""
    assert calls(logged, LOAD)[0]["success"]
    calls(replace(logged, log_calls="contexts"), LOAD)
    assert rows(logged) == [("npl_load_tailored", "how to begin"), ("npl_load_tailored", None)]


def test_no_call_waits_for_the_database(logged: Settings) -> None:
    """Somebody else writes all the time; calls are answered meanwhile."""
    stores = Stores(logged.data_folder, 1_000, logged.database_url)
    stores.database.open()
    with stores.database.write():
        assert [one["success"] for one in calls(logged, LOAD * 3)] == [True] * 3
    stores.close()


@pytest.mark.engine("sqlite")
def test_no_call_fails_because_of_the_database(logged: Settings, caplog: pytest.LogCaptureFixture) -> None:
    (logged.data_folder / "npl.db").write_bytes(b"this is no database" * 100)
    assert [one["success"] for one in calls(logged, LOAD * 2)] == [True] * 2
    assert "2 calls are left out of the log" in caplog.text


def test_calls_that_are_too_many_are_left_out(logged: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """They fill no memory."""
    monkeypatch.setattr(call_log, "MAX_QUEUE", 2)
    monkeypatch.setattr(call_log, "PAUSE_SECONDS", 60.0)
    assert [one["success"] for one in calls(logged, LOAD * 5)] == [True] * 5
    assert len(rows(logged)) == 2
