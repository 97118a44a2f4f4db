"""The worklog store: numbers, cursors, sessions, projects."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tests import engines
from tests.npl_mcp.stores.worklog.worklogs import Worklogs


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


def test_two_readers_of_one_agent_share_the_entries(store: Worklogs, project: str) -> None:
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


def test_a_live_session_comes_before_an_archived_one(store: Worklogs, project: str) -> None:
    """A reused id means the new session; the archived one is reached by its place."""
    store.init(project, "s1", "old")
    store.close(project, archive=True)
    store.init(project, "s1", "new")
    assert store.status(project, "s1").task == "new"
    assert store.status(project, "archive/s1").task == "old"


def test_projects_do_not_meet(store: Worklogs, project: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    store.init(project, "s1", "here")
    store.init(str(other), "s1", "there")
    store.log(project, "a", "found", "x")
    assert store.status(str(other), "s1").entry_count == 0
    assert [session.task for session in store.sessions(str(other))] == ["there"]
