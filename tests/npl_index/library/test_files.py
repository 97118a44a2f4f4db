"""Files are opened without links, replaced as a whole, and locked."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from npl_index.library import files
from npl_index.library.files import (
    FileChangedError,
    FileTooLargeError,
    Folder,
    NotRegularError,
    make_folder,
    read_below,
    read_path,
)
from npl_index.library.locks import lock, locked
from npl_index.library.roots import below_root

MOST = 1 << 20
LINK = f"{os.strerror(errno.ELOOP)}|{os.strerror(errno.ENOTDIR)}"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder.opened(tmp_path) as opened:
        yield opened


@pytest.fixture(params=[True, False], ids=["by descriptor", "by path"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_HAS_DIR_FD", request.param)


@pytest.mark.usefixtures("either")
def test_a_file_below_a_root_is_read(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.md").write_bytes(b"text")
    data, status = read_below(str(tmp_path), "a/b/c.md", MOST)
    assert (data, status.st_size) == (b"text", 4)
    with pytest.raises(FileNotFoundError):
        read_below(str(tmp_path), "a/x/c.md", MOST)


@pytest.mark.usefixtures("either")
def test_no_segment_may_be_a_link(tmp_path: Path) -> None:
    """Neither the file nor a folder on its path may be a link, even one that stays below the root."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"x")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "real" / "link").symlink_to("file")
    for path in ("linked/file", "real/link"):
        with pytest.raises(OSError, match=LINK):
            read_below(str(tmp_path), path, MOST)
    with pytest.raises(OSError, match=LINK), Folder.opened(tmp_path, "linked/new", make=True):
        pass
    assert list((tmp_path / "real").iterdir()) != []
    assert not (tmp_path / "real" / "new").exists()


@pytest.mark.usefixtures("either")
def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    with Folder.opened(tmp_path / "linked", "a/b", make=True) as opened:
        assert opened.create("file", b"x")
    assert (tmp_path / "real" / "a" / "b" / "file").read_bytes() == b"x"


def test_a_missing_root_is_not_made(tmp_path: Path) -> None:
    """Only folders below a root are made."""
    with pytest.raises(FileNotFoundError), Folder.opened(tmp_path / "gone", "a", make=True):
        pass
    assert not (tmp_path / "gone").exists()


@pytest.mark.usefixtures("either")
def test_only_regular_files_are_opened(tmp_path: Path, folder: Folder) -> None:
    """Opening a pipe without a writer would block for ever."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dir").mkdir()
    for name in ("pipe", "dir"):
        with pytest.raises(NotRegularError):
            folder.read(name, MOST)
        with pytest.raises(NotRegularError):
            read_path(tmp_path / name, MOST)
    with pytest.raises(NotRegularError):
        read_path("/dev/zero", MOST)


def test_a_file_has_as_many_bytes_as_the_limit_at_most(tmp_path: Path, folder: Folder) -> None:
    """The limit also holds if reading takes several calls."""
    (tmp_path / "file").write_bytes(b"x" * (3 << 20))
    assert len(folder.read("file", 3 << 20)[0]) == 3 << 20
    with pytest.raises(FileTooLargeError):
        folder.read("file", (3 << 20) - 1)
    assert folder.read_start("file", 5) == b"xxxxx"
    with pytest.raises(FileChangedError):
        read_path("/proc/self/maps", 10)  # says that it has no bytes


def test_what_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    assert read_path(tmp_path / "link", MOST)[0] == b"x"


def test_a_path_may_pass_through_links_below_its_root(tmp_path: Path) -> None:
    """Links that leave the root, by name or in circles, are refused."""
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "inside").symlink_to("real")
    (root / "outside").symlink_to(tmp_path)
    (root / "beside").symlink_to(tmp_path / "root-2")
    (tmp_path / "link").symlink_to(root)
    assert below_root(root, "inside/new") == (str(root), "real/new")
    assert below_root(tmp_path / "link", "") == (str(root), "")
    for path in ("outside", "outside/x", "beside", "../x"):
        with pytest.raises(OSError, match="outside"):
            below_root(root, path)


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, folder: Folder) -> None:
    """The caller can ask for other permissions, as for a new file."""
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o751)
    folder.replace("old", b"new")
    folder.replace("fresh", [b"in ", b"pieces"], mode=0o600, durable=False)
    assert (tmp_path / "old").read_bytes() == b"new"
    assert (tmp_path / "old").stat().st_mode & 0o7777 == 0o751
    assert (tmp_path / "fresh").read_bytes() == b"in pieces"
    assert (tmp_path / "fresh").stat().st_mode & 0o7777 == 0o600
    folder.replace("old", b"private", mode=0o600)
    assert (tmp_path / "old").stat().st_mode & 0o7777 == 0o600
    assert sorted(folder.names()) == ["fresh", "old"]


def test_a_replaced_file_keeps_its_owner(tmp_path: Path, folder: Folder) -> None:
    """The owner stays where the system allows it: only root can give a file back."""
    owner = (1234, 2345) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    (tmp_path / "old").write_bytes(b"old")
    os.chown(tmp_path / "old", *owner)
    (tmp_path / "old").chmod(0o640)
    assert folder.replace_if("old", b"old", b"new", MOST) is None
    status = (tmp_path / "old").stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (*owner, 0o640)


def test_a_replaced_file_keeps_its_extended_attributes(tmp_path: Path, folder: Folder) -> None:
    """The attributes stay on systems that have them."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    kept = {}
    if hasattr(os, "setxattr"):
        with suppress(OSError):
            os.setxattr(path, "user.colour", b"green")
            kept = {"user.colour": b"green"}
    folder.replace("a", b"new")
    assert folder.replace_if("a", b"new", b"newer", 100) is None
    assert {name: os.getxattr(path, name) for name in kept} == kept
    assert path.read_bytes() == b"newer"


def test_replacing_a_link_leaves_its_target_alone(tmp_path: Path, folder: Folder) -> None:
    """The link is replaced, and its target is not written."""
    (tmp_path / "target").write_bytes(b"target")
    (tmp_path / "link").symlink_to("target")
    folder.replace("link", b"new")
    assert (tmp_path / "target").read_bytes() == b"target"
    assert (tmp_path / "link").read_bytes() == b"new"
    assert not (tmp_path / "link").is_symlink()


def test_a_failed_replacement_leaves_everything_as_it_was(tmp_path: Path, folder: Folder) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"first"
        raise RuntimeError("no more")

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(RuntimeError):
        folder.replace("file", pieces())
    assert (tmp_path / "file").read_bytes() == b"old"
    assert folder.names() == ["file"]


@pytest.mark.parametrize("exchanging", [True, False], ids=["exchanged", "compared"])
def test_a_file_is_replaced_if_it_holds_what_was_read(
    tmp_path: Path, folder: Folder, exchanging: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise nothing is written, and the caller gets the present content."""
    if not exchanging:
        monkeypatch.setattr("npl_index.library.files._renameat2", lambda: None)
    (tmp_path / "file").write_bytes(b"theirs")
    assert folder.replace_if("file", b"old", b"new", MOST) == b"theirs"
    assert (tmp_path / "file").read_bytes() == b"theirs"
    assert folder.replace_if("file", b"theirs", b"new", MOST) is None
    assert (tmp_path / "file").read_bytes() == b"new"
    assert folder.names() == ["file"]


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "by its name"])
def test_a_file_that_changes_in_the_last_instant_is_put_back(
    tmp_path: Path, folder: Folder, in_place: bool
) -> None:
    """Another program saves repeatedly during replacements, and none of its contents is lost unseen."""
    path = tmp_path / "file"
    path.write_bytes(b"0")
    stop = threading.Event()
    saved: list[bytes] = []

    def save() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            data = b"%d" % number
            if in_place:
                path.write_bytes(data)
            else:
                (tmp_path / "saving").write_bytes(data)
                (tmp_path / "saving").replace(path)
            saved.append(data)

    editor = threading.Thread(target=save)
    editor.start()
    for _ in range(100):
        with suppress(FileChangedError):
            content = folder.read("file", MOST)[0]
            folder.replace_if("file", content, b"ours " + content, MOST)
    stop.set()
    editor.join()
    assert path.read_bytes().replace(b"ours ", b"") == saved[-1]
    assert folder.names() == ["file"]


def test_a_file_is_made_once(tmp_path: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one writer makes it, even where files cannot have two names."""

    def cannot(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    assert folder.create("one", b"first")
    assert not folder.create("one", b"second")
    monkeypatch.setattr(os, "link", cannot)
    assert folder.create("two", b"first")
    assert not folder.create("two", b"second")
    assert {name: (tmp_path / name).read_bytes() for name in folder.names()} == {
        "one": b"first",
        "two": b"first",
    }


KILLED = """
import os, signal, sys
from npl_index.library.files import Folder

def pieces():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)

with Folder.opened(sys.argv[1]) as folder:
    folder.replace("file", pieces())
"""


def test_what_a_killed_process_left_is_removed(tmp_path: Path, folder: Folder) -> None:
    """Files of other programs stay under any name."""
    (tmp_path / "file").write_bytes(b"old")
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert len(folder.names()) == 2
    others = [".file.tmp", ".npl-.tmp", ".npl-0123.tmp", ".npl-0123456789abcdef.tmp.md", "npl.tmp"]
    for name in others:
        (tmp_path / name).touch()
    folder.remove_temporaries()
    assert sorted(folder.names()) == sorted([*others, "file"])
    assert (tmp_path / "file").read_bytes() == b"old"


HOLDING = """
import sys
from npl_index.library.files import Folder

with Folder.opened(sys.argv[1]) as folder, folder.locked(0):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_keeps_other_processes_out(tmp_path: Path, folder: Folder) -> None:
    """The lock ends with its process, however that ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(TimeoutError), folder.locked(0):
            pass
        holder.kill()
    with folder.locked(1):
        pass


@pytest.mark.parametrize("visible", [True, False], ids=["with a file", "without"])
def test_a_lock_keeps_other_threads_out(tmp_path: Path, visible: bool) -> None:
    """Threads exclude each other even without a file that other processes could see."""
    file = os.open(tmp_path, os.O_RDONLY) if visible else None
    taken: list[bool] = []
    with locked(file, str(tmp_path), 1):
        other = threading.Thread(target=lambda: taken.append(_can_lock(str(tmp_path))))
        other.start()
        other.join()
    assert taken == [False]
    assert _can_lock(str(tmp_path))
    if file is not None:
        os.close(file)


def _can_lock(key: str) -> bool:
    try:
        with locked(None, key, 0):
            return True
    except TimeoutError:
        return False


def test_readers_share_a_lock(tmp_path: Path) -> None:
    first, other = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    assert lock(first, 0, shared=True)
    assert lock(other, 0, shared=True)
    with pytest.raises(TimeoutError):
        lock(other, 0)
    os.close(first)
    assert lock(other, 0)
    os.close(other)


def test_folders_are_made_with_those_above(tmp_path: Path) -> None:
    for _ in range(2):
        make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
