"""The log of calls delays no call, at any state of the database."""

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app import call_reports as call_log
from npl_mcp.config.settings import Settings
from npl_mcp.stores.calls import LoggedCall, latest
from npl_mcp.stores.data_folder import Stores
from tests import engines
from tests.conftest import calls

LOAD = [("npl_load_tailored", {"file": "guide.md", "context": "how to begin"})]


@pytest.fixture
def logged(settings: Settings, docs: Path) -> Settings:
    (docs / "guide.md").write_text("# Guide\n\n## Begin\n\nBegin here.\n", encoding="utf-8")
    return replace(settings, log_calls="on")


def rows(settings: Settings) -> list[LoggedCall]:
    with closing(engines.stores(settings.data_folder)) as stores:
        return stores.database.reading(latest, 100)


def test_what_is_left_is_written_when_the_server_ends(logged: Settings) -> None:
    """Contexts are stored only if their setting asks for it."""
    assert calls(logged, LOAD)[0]["success"]
    calls(replace(logged, log_calls="contexts"), LOAD)
    assert [call.context for call in rows(logged)] == ["how to begin", None]


def test_no_call_waits_for_the_database(logged: Settings) -> None:
    """Calls are answered while another process writes all the time."""
    stores = Stores(logged.data_folder, logged.database_url)
    stores.database.open()
    with stores.database.write():
        assert [answer["success"] for answer in calls(logged, LOAD * 3)] == [True] * 3
    stores.close()


@pytest.mark.engine("sqlite")
def test_no_call_fails_because_of_the_database(logged: Settings, caplog: pytest.LogCaptureFixture) -> None:
    (logged.data_folder / "npl.db").write_bytes(b"this is no database" * 100)
    assert [answer["success"] for answer in calls(logged, LOAD * 2)] == [True] * 2
    left_out = re.findall(r"(\d+) calls are left out of the log", caplog.text)
    assert sum(map(int, left_out)) == 2  # in one batch or in two


def test_calls_that_are_too_many_are_left_out(logged: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_log, "MAX_QUEUE", 2)
    monkeypatch.setattr(call_log, "PAUSE_SECONDS", 60.0)
    assert [answer["success"] for answer in calls(logged, LOAD * 5)] == [True] * 5
    assert len(rows(logged)) == 2


FAILING: dict[str, tuple[str, dict[str, Any]]] = {
    "an invalid argument": ("npl_load_tailored", {"file": "a", "item": "b", "context": "how to begin"}),
    "a missing file": ("npl_load_tailored", {"file": "guise.md", "context": "how to begin \0\ud800"}),
    "a long argument": ("chat_send_message", {"room_id": 1, "message": "how to begin " * 100_000}),
    "an unknown tool": ("npl_lode", {"context": ["how to begin"] * 1_000}),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_failed_call_has_its_reason(logged: Settings, case: str) -> None:
    """Its arguments are shortened, and stored only with contexts."""
    answer = calls(logged, [FAILING[case]])[0]
    calls(replace(logged, log_calls="contexts"), [FAILING[case]])
    full, bare = rows(logged)
    for row in (full, bare):
        assert (row.error, row.message) == (answer["error_code"], answer["error"][:1_000])
    assert full.arguments is not None
    assert "how to begin" in full.arguments
    assert len(full.arguments) <= 1_000
    assert (bare.arguments, bare.context) == (None, None)


def test_words_that_no_section_has_are_logged(logged: Settings) -> None:
    calls(replace(logged, log_calls="contexts"), [("npl_load_tailored", {"context": "zzyzx quokka"})])
    (row,) = rows(logged)
    assert (row.outcome, sorted(row.absent or ())) == ("nothing", ["quokka", "zzyzx"])
