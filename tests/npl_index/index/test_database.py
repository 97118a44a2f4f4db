"""Connections to the index: files that cannot be used for a time, and an index in memory."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from npl_index.index import database
from npl_index.index.database import NAME, IndexDatabase
from npl_index.index.driver import driver


def add_root(index: IndexDatabase, path: str) -> None:
    with index.writing() as connection:
        connection.execute("INSERT INTO root (path, npl) VALUES (?, 0)", (path,))


def roots(index: IndexDatabase) -> list[str]:
    return [path for (path,) in index.rows("SELECT path FROM root ORDER BY id")]


def test_a_file_that_cannot_be_opened_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then an index in memory keeps what was written."""
    monkeypatch.setattr(database, "AVOIDED_SECONDS", 0.2)
    folder = tmp_path / "data"
    folder.write_text("a file is in the way")
    with closing(IndexDatabase(folder)) as index:
        add_root(index, "/memory")
        assert roots(index) == ["/memory"]
        folder.unlink()
        while index.path is None:
            threading.Event().wait(0.05)
        assert roots(index) == []
        assert (folder / NAME).exists()


def test_a_locked_file_is_left_for_some_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer may be a stopped process: the caller continues in memory, then uses the file again."""
    monkeypatch.setattr(database, "MAX_BUSY_SECONDS", 0.1)
    monkeypatch.setattr(database, "AVOIDED_SECONDS", 0.2)
    with closing(IndexDatabase(tmp_path)) as index:
        add_root(index, "/first")
        with closing(driver().connect(str(tmp_path / NAME), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(driver().OperationalError) as locked:
                add_root(index, "/second")
            assert not index.is_damaged(locked.value)
            index.leave_file(str(locked.value))
            add_root(index, "/memory")
            assert roots(index) == ["/memory"]
            other.execute("ROLLBACK")
        while index.path is None:
            threading.Event().wait(0.05)
        add_root(index, "/second")
        assert roots(index) == ["/first", "/second"]


def test_an_unexplained_error_makes_one_new_index(tmp_path: Path) -> None:
    with closing(IndexDatabase(tmp_path)) as index:
        assert index.is_damaged(ZeroDivisionError())
        with pytest.raises(KeyError):
            index.is_damaged(KeyError())


def test_threads_share_an_index_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three threads read the same rows; an error of a reader loses nothing, and no file is made."""
    monkeypatch.chdir(tmp_path)
    with closing(IndexDatabase(None)) as index:
        add_root(index, "/first")
        with pytest.raises(KeyError), index.reading():
            raise KeyError
        together = threading.Barrier(3)
        seen: list[list[str]] = []

        def read() -> None:
            with index.reading():
                together.wait(10)
                seen.append(roots(index))

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [["/first"]] * 3
        index.discard()
        assert roots(index) == []
    assert list(tmp_path.iterdir()) == []
