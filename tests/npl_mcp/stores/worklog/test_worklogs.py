"""The worklog store: numbers, cursors, sessions, projects."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.base.errors import AlreadyExistsError, SessionNotFoundError
from tests import engines
from tests.npl_mcp.stores.worklog.worklogs import Worklogs

PROCESSES, THREADS, APPENDS = 4, 4, 50

WRITER = """
import sys, threading
from pathlib import Path
from tests import engines
from tests.npl_mcp.stores.worklog.worklogs import Worklogs

data, project, name, threads, appends = *sys.argv[1:4], *map(int, sys.argv[4:])
store = Worklogs(engines.database(Path(data)))

def work(thread):
    for turn in range(appends):
        store.log(project, f"a-{name}-{thread}", "found", f"{name}/{thread}/{turn}", session_id="s1")

workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""


@pytest.fixture
def project(tmp_path: Path) -> str:
    folder = tmp_path / "project"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def store(tmp_path: Path) -> Worklogs:
    return Worklogs(engines.database(tmp_path / "data"))


def seqs(store: Worklogs, project: str, agent: str, **options: Any) -> list[int]:
    return [entry.seq for entry in store.read(project, agent, **options).items]


def test_numbers_are_never_lost_repeated_or_reordered(store: Worklogs, project: str, tmp_path: Path) -> None:
    """Several threads of several processes log at once: the database has each entry once."""
    store.init(project, "s1")
    common = [str(tmp_path / "data"), project]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, *common, str(name), str(THREADS), str(APPENDS)])
        for name in range(PROCESSES)
    ]
    try:
        assert [writer.wait(timeout=60) for writer in writers] == [0] * PROCESSES
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    total = PROCESSES * THREADS * APPENDS
    read = store.read(project, "r", limit=1000)
    assert [entry.seq for entry in read.items] == list(range(1, total + 1))
    assert [entry.ts for entry in read.items] == sorted(entry.ts for entry in read.items)
    assert {entry.summary for entry in read.items} == {
        f"{name}/{thread}/{turn}"
        for name in range(PROCESSES)
        for thread in range(THREADS)
        for turn in range(APPENDS)
    }
    status = store.status(project)
    assert (status.entry_count, len(status.agents)) == (total, PROCESSES * THREADS)


def test_two_readers_of_one_agent_share_the_entries(store: Worklogs, project: str) -> None:
    """What one read took, no other read at the same time gets too."""
    store.init(project, "s1")
    for number in range(60):
        store.log(project, "a", "found", str(number))
    taken: list[int] = []

    def read() -> None:
        for _ in range(5):
            taken.extend(seqs(store, project, "r", limit=3))

    workers = [threading.Thread(target=read) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == list(range(1, 61))


def test_closing_another_session_leaves_the_current_one(store: Worklogs, project: str) -> None:
    """Only the current session's end leaves a project without one."""
    store.init(project, "s1")
    store.init(project, "s2")
    store.close(project, session_id="s1")
    assert store.status(project).session_id == "s2"
    store.close(project)
    with pytest.raises(SessionNotFoundError, match="No active session"):
        store.status(project)


def test_the_list_has_archived_sessions_one_by_one(store: Worklogs, project: str) -> None:
    """Newest first; without being asked for, archived ones are left out."""
    for task in ("one", "two"):
        store.init(project, "s1", task)
        store.log(project, "a", "found", task)
        store.close(project, archive=True)
    store.init(project, "s2", "three")
    assert [(one.session_id, one.current) for one in store.sessions(project).sessions] == [("s2", True)]
    everything = store.sessions(project, archived=True).sessions
    assert [(one.task, one.archived_as, one.status, one.entry_count, one.agents) for one in everything] == [
        ("three", None, "active", 0, ()),
        ("two", "s1-2", "closed", 1, ("a",)),
        ("one", "s1", "closed", 1, ("a",)),
    ]


def test_a_live_session_comes_before_an_archived_one(store: Worklogs, project: str) -> None:
    """An id that was used again means the new session; the archive is reached by its place."""
    store.init(project, "s1", "old")
    store.close(project, archive=True)
    store.init(project, "s1", "new")
    assert store.status(project, "s1").task == "new"
    assert store.status(project, "archive/s1").task == "old"


def test_projects_do_not_meet(store: Worklogs, project: str, tmp_path: Path) -> None:
    """Two folders may have sessions of one id."""
    other = tmp_path / "other"
    other.mkdir()
    store.init(project, "s1", "here")
    store.init(str(other), "s1", "there")
    store.log(project, "a", "found", "x")
    assert store.status(str(other), "s1").entry_count == 0
    assert [one.task for one in store.sessions(str(other)).sessions] == ["there"]


def test_ids_that_differ_only_in_case_are_refused(store: Worklogs, project: str) -> None:
    """Some file systems would give both one folder; once the first is archived the other is free."""
    store.init(project, "Retry")
    with pytest.raises(AlreadyExistsError, match="'Retry'"):
        store.init(project, "retry")
    store.close(project, session_id="Retry", archive=True)
    assert store.init(project, "retry").new


def test_data_nested_too_deeply_is_refused(store: Worklogs, project: str) -> None:
    """A thousand levels are an error of the caller, and no entry is written."""
    nested: list[Any] = []
    for _ in range(1000):
        nested = [nested]
    store.init(project, "s1")
    with pytest.raises(InvalidRequestError, match="nested too deeply"):
        store.log(project, "a", "found", "x", data=nested)
    assert store.status(project).entry_count == 0


def test_an_unknown_session_changes_nothing(store: Worklogs, project: str) -> None:
    """Reading, logging and closing it leave no trace."""
    for act in (
        lambda: store.read(project, "r", session_id="s1"),
        lambda: store.log(project, "r", "found", "x", session_id="s1"),
        lambda: store.close(project, session_id="s1"),
        lambda: store.export(project, "s1"),
    ):
        with pytest.raises(SessionNotFoundError, match="Session not found: s1"):
            act()
    assert store.sessions(project, archived=True).sessions == ()
    assert not (Path(project) / ".npl").exists()


@pytest.mark.engine("sqlite")
def test_status_does_not_depend_on_the_number_of_entries(
    store: Worklogs, project: str, tmp_path: Path
) -> None:
    """No statement of a status, an entry or a read without news looks at the entries that are there."""
    store.init(project, "s1")
    store.log(project, "a", "found", "x")
    database = engines.database(tmp_path / "data")
    queries = (
        "SELECT * FROM worklog_session WHERE project = 'p' AND id = 's1' AND archived_as IS NULL",
        "SELECT * FROM worklog_agent WHERE session_number IN (1) AND entry_count > 0 ORDER BY agent_id",
        "SELECT * FROM worklog_entry WHERE session_number = 1 AND seq >= 2 ORDER BY seq LIMIT 9",
    )
    with database.read() as tx:
        plans = [row["detail"] for query in queries for row in tx.all(f"EXPLAIN QUERY PLAN {query}")]
    database.close()
    assert all(plan.startswith("SEARCH") for plan in plans), plans
