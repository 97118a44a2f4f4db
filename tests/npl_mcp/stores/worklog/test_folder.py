"""The predecessor's folder of worklogs: what is written there, repaired there, and taken in from there."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.stores.base.errors import StorageError
from npl_mcp.stores.worklog import folder as worklog_files
from npl_mcp.stores.worklog.format import Entry, cursor_name, line_of, parse_line
from npl_mcp.stores.worklog.importing import Imported
from npl_mcp.stores.worklog.store import WorklogStore
from tests import engines


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> WorklogStore:
    return WorklogStore(engines.database(tmp_path / "data"))


def sessions(project: Path) -> Path:
    return project / ".npl" / "sessions"


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "worklog.jsonl").read_bytes().splitlines()]


def log(store: WorklogStore, project: Path, *summaries: str, **options: Any) -> None:
    for summary in summaries:
        assert store.log(str(project), "a", "found", summary, **options).exported is None


def test_a_line_has_the_predecessors_bytes() -> None:
    """Its order of keys, compact, ASCII, no nulls, times with their offset; and it can be read again."""
    entry = Entry(
        seq=7,
        ts="2026-05-06T13:20:41.103552Z",
        agent_id="scout-1",
        agent_type="unknown",
        action="found",
        summary="é🙂",
        data={"k": [1, None]},
        tags=["x", ""],
    )
    line = line_of(entry)
    assert line == (
        b'{"seq":7,"ts":"2026-05-06T13:20:41.103552+00:00","agent_id":"scout-1","agent_type":"unknown",'
        b'"action":"found","summary":"\\u00e9\\ud83d\\ude42","data":{"k":[1,null]},"tags":["x",""]}\n'
    )
    assert parse_line(line) == (entry, 0)


def test_the_folder_is_laid_out_as_before(store: WorklogStore, project: Path) -> None:
    """Current session, description, log and cursors stand where the predecessor's readers look."""
    made = store.init(str(project), "s1", "tâche")
    log(store, project, "one")
    read = store.read(str(project), "r")
    assert (project / ".npl" / "current-session").read_bytes() == b"s1"
    folder = sessions(project) / "s1"
    meta = (folder / "meta.json").read_text()
    created = made.created.replace("Z", "+00:00")
    assert meta == (
        f'{{\n  "session_id": "s1",\n  "created": "{created}",\n  "task": "t\\u00e2che",\n'
        '  "status": "active",\n  "agents": {}\n}'
    )
    cursor = json.loads((folder / ".cursors" / "r.cursor").read_text())
    assert (cursor["last_seq"], cursor["last_read"][-6:]) == (read.cursor, "+00:00")
    closed = store.close(str(project), archive=True)
    assert not (project / ".npl" / "current-session").exists()
    assert not folder.exists()
    after = json.loads((sessions(project) / "archive" / "s1" / "meta.json").read_text())
    assert closed.closed is not None
    assert (after["status"], after["closed"]) == ("closed", closed.closed.replace("Z", "+00:00"))
    assert [line["summary"] for line in lines(sessions(project) / "archive" / "s1")] == ["one"]


@pytest.mark.parametrize("kept", range(0, 300, 23))
def test_a_torn_log_is_mended_by_the_next_entry(store: WorklogStore, project: Path, kept: int) -> None:
    """Wherever the file was cut off, afterwards it has every entry once, in order."""
    store.init(str(project), "s1")
    log(store, project, "one", "two")
    path = sessions(project) / "s1" / "worklog.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    log(store, project, "three")
    assert path.read_bytes().startswith(whole)
    assert [line["seq"] for line in lines(path.parent)] == [1, 2, 3]


def test_a_lost_folder_is_written_again(store: WorklogStore, project: Path) -> None:
    """A session of many pages too; its description comes back with it."""
    store.init(str(project), "s1", "t")
    count = worklog_files.ENTRIES + 2
    rows = [line_of(Entry(n, "2026-01-01T00:00:00.000000Z", "a", "t", "x", "y")) for n in range(1, count)]
    other = sessions(project) / "s2"
    other.mkdir()
    (other / "worklog.jsonl").write_bytes(b"".join(rows))
    store.import_folder(str(project))
    for path in other.iterdir():
        path.unlink()
    other.rmdir()
    log(store, project, "last", session_id="s2")
    assert [line["seq"] for line in lines(other)] == list(range(1, count + 1))
    assert json.loads((other / "meta.json").read_text())["session_id"] == "s2"


@pytest.mark.parametrize(
    "foreign",
    [
        b"no json\n",
        line_of(Entry(3, "2026-01-01T00:00:00.000000Z", "x", "t", "found", "not known")),
        line_of(Entry(1, "2026-01-01T00:00:00.000000Z", "x", "t", "found", "another")),
        b"x" * 100_000 + b"\n",
    ],
)
def test_a_log_that_contradicts_the_database_is_set_aside(
    store: WorklogStore, project: Path, foreign: bytes
) -> None:
    """It is kept beside the one that is rewritten."""
    store.init(str(project), "s1")
    log(store, project, "one")
    path = sessions(project) / "s1" / "worklog.jsonl"
    with path.open("ab") as file:
        file.write(foreign)
    before = path.read_bytes()
    log(store, project, "two")
    assert [line["summary"] for line in lines(path.parent)] == ["one", "two"]
    assert path.with_name("worklog.jsonl.replaced").read_bytes() == before


def test_two_databases_on_one_folder_do_not_fill_the_disk(project: Path, tmp_path: Path) -> None:
    """Each sets the other's log aside, and only a few are kept; neither loses an entry."""
    stores = [WorklogStore(engines.database(tmp_path / name)) for name in ("one", "two")]
    for store in stores:
        store.init(str(project), "s1")
    for turn in range(15):
        for store in stores:
            log(store, project, str(turn), session_id="s1")
    names = [path.name for path in (sessions(project) / "s1").iterdir() if path.is_file()]
    assert len(names) == 2 + worklog_files.MOST_KEPT
    assert [store.status(str(project), "s1").entry_count for store in stores] == [15, 15]


@pytest.mark.parametrize(
    "link", [".npl", ".npl/sessions", ".npl/sessions/s1", ".npl/sessions/s1/worklog.jsonl"]
)
def test_nothing_is_written_through_a_link_out_of_the_project(
    store: WorklogStore, project: Path, tmp_path: Path, link: str
) -> None:
    """The entry is written, its export is not, and what the link points at stays as it is."""
    store.init(str(project), "s1")
    target = tmp_path / "elsewhere"
    place = project / link
    place.replace(target)
    place.symlink_to(target)
    before = {path: path.read_bytes() for path in [target, *target.rglob("*")] if path.is_file()}
    assert store.log(str(project), "a", "found", "x").exported is False
    assert {path: path.read_bytes() for path in [target, *target.rglob("*")] if path.is_file()} == before
    assert store.status(str(project)).entry_count == 1


def test_a_folder_that_cannot_be_written_is_named_once(
    store: WorklogStore, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for a project, not one for each entry; an explicit export is an error."""
    (project / ".npl").write_text("in the way")
    with caplog.at_level(logging.WARNING, "npl_mcp"):
        for _ in range(3):
            assert store.log(str(project), "a", "found", "x").exported is False
    assert len([record for record in caplog.records if "not exported" in record.message]) == 1
    with pytest.raises(StorageError):
        store.export(str(project))


def test_a_session_can_be_written_to_any_folder(store: WorklogStore, project: Path, tmp_path: Path) -> None:
    """The copy has the same files as the session's own folder."""
    store.init(str(project), "s1")
    log(store, project, "one", "two")
    store.read(str(project), "agent with / and ..", limit=1)
    target = store.export(str(project), target=tmp_path / "a" / "copy")
    own = sessions(project) / "s1"
    names = ["meta.json", "worklog.jsonl", ".cursors/agent%20with%20%2F%20and%20%2E%2E.cursor"]
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()) == sorted(
        names
    )
    assert all((target / name).read_bytes() == (own / name).read_bytes() for name in names)
    (own / "worklog.jsonl").unlink()
    assert store.export(str(project), "s1") == own
    assert (own / "worklog.jsonl").read_bytes() == (target / "worklog.jsonl").read_bytes()


@pytest.mark.parametrize(
    "agent", ["../../x", "..", "/etc/passwd", "a/b", "ü" * 200, "x" * 200, ".", "a\\b", "~"]
)
def test_no_agent_can_choose_where_its_cursor_goes(store: WorklogStore, project: Path, agent: str) -> None:
    """Whatever its id is, the cursor is one file in the session's own folder."""
    store.init(str(project), "s1")
    log(store, project, "one")
    assert store.read(str(project), agent).exported is None
    (cursor,) = (sessions(project) / "s1" / ".cursors").iterdir()
    assert cursor.name == f"{cursor_name(agent)}.cursor"
    assert len(cursor.name) < 150
    everything = {path.name for path in project.rglob("*") if path.is_file()}
    assert everything == {"current-session", ".lock", "meta.json", "worklog.jsonl", cursor.name}


def test_an_archive_that_was_not_moved_is_moved_later(store: WorklogStore, project: Path) -> None:
    """The id is used again, and each folder ends up with its own session's entries."""
    store.init(str(project), "s1")
    log(store, project, "old")
    (sessions(project) / "archive").write_text("in the way")
    assert store.close(str(project), archive=True).exported is False
    (sessions(project) / "archive").unlink()
    store.init(str(project), "s1")
    log(store, project, "new")
    assert [line["summary"] for line in lines(sessions(project) / "s1")] == ["new"]
    assert [line["summary"] for line in lines(sessions(project) / "archive" / "s1")] == ["old"]


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
    (npl / "current-session").write_text("plain")
    return npl


def test_an_old_folder_is_taken_in_when_the_project_is_first_used(store: WorklogStore, project: Path) -> None:
    """Sessions, the archived one too, with their tasks, states and times; the current one stays current."""
    old_folder(project)
    found = store.sessions(str(project), archived=True)
    assert [
        (one.session_id, one.status, one.task, one.entry_count, one.agents, one.current, one.archived_as)
        for one in found
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


def test_every_line_of_an_old_log_is_kept_once_in_order(store: WorklogStore, project: Path) -> None:
    """Numbers given twice or out of order are given again; an unknown key does not hide its line."""
    old_folder(project)
    entries = store.read(str(project), "new", session_id="2025-11-03").items
    assert [(entry.seq, entry.summary) for entry in entries] == [
        (1, "one"),
        (2, "two"),
        (3, "two again"),
        (4, "four"),
        (5, "three, late"),
    ]
    assert (entries[1].data, entries[1].tags, entries[3].refs) == ({"k": 1}, ["x"], {"files": ["a"]})


@pytest.mark.parametrize(
    ("agent", "session", "expected"),
    [
        ("r-1", "plain", [2]),
        ("r-1", "2025-11-03", [3, 4, 5]),
        ("r-2", "2025-11-03", [5]),
        ("r-3", "2025-11-03", [1, 2, 3, 4, 5]),
        ("broken", "2025-11-03", [1, 2, 3, 4, 5]),
        ("r-1", "archive/done", [1, 2]),
    ],
)
def test_reading_goes_on_where_the_old_cursor_was(
    store: WorklogStore, project: Path, agent: str, session: str, expected: list[int]
) -> None:
    """Where numbers stood twice an entry may come again, but none is missed."""
    old_folder(project)
    read = store.read(str(project), agent, session_id=session)
    assert [entry.seq for entry in read.items] == expected


def test_an_old_log_is_rewritten_only_where_numbers_changed(store: WorklogStore, project: Path) -> None:
    """The damaged one stays beside the new one; the good ones keep their bytes and are continued."""
    npl = old_folder(project)
    logs = {
        name: npl / "sessions" / name / "worklog.jsonl" for name in ("2025-11-03", "plain", "archive/done")
    }
    before = {name: path.read_bytes() for name, path in logs.items()}
    log(store, project, "next")
    log(store, project, "mended", session_id="2025-11-03")
    assert logs["plain"].read_bytes().startswith(before["plain"])
    assert logs["archive/done"].read_bytes() == before["archive/done"]
    assert logs["2025-11-03"].with_name("worklog.jsonl.before-import").read_bytes() == before["2025-11-03"]
    assert [line["seq"] for line in lines(logs["2025-11-03"].parent)] == [1, 2, 3, 4, 5, 6]
    assert [line["seq"] for line in lines(logs["plain"].parent)] == [1, 2, 3]


def test_a_folder_can_be_taken_in_again(store: WorklogStore, project: Path) -> None:
    """Only what is not known yet, and the answer counts it."""
    old_folder(project)
    done = store.import_folder(str(project))
    assert (done.sessions, done.entries, done.skipped_lines, done.dropped_keys) == (3, 9, 2, 1)
    assert store.import_folder(str(project)) == Imported()
    store.close(str(project), "plain", archive=True)
    assert store.import_folder(str(project)) == Imported()
    folder = sessions(project) / "later"
    folder.mkdir()
    (folder / "worklog.jsonl").write_text(written(1, "one") + "\n")
    assert store.import_folder(str(project)) == Imported(sessions=1, entries=1)
    assert store.current(str(project)) is None


def test_a_folder_is_taken_in_once_by_many(project: Path, tmp_path: Path) -> None:
    """Several servers that use a project for the first time at once import each session once."""
    old_folder(project)
    stores = [WorklogStore(engines.database(tmp_path / "data")) for _ in range(4)]
    found: list[int] = []

    def use(store: WorklogStore) -> None:
        found.append(len(store.sessions(str(project), archived=True)))

    workers = [threading.Thread(target=use, args=(store,)) for store in stores]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [3] * 4
    assert sum(one.entry_count for one in stores[0].sessions(str(project), archived=True)) == 9


def test_what_is_no_session_is_left_alone(store: WorklogStore, project: Path, tmp_path: Path) -> None:
    """Empty folders, hidden ones, links, and folders with names nobody can type are not taken in."""
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
    assert store.sessions(str(project), archived=True) == ()


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
    """Whatever a file holds, reading it never fails."""
    assert parse_line(raw) is None


def test_a_worklog_too_large_is_not_taken_in(
    store: WorklogStore, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A sparse file of over 256 MiB is named in the log and left as it is."""
    folder = sessions(project) / "s1"
    folder.mkdir(parents=True)
    with (folder / "worklog.jsonl").open("wb") as file:
        file.truncate(256 * 1024 * 1024 + 1)
    with caplog.at_level(logging.WARNING, "npl_mcp"):
        assert store.sessions(str(project)) == ()
    assert "'s1' cannot be imported" in caplog.text


def test_what_a_killed_writer_left_is_removed(store: WorklogStore, project: Path) -> None:
    """By the next write in that folder; files of others stay, whatever they are called."""
    store.init(str(project), "s1")
    folder = sessions(project) / "s1"
    for place in (folder, project / ".npl"):
        (place / ".npl-0123456789abcdef.tmp").write_text("half")
    (folder / ".worklog.jsonl.new").write_text("not ours")
    log(store, project, "one")
    assert not list(project.rglob(".npl-*.tmp"))
    assert {path.name for path in folder.iterdir()} == {
        "meta.json",
        "worklog.jsonl",
        "tmp",
        ".worklog.jsonl.new",
    }


def test_folders_may_be_links_inside_the_project(store: WorklogStore, project: Path) -> None:
    """Only links that leave it are refused."""
    (project / "elsewhere").mkdir()
    (project / ".npl").symlink_to("elsewhere")
    store.init(str(project), "s1")
    log(store, project, "one")
    assert store.close(str(project), archive=True).exported is None
    kept = project / "elsewhere" / "sessions" / "archive" / "s1"
    assert [line["summary"] for line in lines(kept)] == ["one"]


def test_copies_of_worklogs_are_private(store: WorklogStore, project: Path) -> None:
    """Whatever the umask; only ``.npl`` itself, which can hold prompts for others, follows it."""
    before = os.umask(0)
    try:
        store.init(str(project), "s1", "look")
        log(store, project, "one")
        store.read(str(project), "r")
        store.close(str(project), archive=True)
        store.init(str(project), "s2", "look")
        log(store, project, "two")
    finally:
        os.umask(before)
    made = [path for path in (project / ".npl").rglob("*") if path.is_file() or path.is_dir()]
    assert len(made) > 8
    assert {path: oct(path.stat().st_mode & 0o077) for path in made} == dict.fromkeys(made, "0o0")
