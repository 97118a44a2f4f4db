"""An import reads the predecessor's folder of worklogs."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.paging import Slice
from npl_mcp.stores.worklog import worklogs as store
from npl_mcp.stores.worklog.transfer import MAX_LINE, MAX_LOG_BYTES, Imported, import_folder, parse_line
from npl_mcp.stores.worklog.worklogs import Entry, WorklogSession
from tests import engines
from tests.conftest import cases


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return engines.database(tmp_path / "data")


def imported(database: Database, project: Path) -> Imported:
    return import_folder(database, str(project))


def listed(database: Database, project: Path) -> tuple[WorklogSession, ...]:
    return database.reading(store.sessions, str(project), archived=True)


def sessions(project: Path) -> Path:
    return project / ".npl" / "sessions"


def test_a_line_of_the_predecessor_is_an_entry() -> None:
    line = (
        b'{"seq":7,"ts":"2026-05-06T13:20:41.103552+00:00","agent_id":"scout-1","agent_type":"unknown",'
        b'"action":"found","summary":"\\u00e9\\ud83d\\ude42","data":{"k":[1,null]},"tags":["x",""]}\n'
    )
    assert parse_line(line) == Entry(
        seq=7,
        ts="2026-05-06T13:20:41.103552Z",
        agent_id="scout-1",
        agent_type="unknown",
        action="found",
        summary="é🙂",
        data={"k": [1, None]},
        tags=["x", ""],
    )


@pytest.mark.parametrize("key", ["agent_type", "tags", "refs"])
@pytest.mark.parametrize("value", [None, 5, ["x", None]])
def test_a_line_with_a_minor_value_of_another_kind_is_kept(key: str, value: object) -> None:
    """The value counts as absent."""
    entry = parse_line(written(1, "one", **{key: value}).encode())
    assert entry is not None
    assert (entry.summary, entry.agent_type, entry.tags, entry.refs) == ("one", "unknown", None, None)


def written(seq: int, summary: str, **more: Any) -> str:
    """Write a line as the predecessor did."""
    head = {"seq": seq, "ts": f"2025-11-03T10:00:{seq:02d}.250000+00:00", "agent_id": "w-1"}
    return json.dumps({**head, "agent_type": "unknown", "action": "found", "summary": summary, **more})


def old_folder(project: Path) -> Path:
    """Make the folder of a project that the predecessor used, with what its defects left there."""
    npl = project / ".npl"
    meta = {"created": "2025-11-03T09:00:00.000001+00:00", "task": "täsk", "status": "active", "agents": {}}
    folders = {
        "2025-11-03": {**meta, "session_id": "2025-11-03"},
        "plain": {**meta, "session_id": "plain", "created": "2025-11-04T09:00:00.000001+00:00", "task": None},
        "archive/done": {
            **meta,
            "session_id": "done",
            "status": "closed",
            "closed": "2025-11-02T18:00:00.000000+00:00",
            "created": "2025-11-01T09:00:00.000000+00:00",
        },
    }
    for name, body in folders.items():
        folder = npl / "sessions" / name
        (folder / ".cursors").mkdir(parents=True)
        (folder / "meta.json").write_text(json.dumps(body, indent=2))
    damaged = [
        written(1, "one"),
        written(2, "two", data={"k": 1}, tags=["x"]),
        written(2, "two again"),
        '{"seq": 3, "ts": "2025-11-03T10:00:03',
        written(4, "four", refs={"files": ["a"]}, mood="new"),
        written(3, "three, late"),
        '{"seq": 5, "ts": "2025-11-03T10:00:05.000000+00:00", "agent_id": "w-2", "act',
    ]
    (npl / "sessions" / "2025-11-03" / "worklog.jsonl").write_text("\n".join(damaged))
    cursors = {"r-1": 2, "r-2": 99, "r-3": 0}
    for agent, seen in cursors.items():
        path = npl / "sessions" / "2025-11-03" / ".cursors" / f"{agent}.cursor"
        path.write_text(json.dumps({"last_seq": seen, "last_read": "2025-11-03T11:00:00.000000+00:00"}))
    (npl / "sessions" / "2025-11-03" / ".cursors" / "broken.cursor").write_text("{")
    for name in ("plain", "archive/done"):
        text = f"{written(1, name)}\n{written(2, 'end')}\n"
        (npl / "sessions" / name / "worklog.jsonl").write_text(text)
    (npl / "sessions" / "plain" / ".cursors" / "r-1.cursor").write_text('{"last_seq": 1, "last_read": null}')
    return npl


def test_an_old_folder_is_taken_in(database: Database, project: Path) -> None:
    """Sessions keep tasks, states and times, the archived one too; the newest active one is current."""
    old_folder(project)
    assert listed(database, project) == ()
    before = contents(project)
    imported(database, project)
    assert contents(project) == before
    found = listed(database, project)
    assert [
        (
            session.session_id,
            session.status,
            session.task,
            session.entry_count,
            session.agents,
            session.current,
            session.archived_as,
        )
        for session in found
    ] == [
        ("plain", "active", None, 2, ("w-1",), True, None),
        ("2025-11-03", "active", "täsk", 5, ("w-1",), False, None),
        ("done", "closed", "täsk", 2, ("w-1",), False, "done"),
    ]
    assert found[0].created == "2025-11-04T09:00:00.000001Z"
    assert (found[2].closed, found[2].last_entry) == (
        "2025-11-02T18:00:00.000000Z",
        "2025-11-03T10:00:02.250000Z",
    )


def test_every_line_of_an_old_log_is_kept_once_in_order(database: Database, project: Path) -> None:
    """Repeated and unordered numbers are replaced; an unknown key does not hide its line."""
    old_folder(project)
    imported(database, project)
    with database.read() as tx:
        session = store.resolve(tx, str(project), "2025-11-03")
        entries = store.read(tx, session, "new", Slice(9, 0), None, peek=True).items
    assert [(entry.seq, entry.summary) for entry in entries] == [
        (1, "one"),
        (2, "two"),
        (3, "two again"),
        (4, "four"),
        (5, "three, late"),
    ]
    assert (entries[1].data, entries[1].tags, entries[3].refs) == ({"k": 1}, ["x"], {"files": ["a"]})


def test_a_folder_can_be_taken_in_again(database: Database, project: Path) -> None:
    """Only new entries are added and counted."""
    old_folder(project)
    done = imported(database, project)
    assert (done.sessions, done.entries, done.skipped_lines) == (3, 9, 2)
    assert imported(database, project) == Imported()
    database.writing(store.close, str(project), "plain", archive=True)
    assert imported(database, project) == Imported()
    folder = sessions(project) / "later"
    folder.mkdir()
    (folder / "worklog.jsonl").write_text(written(1, "one") + "\n")
    assert imported(database, project) == Imported(sessions=1, entries=1)
    assert database.reading(store.status, str(project), None).session_id == "later"


def test_what_is_no_session_is_left_alone(database: Database, project: Path, tmp_path: Path) -> None:
    """Empty and hidden folders, links, and folders with invisible characters are not imported."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "worklog.jsonl").write_text(written(1, "secret") + "\n")
    for name in ("empty", ".hidden", "line\nbreak", " blank "):
        (sessions(project) / name).mkdir(parents=True)
    for name in (".hidden", "line\nbreak", " blank "):
        (sessions(project) / name / "worklog.jsonl").write_text(written(1, "x") + "\n")
    (sessions(project) / "link").symlink_to(outside)
    (sessions(project) / "inner").mkdir()
    (sessions(project) / "inner" / "worklog.jsonl").symlink_to(outside / "worklog.jsonl")
    os.mkfifo(sessions(project) / "inner" / "meta.json")
    assert imported(database, project) == Imported()
    assert listed(database, project) == ()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"seq":1}',
        written(1, "x").replace("2025-11-03T", "soon ").encode(),
        written(1, "x").replace('"seq": 1', '"seq": true').encode(),
        written(1, "x").replace('"seq": 1', '"seq": ' + "9" * 5000).encode(),
        written(1, "x", data="\x00").encode(),
        written(1, "x", data="\ud800").encode(),
        written(1, "x", data=float("nan")).encode(),
        written(1, "x").encode("utf-16"),
        b"\xff" + written(1, "x").encode(),
    ],
)
def test_a_line_that_is_no_entry_is_skipped(raw: bytes) -> None:
    assert parse_line(raw) is None


def test_a_worklog_too_large_is_not_taken_in(
    database: Database, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file of over 64 MiB is named in the log and left as it is."""
    folder = sessions(project) / "s1"
    folder.mkdir(parents=True)
    with (folder / "worklog.jsonl").open("wb") as file:
        file.truncate(MAX_LOG_BYTES + 1)
    with caplog.at_level(logging.WARNING, "npl_mcp"):
        assert imported(database, project) == Imported()
    assert "'s1' cannot be imported" in caplog.text


def test_folders_may_be_links_inside_the_project(database: Database, project: Path, tmp_path: Path) -> None:
    """Only links that leave it are refused."""
    old_folder(project).rename(project / "elsewhere")
    (project / ".npl").symlink_to("elsewhere")
    assert imported(database, project).sessions == 3
    (project / "elsewhere").rename(tmp_path / "outside")
    (project / ".npl").unlink()
    (project / ".npl").symlink_to(tmp_path / "outside")
    assert imported(engines.database(tmp_path / "other"), project) == Imported()


def old_log(project: Path, *lines: str) -> Path:
    """Make a session that the predecessor wrote."""
    folder = sessions(project) / "old"
    folder.mkdir(parents=True)
    meta = {"session_id": "old", "created": "2025-12-01T10:00:00+00:00", "task": None, "status": "active"}
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "worklog.jsonl").write_text("\n".join(lines))
    return folder


def test_a_line_longer_than_any_entry_is_skipped(database: Database, project: Path) -> None:
    old_log(project, written(1, "x"), f"{{{'x' * (2 * MAX_LINE)}}}", written(2, "y"), written(3, "z"))
    done = imported(database, project)
    assert (done.entries, done.skipped_lines) == (3, 1)


CURSORS = cases("npl_mcp/stores/worklog/transfer")["cursors"]


@pytest.mark.parametrize(("numbers", "cursor", "place"), CURSORS)
def test_a_cursor_is_translated(
    database: Database, project: Path, numbers: list[int], cursor: int, place: int
) -> None:
    """It becomes the first place of the highest number not above it, despite other cursors."""
    folder = old_log(project, *(written(number, "x") for number in numbers))
    (folder / ".cursors").mkdir()
    for agent, number in (("r", cursor), ("low", 1), ("high", 50)):
        (folder / ".cursors" / f"{agent}.cursor").write_text(json.dumps({"last_seq": number}))
    imported(database, project)
    with database.read() as tx:
        assert tx.value("SELECT last_seq FROM worklog_agent WHERE agent_id = 'r'") == place


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
