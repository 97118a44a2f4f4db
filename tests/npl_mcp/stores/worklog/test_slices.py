"""Long logs are imported while others write; exports write over nothing that is not theirs."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import AlreadyExistsError
from npl_mcp.stores.worklog.format import LONGEST_LINE
from npl_mcp.stores.worklog.importing import SLICE_ROWS
from npl_mcp.stores.worklog.store import WorklogStore
from tests import engines

SLICES = 40


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return engines.database(tmp_path / "data")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def line(seq: int, **more: Any) -> bytes:
    entry = {"seq": seq, "ts": "2025-12-01T10:00:00+00:00", "agent_id": "a", "action": "did", "summary": "s"}
    return json.dumps({**entry, **more}).encode() + b"\n"


def old_log(project: Path, *lines: bytes, session: str = "old") -> Path:
    folder = project / ".npl" / "sessions" / session
    folder.mkdir(parents=True)
    meta = {"session_id": session, "created": "2025-12-01T10:00:00+00:00", "task": None, "status": "active"}
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "worklog.jsonl").write_bytes(b"".join(lines))
    return folder


def rows(database: Database, of: str) -> int:
    with database.read() as tx:
        return int(tx.value(f"SELECT count(*) FROM {of}"))


def test_others_write_while_a_long_log_is_imported(database: Database, project: Path) -> None:
    """Each slice is a transaction of its own, and nobody sees the session before the last."""
    old_log(project, *map(line, range(1, SLICES * SLICE_ROWS + 1)))
    store = WorklogStore(database)
    database.open()
    done, between, seen = threading.Event(), set(), set()

    def write() -> None:
        while not done.is_set():
            with database.write() as tx:
                tx.run("INSERT INTO total (name, value) VALUES (:name, 1)", name=uuid4().hex)
            between.add(rows(database, "worklog_entry"))
            seen.add(rows(database, f"worklog_session WHERE project = '{project}'"))

    other = threading.Thread(target=write)
    other.start()
    imported = store.import_folder(str(project))
    done.set()
    other.join()
    assert (imported.sessions, imported.entries) == (1, SLICES * SLICE_ROWS)
    assert between - {0, SLICES * SLICE_ROWS}
    assert all(number % SLICE_ROWS == 0 for number in between)
    assert seen <= {0, 1}
    assert store.status(str(project), "old").entry_count == SLICES * SLICE_ROWS


def test_what_an_import_left_that_died_is_removed(database: Database, project: Path, tmp_path: Path) -> None:
    """The next import begins anew, and all is there once."""
    folder = old_log(project, *map(line, range(1, 11)))
    shutil.copytree(project, tmp_path / "copy")
    store = WorklogStore(database)
    store.import_folder(str(project))
    with database.write() as tx:  # as if the process had died before the last step
        tx.run("UPDATE worklog_project SET current = NULL")
        tx.run("DELETE FROM worklog_agent")
        tx.run(
            f"UPDATE worklog_session SET project = 'importing:{project}', archived_as = 'left', id = 'left'"
        )
    assert store.import_folder(str(project)).entries == 10
    assert rows(database, "worklog_session") == 1
    assert rows(database, "worklog_entry") == 10
    assert folder.is_dir()


def test_imports_at_once_take_a_log_in_once(database: Database, project: Path, tmp_path: Path) -> None:
    """In one process and in several stores, as several servers have them."""
    old_log(project, *map(line, range(1, 2 * SLICE_ROWS)))
    stores = [WorklogStore(engines.database(tmp_path / "data")) for _ in range(3)]
    threads = [
        threading.Thread(target=store.status, args=(str(project), "old"))
        for store in stores
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(database, "worklog_session") == 1
    assert rows(database, "worklog_entry") == 2 * SLICE_ROWS - 1


def test_a_folder_that_may_only_be_read_is_imported(database: Database, project: Path) -> None:
    """What a link leads to outside is not, and nothing is written there."""
    folder = old_log(project, line(1))
    for path in (folder, folder.parent, folder.parent.parent):
        path.chmod(0o555)
    try:
        assert WorklogStore(database).import_folder(str(project)).entries == 1
    finally:
        for path in (folder.parent.parent, folder.parent, folder):
            path.chmod(0o755)


def test_a_line_longer_than_any_entry_is_skipped(database: Database, project: Path) -> None:
    """The lines after it are taken."""
    old_log(project, line(1), b"{" + b"x" * (2 * LONGEST_LINE) + b"}\n", line(2), line(3).rstrip())
    done = WorklogStore(database).import_folder(str(project))
    assert (done.entries, done.skipped_lines) == (3, 1)


CURSORS = [
    # numbers of the lines, number the cursor has, place it gets
    ([1, 2, 3], 2, 2),
    ([5, 3, 9], 4, 2),
    ([5, 3, 9], 7, 1),
    ([5, 3, 9], 2, 0),
    ([1, 1, 2], 1, 1),
    ([1, 2, 2, 3], 99, 4),
    ([7], 7, 1),
]


@pytest.mark.parametrize(("numbers", "cursor", "place"), CURSORS)
def test_a_cursor_is_translated(
    database: Database, project: Path, numbers: list[int], cursor: int, place: int
) -> None:
    """To the first place of the highest number that is not above it, whatever other cursors there are."""
    folder = old_log(project, *map(line, numbers))
    (folder / ".cursors").mkdir()
    for agent, number in (("r", cursor), ("low", 1), ("high", 50)):
        (folder / ".cursors" / f"{agent}.cursor").write_text(json.dumps({"last_seq": number}))
    WorklogStore(database).import_folder(str(project))
    with database.read() as tx:
        assert tx.value("SELECT last_seq FROM worklog_agent WHERE agent_id = 'r'") == place


FOREIGN: dict[str, dict[str, str]] = {
    "a description": {"meta.json": '{"name": "my web page"}'},
    "a log": {"worklog.jsonl": "mine\n"},
    "both": {"meta.json": "{}", "worklog.jsonl": "{}"},
    "cursors": {".cursors/me.cursor": "{}"},
    "no file at all": {"meta.json/inside": "mine"},
}


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", FOREIGN)
def test_an_export_leaves_what_is_not_its_own(
    database: Database, project: Path, tmp_path: Path, case: str
) -> None:
    """It is refused, and the folder is as it was."""
    store = WorklogStore(database)
    store.log(str(project), "a", "did", "s")
    target = tmp_path / "site"
    for name, text in FOREIGN[case].items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    with pytest.raises(AlreadyExistsError, match="choose another folder"):
        store.export(str(project), target=target)
    assert contents(target) == FOREIGN[case]


def test_an_export_can_be_made_again(database: Database, project: Path, tmp_path: Path) -> None:
    """Also beside other files, and one of another session is refused."""
    store, target = WorklogStore(database), tmp_path / "site"
    target.mkdir()
    (target / "index.html").write_text("mine")
    store.init(str(project), "one")
    store.export(str(project), target=target)
    for number in range(2):
        store.log(str(project), "a", "did", f"{number}")
        store.export(str(project), target=target)
    assert len((target / "worklog.jsonl").read_bytes().splitlines()) == 2
    store.init(str(project), "two")
    store.log(str(project), "a", "did", "x")
    with pytest.raises(AlreadyExistsError):
        store.export(str(project), target=target)
    (target / "worklog.jsonl").write_text("mine\n")
    with pytest.raises(AlreadyExistsError):
        store.export(str(project), "one", target=target)
    assert contents(target)["index.html"] == "mine"
