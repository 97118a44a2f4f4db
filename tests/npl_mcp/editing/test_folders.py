"""Files that another program writes between reading and writing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from npl_mcp.editing.folders import OpenFolder, SharedFolder
from npl_mcp.stores.base.errors import ConflictError, TooLargeError

NAME = "note.md"


def opened(folder: Path, work: Callable[[OpenFolder], object], most_bytes: int = 1000) -> object:
    with SharedFolder(str(folder), "", most_bytes).opened() as found:
        assert found is not None
        with found.locked():
            return work(found)


@pytest.mark.parametrize("stepwise", [False, True], ids=["exchanged", "compared"])
def test_a_change_is_made_again_on_what_another_program_wrote(
    tmp_path: Path, stepwise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both changes are in the file; also where files cannot change places."""
    if stepwise:
        monkeypatch.setattr("npl_index.library.files._renameat2", lambda: None)
    file = tmp_path / NAME
    file.write_bytes(b"one two")
    seen: list[bytes] = []

    def change(data: bytes) -> bytes:
        seen.append(data)
        if len(seen) == 1:
            file.write_bytes(data.replace(b"one", b"theirs"))
            os.utime(file, (1, 1))
        return data.replace(b"two", b"ours")

    assert opened(tmp_path, lambda folder: folder.change(NAME, b"one two", change, NAME)) == b"theirs ours"
    assert seen == [b"one two", b"theirs two"]
    assert file.read_bytes() == b"theirs ours"
    assert os.listdir(tmp_path) == [NAME]  # noqa: PTH208


def test_a_program_that_writes_each_time_wins(tmp_path: Path) -> None:
    """The call ends with an error, and with what that program wrote."""
    file = tmp_path / NAME
    file.write_bytes(b"0")

    def change(data: bytes) -> bytes:
        file.write_bytes(b"%d" % (int(data) + 1))
        os.utime(file, (1, 1))
        return b"ours"

    with pytest.raises(ConflictError, match=r"note\.md is being changed by another program"):
        opened(tmp_path, lambda folder: folder.change(NAME, b"0", change, NAME))
    assert file.read_bytes().isdigit()


def test_what_killed_writers_left_goes_and_what_others_write_stays(tmp_path: Path) -> None:
    """Where not all who write hold the lock, age tells the two apart."""
    old, young, other = (
        tmp_path / name for name in (f".npl-{'0' * 16}.tmp", f".npl-{'1' * 16}.tmp", ".x.tmp")
    )
    for file in (old, young, other):
        file.write_bytes(b"")
    os.utime(old, (1, 1))
    with SharedFolder(str(tmp_path), "", left_over=60.0).opened() as found:
        assert found is not None
        with found.locked():
            assert set(tmp_path.iterdir()) == {young, other}
    opened(tmp_path, lambda _: None)
    assert set(tmp_path.iterdir()) == {other}


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    """The limit is the folder's."""
    (tmp_path / NAME).write_bytes(b"1234")
    with pytest.raises(TooLargeError, match=r"note\.md would have 5 bytes; at most 4"):
        opened(tmp_path, lambda folder: folder.change(NAME, b"1234", lambda data: data + b"5", NAME), 4)
    assert (tmp_path / NAME).read_bytes() == b"1234"
