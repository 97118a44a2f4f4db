"""Older data folders open and lose nothing; newer ones are refused untouched."""

import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.app.maintenance import check
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.searching import KINDS
from npl_mcp.stores.worklog.transfer import import_folder
from npl_mcp.tools.contract.responses import Reply, as_dict
from npl_mcp.tools.domains import listed_tools

pytestmark = pytest.mark.engine("sqlite")

CASE = Path(__file__).resolve().parents[2] / "cases" / "data-folder-0.1.0"
ANSWERS = json.loads((CASE / "answers.json").read_text(encoding="utf-8"))
TOOLS = {spec.name: spec for spec in listed_tools()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the data folder and the project folder of an older version."""
    with zipfile.ZipFile(CASE / "written.zip") as archive:
        archive.extractall(tmp_path)
    # Worklogs are known by the path of their project, which was another one.
    with closing(sqlite3.connect(tmp_path / "data" / "npl.db")) as connection, connection:
        for table in ("worklog_project", "worklog_session"):
            connection.execute(f"UPDATE {table} SET project = ?", (str(tmp_path / "project"),))
    return tmp_path


def opened(place: Path, data: str = "data") -> closing[App]:
    return closing(App(Settings(cwd=place / "project", home=place, data_dir=place / data, warm_up=False)))


def ask(app: App, tool: str, arguments: dict[str, Any]) -> Any:
    given = {**arguments, "text": False} if tool == "artifact_get" else arguments
    return as_dict(Reply(data=TOOLS[tool](app, **given)))["data"]


RENAMED = {"entries": "items", "comments": "items"}
"""Lists that were renamed to the name of all lists."""


def kept(before: Any, now: Any) -> bool:
    """Return whether an answer has all of an earlier one; later versions may add fields."""
    if isinstance(before, dict) and isinstance(now, dict):
        before = {RENAMED.get(name, name): value for name, value in before.items()}
        return all(name in now and kept(value, now[name]) for name, value in before.items())
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(kept, before, now))
    return bool(before == now)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_everything_in_an_older_data_folder_is_read(place: Path) -> None:
    with opened(place) as app:
        assert check(app.stores).problems == ()
        for recorded in ANSWERS:
            now = ask(app, recorded["tool"], recorded["arguments"])
            expected = json.loads(json.dumps(recorded["data"]).replace("{data}", str(place / "data")))
            assert kept(expected, now), (recorded["tool"], recorded["arguments"], now)


def test_an_older_data_folder_can_be_written(place: Path) -> None:
    with opened(place) as app:
        made = ask(
            app,
            "artifact_add_revision",
            {"artifact_id": 1, "file_content_base64": "bmV3", "filename": "plan.md"},
        )
        said = ask(app, "chat_send_message", {"room_id": 1, "persona": "bob", "message": "@alice new"})
        logged = ask(app, "worklog_log", {"agent_id": "bob", "action": "did", "summary": "it"})
        assert (made["revision_num"], logged["session_id"], logged["seq"]) == (2, "second", 2)
        assert "exported" not in logged
        assert ask(app, "chat_get_feed", {"room_id": 1})["items"][-1]["id"] == said["event_id"]
        assert check(app.stores).problems == ()


def test_older_rows_are_searched(place: Path) -> None:
    """They were written before there was an index of words."""
    with opened(place) as app:
        words = {"message": "the plan", "artifact": "numbers", "worklog": "once"}
        ((_, message),), ((artifact, _),), ((_, entry),) = (
            app.database.reading(KINDS[kind].matching, [word], app.project) for kind, word in words.items()
        )
    assert message.startswith("@bob and @carol: look at the plan")
    assert (artifact["artifact_id"], entry) == (2, "Once more")


def test_an_older_project_folder_is_taken_in(place: Path) -> None:
    """If the database does not know the project, its worklogs are imported from its files."""
    recorded = [answer for answer in ANSWERS if answer["tool"] == "worklog_read"]
    assert len(recorded) == 3
    with opened(place, data="empty") as app:
        assert import_folder(app.database, app.project).sessions > 0
        for answer in recorded:
            assert kept(answer["data"], ask(app, answer["tool"], answer["arguments"]))


def test_a_newer_data_folder_is_refused_and_not_touched(place: Path) -> None:
    """No byte changes, and no file is added or removed."""
    with closing(sqlite3.connect(place / "data" / "npl.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = contents(place)
    with opened(place) as app:
        for recorded in ANSWERS:
            with pytest.raises(DatabaseError, match="newer version"):
                ask(app, recorded["tool"], recorded["arguments"])
        with pytest.raises(DatabaseError, match="newer version"):
            app.stores.start()
        for tool, arguments in (
            ("session_create", {}),
            (
                "artifact_create",
                {"name": "x", "artifact_type": "t", "file_content_base64": "eA==", "filename": "x"},
            ),
            ("worklog_log", {"agent_id": "a", "action": "b", "summary": "c"}),
        ):
            with pytest.raises(DatabaseError, match="newer version"):
                ask(app, tool, arguments)
    assert contents(place) == before


@pytest.mark.parametrize("version", ["0000", "0001x", "zz", "", "9" * 500])
def test_a_data_folder_of_an_unknown_version_is_refused_and_not_touched(place: Path, version: str) -> None:
    """It is neither older nor newer, so its content is unknown."""
    with closing(sqlite3.connect(place / "data" / "npl.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", [version])
    before = contents(place)
    with opened(place) as app, pytest.raises(DatabaseError, match="does not know"):
        ask(app, "session_list", {})
    assert contents(place) == before
