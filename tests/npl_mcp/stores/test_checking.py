"""Damaged rows, one by one: tools and the check report each, and none is a defect of the program."""

from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.app.maintenance import check
from tests import engines
from tests.conftest import cases
from tests.npl_mcp.stores.test_faults import WRITES, ask, file
from tests.npl_mcp.stores.writer import settings_in
from tests.programs import Run

USED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("chat_create_room", {"name": "room", "members": ["alice", "bob"], "session_id": "shared"}),
    ("artifact_create", {"name": "plan", "artifact_type": "document", **file()}),
    ("review_create", {"artifact_id": 1, "revision_id": 1, "reviewer_persona": "bob"}),
    ("worklog_init", {"session_id": "shared"}),
    *WRITES,
    ("worklog_log", {"agent_id": "a", "action": "did", "summary": "s", "data": [1], "tags": ["t"]}),
)

READS: dict[str, tuple[str, dict[str, Any]]] = cases("npl_mcp/stores/checking")["reads"]

# Columns that number the rows of tables without an id.
KEYS = {"session": "number", "worklog_session": "number", "worklog_entry": "seq"}

NO_TEXT = "CAST(x'7b22ff' AS TEXT)"

# Table, column, SQL of what it holds then, and whether its reader can go on nevertheless.
DAMAGE = cases("npl_mcp/stores/checking")["damage"]
if engines.ENGINE == "postgres":  # which stores no invalid text
    DAMAGE = [row for row in DAMAGE if not row[2].startswith("CAST")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    app = App(settings_in(tmp_path))
    for tool, arguments in USED:
        assert ask(app, tool, **arguments)["success"], tool
    app.close()
    return tmp_path


def damage(place: Path, table: str, column: str, value: str, rows: str = "= 1") -> None:
    row = "rowid" if engines.ENGINE == "sqlite" else KEYS.get(table, "id")
    engines.execute(place / "data", f"UPDATE {table} SET {column} = {value} WHERE {row} {rows}")


def test_a_sound_data_folder_has_no_problem(place: Path) -> None:
    app = App(settings_in(place))
    assert check(app.stores).problems == ()
    app.close()


@pytest.mark.parametrize(("table", "column", "value", "readable"), DAMAGE)
def test_damage_is_found_and_named(
    place: Path,
    table: str,
    column: str,
    value: str,
    readable: bool,
    program: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check names table and column; a tool that meets the row answers DATABASE_ERROR."""
    damage(place, table, column, value)
    app = App(settings_in(place))
    tool, arguments = READS[table]
    answer = ask(app, tool, **arguments)
    app.close()
    if readable:
        assert answer.get("error_code") in (None, "NOT_FOUND", "FILE_SYSTEM_ERROR")
    else:
        assert answer["error_code"] == "DATABASE_ERROR"
        assert "1" in answer["error"] or "'npl-mcp check' names the row" in answer["error"]
    for name, value in engines.environment(place / "data").items():
        monkeypatch.setenv(name, value)
    code, _, problems = program("npl-mcp", "--data-dir", str(place / "data"), "check")
    assert (code, table.split("_")[0] in problems, column in problems) == (1, True, True)


@pytest.mark.engine("sqlite")
def test_every_damaged_row_is_named(place: Path) -> None:
    """Rows after an unreadable one are read as well."""
    app = App(settings_in(place))
    for number in range(5):
        ask(app, "chat_send_message", room_id=1, persona="alice", message=f"m{number}")
    events = ask(app, "chat_get_feed", room_id=1)["data"]["total"]
    app.close()
    damage(place, "event", "data", NO_TEXT, "> 0")
    app = App(settings_in(place))
    problems = [line for line in check(app.stores).problems if "event" in line]
    app.close()
    assert len(problems) == events
    assert len(set(problems)) == events


COUNTS = cases("npl_mcp/stores/checking")["counts"]


def test_every_stored_number_is_compared_with_the_rows(place: Path) -> None:
    """Lists rely on these numbers; exactly the differing ones are named."""
    stores = engines.stores(place / "data")
    for table, column in COUNTS:
        engines.execute(place / "data", f"UPDATE {table} SET {column} = {column} + 1")
        problems = check(stores).problems
        assert problems, (table, column)
        assert all(" counts " in problem for problem in problems)
        engines.execute(place / "data", f"UPDATE {table} SET {column} = {column} - 1")
    assert check(stores).problems == ()
    stores.close()
