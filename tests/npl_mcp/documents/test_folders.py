"""Another program writes a file between reading and writing."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from npl_mcp.documents.folders import SharedFolder
from npl_mcp.stores.base.errors import ConflictError, TooLargeError

NAME = "note.md"


def changed(folder: Path, change: Callable[[bytes], bytes | None], max_bytes: int = 1000) -> bytes:
    return SharedFolder(str(folder), "", max_bytes).change(NAME, NAME, change)


def test_a_program_that_writes_each_time_wins(tmp_path: Path) -> None:
    """The call ends with an error, and the file has that program's text."""
    file = tmp_path / NAME
    file.write_bytes(b"0")

    def change(data: bytes) -> bytes:
        file.write_bytes(b"%d" % (int(data) + 1))
        return b"ours"

    with pytest.raises(ConflictError, match=r"note\.md is being written by another program"):
        changed(tmp_path, change)
    assert file.read_bytes().isdigit()


def test_what_killed_writers_left_goes_and_what_others_write_stays(tmp_path: Path) -> None:
    """Not all writers have the lock, so age tells their files apart."""
    old, young, other = (
        tmp_path / name for name in (f".npl-{'0' * 16}.tmp", f".npl-{'1' * 16}.tmp", ".x.tmp")
    )
    for file in (old, young, other):
        file.write_bytes(b"")
    then = time.time() - 20
    os.utime(old, (then, then))
    with SharedFolder(str(tmp_path), "").locked(NAME):
        assert set(tmp_path.iterdir()) == {young, other}


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    """The folder's limit decides."""
    (tmp_path / NAME).write_bytes(b"1234")
    with pytest.raises(TooLargeError, match=r"note\.md would have 5 bytes; at most 4"):
        changed(tmp_path, lambda data: data + b"5", 4)
    assert (tmp_path / NAME).read_bytes() == b"1234"


@pytest.mark.parametrize("how", ["wb", "r+b", "ab"])
def test_a_file_that_a_program_has_open_for_writing_is_left_to_it(tmp_path: Path, how: str) -> None:
    """The file has that program's last text, and then the next change."""
    file = tmp_path / NAME
    file.write_bytes(b"old")
    with file.open(how) as opened:
        with pytest.raises(ConflictError, match=r"note\.md is being written by another program"):
            changed(tmp_path, lambda data: data + b" ours")
        opened.write(b"theirs")
    theirs = file.read_bytes()
    assert theirs.endswith(b"theirs")
    assert changed(tmp_path, lambda data: data + b" ours") == file.read_bytes() == theirs + b" ours"
    with file.open("rb"):
        assert changed(tmp_path, lambda data: data + b"!") == theirs + b" ours!"
