"""Change requests survive simultaneous writers, killed programs and links."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from npl_index.errors import NPLError
from npl_index.markdown.sections import SectionTree
from npl_mcp.documents import editor
from npl_mcp.documents.folders import SharedFolder
from npl_mcp.documents.projects import Projects
from npl_mcp.stores.base.errors import ConflictError, StorageError, TooLargeError
from npl_mcp.stores.base.paging import Slice
from tests.conftest import cases
from tests.npl_mcp.documents.change_requests import (
    CONFIG,
    NAME,
    SECOND,
    changes_in,
    make_project,
    without_stamp,
)

ROOT = Path(__file__).resolve().parents[3]
PROCESSES = 4
EACH = 6

OPENING = """
import sys
from pathlib import Path
from npl_mcp.documents.change_requests import ChangeRequests
from npl_mcp.documents.projects import Projects

changes = ChangeRequests(Projects(Path(sys.argv[1]), ()))
who, count = sys.argv[2], int(sys.argv[3])
"""
APPENDING = """
for number in range(count):
    changes.edit_section(None, "2", "Rationale", "append", f"line {who}-{number}")
"""
CREATING = """
for number in range(count):
    print(changes.create(None, "Bug Fix", {"title": f"Bug {who} {number}"}).key)
"""
REPLACING = """
number = 0
while True:
    changes.edit_section(None, "2", "Rationale", "replace", "AB"[number % 2] * 200_000)
    print(number, flush=True)
    number += 1
"""


def start(code: str, folder: Path, who: str, count: int = EACH) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", OPENING + code, str(folder), who, str(count)]
    return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def together(code: str, folder: Path) -> list[str]:
    running = [start(code, folder, str(who)) for who in range(PROCESSES)]
    printed = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * PROCESSES
    return [line for text in printed for line in text.split()]


def test_appends_of_several_processes_all_stay(tmp_path: Path) -> None:
    """Each line is there once, and the rest of the file is unchanged."""
    file = make_project(tmp_path)
    together(APPENDING, tmp_path)
    text = file.read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line.startswith("line ")]
    assert sorted(lines) == sorted(f"line {who}-{n}" for who in range(PROCESSES) for n in range(EACH))
    rest = text
    for line in lines:
        rest = rest.replace(f"\n{line}\n", "", 1)
    assert without_stamp(rest.encode()) == without_stamp(SECOND.encode())
    assert os.listdir(file.parent) == [NAME]  # noqa: PTH208


def test_creates_of_several_processes_get_different_keys(tmp_path: Path) -> None:
    """The keys have no gaps, and each file has its own."""
    file = make_project(tmp_path)
    keys = together(CREATING, tmp_path)
    assert sorted(keys) == [f"TST-{number:03d}" for number in range(3, 3 + PROCESSES * EACH)]
    for key in keys:
        (made,) = file.parent.glob(f"{key}-*.md")
        assert f"code: {key}\n" in made.read_text(encoding="utf-8")


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """The file is whole after any kill; a later write removes what the writer left."""
    file = make_project(tmp_path)
    states = {
        without_stamp(SECOND.replace("why\n\n### Sub A\n\ndup\n", f"{text}\n").encode())
        for text in ("A" * 200_000, "B" * 200_000, "why\n\n### Sub A\n\ndup")
    }
    for attempt in range(6):
        process = start(REPLACING, tmp_path, "0")
        process.stdout.readline()
        time.sleep(0.003 * attempt)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert without_stamp(file.read_bytes()) in states
        assert [ticket.key for ticket in changes_in(tmp_path).tickets(Projects(tmp_path, ()).find(None))] == [
            "TST-002"
        ]
    for left_over in file.parent.glob(".npl-*.tmp"):
        os.utime(left_over, (1, 1))
    changes_in(tmp_path).edit_section(None, "2", "Rationale", "replace", "end")
    assert os.listdir(file.parent) == [NAME]  # noqa: PTH208


def edited_meanwhile(
    monkeypatch: pytest.MonkeyPatch, file: Path, write: Callable[[], object], operation: str, text: str
) -> None:
    """Change a section while another program writes to the file, when its sections are first read."""
    writes, read = [write], editor.read_sections

    def read_later(data: bytes, name: str) -> SectionTree:
        while writes:
            writes.pop()()
        return read(data, name)

    monkeypatch.setattr(editor, "read_sections", read_later)
    changes_in(file.parents[2]).edit_section(None, "2", "Rationale", operation, text)


@pytest.mark.parametrize("stepwise", [False, True], ids=["exchanged", "compared"])
@pytest.mark.parametrize(
    ("old", "new"), cases("npl_mcp/documents/change_requests")["an_outside_edit_elsewhere_is_merged"]
)
def test_an_outside_edit_elsewhere_is_merged(
    tmp_path: Path, old: str, new: str, stepwise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has both changes, also where files cannot be exchanged."""
    if stepwise:
        monkeypatch.setattr("npl_index.library.files._renameat2", lambda: None)
    file = make_project(tmp_path)
    file.chmod(0o640)
    other = SECOND.replace(old, new)
    edited_meanwhile(monkeypatch, file, lambda: file.write_text(other, encoding="utf-8"), "append", "tail")
    wanted = other.replace("dup\n", "dup\n\ntail\n")
    assert without_stamp(file.read_bytes()) == without_stamp(wanted.encode())
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(file.parent) == [NAME]  # noqa: PTH208


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("why", "because", "has changed since you read it"),
        ("dup", "other", "has changed since you read it"),
        ("## 2. Rationale", "## 2. Reasons", "section 'Rationale' not found"),
        ("TST-002", "TST-003", "TST-002 is being changed by another program"),
        (SECOND, "", "TST-002 is being changed by another program"),
    ],
)
def test_an_outside_edit_of_the_same_section_is_kept(
    tmp_path: Path, old: str, new: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_project(tmp_path)
    other = SECOND.replace(old, new)
    with pytest.raises(NPLError, match=error):
        edited_meanwhile(
            monkeypatch, file, lambda: file.write_text(other, encoding="utf-8"), "replace", "mine"
        )
    assert file.read_text(encoding="utf-8") == other


def test_a_file_that_another_program_removes_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_project(tmp_path)
    with pytest.raises(NPLError, match="cannot be written"):
        edited_meanwhile(monkeypatch, file, file.unlink, "append", "mine")
    assert os.listdir(file.parent) == []  # noqa: PTH208


def test_links_lead_nowhere(tmp_path: Path) -> None:
    """No link is followed out of the project; hidden files of others stay."""
    file = make_project(tmp_path / "proj")
    secret = tmp_path / "secret.md"
    secret.write_text(SECOND.replace("TST-002", "TST-009"), encoding="utf-8")
    (file.parent / "TST-009-x.md").symlink_to(secret)
    changes = changes_in(tmp_path / "proj")
    with pytest.raises(NPLError, match="TST-009"):
        changes.get(None, "9", "full")
    assert changes.list(None, None, Slice(50, 0)).total == 1
    (file.parent / f".{NAME}.tmp").symlink_to(secret)
    changes.edit_section(None, "2", "Rationale", "append", "x")
    assert "TST-009" in secret.read_text(encoding="utf-8")
    assert (file.parent / f".{NAME}.tmp").is_symlink()
    assert file.read_text(encoding="utf-8").count("\nx\n") == 1
    other = tmp_path / "other"
    shutil.rmtree(make_project(other).parent)
    (other / "docs" / "CRs").symlink_to(file.parent)
    with pytest.raises(NPLError, match="a link leads outside"):
        changes_in(other).list(None, None, Slice(50, 0))


def test_a_folder_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    """It becomes one after the project is located and before the write."""
    file = make_project(tmp_path / "proj")
    place = Projects(tmp_path / "proj", ()).find(None)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file.unlink()
    file.parent.rmdir()
    file.parent.symlink_to(elsewhere)
    with pytest.raises(StorageError), place.folder.locked("x", make=True):
        pass
    assert place.folder.states(".md") == {}
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("key", ["path", "ticketsPath"])
@pytest.mark.parametrize("place", [".git", "docs/.hidden", "./.git/hooks", ".git/../.git", "linked"])
def test_nothing_is_written_into_a_hidden_folder(tmp_path: Path, key: str, place: str) -> None:
    """Programs keep their settings there; files in it can be read all the same."""
    file = make_project(tmp_path)
    hidden = tmp_path / "docs" / ".hidden"
    for folder in (hidden, tmp_path / ".git" / "hooks"):
        folder.mkdir(parents=True)
    (tmp_path / "linked").symlink_to(hidden)
    written = CONFIG.replace("ticketsPath", key).replace("docs/CRs", place)
    (tmp_path / ".mdt-config.toml").write_text(written, encoding="utf-8")
    for folder in (hidden, tmp_path / ".git", tmp_path / ".git" / "hooks"):
        (folder / NAME).write_bytes(file.read_bytes())
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    changes = changes_in(tmp_path)
    calls: list[Callable[[], object]] = [
        lambda: changes.create(None, "Bug Fix", {"title": "Hidden"}),
        lambda: changes.update_status(None, "2", "In Progress"),
        lambda: changes.update_attributes(None, "2", {"priority": "High"}),
        lambda: changes.edit_section(None, "2", "Rationale", "append", "x"),
        lambda: changes.delete(None, "2"),
    ]
    for call in calls:
        with pytest.raises(NPLError):
            call()
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before


NOTE = "note.md"


def changed(folder: Path, change: Callable[[bytes], bytes | None], max_bytes: int = 1000) -> bytes:
    return SharedFolder(str(folder), "", max_bytes).change(NOTE, NOTE, change)


def test_a_program_that_writes_each_time_wins(tmp_path: Path) -> None:
    """The call ends with an error, and the file has that program's text."""
    file = tmp_path / NOTE
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
    with SharedFolder(str(tmp_path), "").locked(NOTE):
        assert set(tmp_path.iterdir()) == {young, other}


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    """The folder's limit decides."""
    (tmp_path / NOTE).write_bytes(b"1234")
    with pytest.raises(TooLargeError, match=r"note\.md would have 5 bytes; at most 4"):
        changed(tmp_path, lambda data: data + b"5", 4)
    assert (tmp_path / NOTE).read_bytes() == b"1234"


@pytest.mark.parametrize("how", ["wb", "r+b", "ab"])
def test_a_file_that_a_program_has_open_for_writing_is_left_to_it(tmp_path: Path, how: str) -> None:
    """The file has that program's last text, and then the next change."""
    file = tmp_path / NOTE
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
