"""A data folder is its owner's alone, and folders that an earlier version left open are closed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from npl_mcp.app.app import App
from npl_mcp.app.maintenance import back_up
from npl_mcp.stores.base.folder import private_folder
from tests.npl_mcp.stores.test_faults import WRITES, ask, file
from tests.npl_mcp.stores.writer import settings_in


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "project").mkdir()
    before = os.umask(0)
    yield tmp_path
    os.umask(before)


def use(place: Path) -> None:
    app = App(settings_in(place))
    assert ask(app, "chat_create_room", name="room", members=["alice", "bob"])["success"]
    assert ask(app, "artifact_create", name="plan", artifact_type="document", **file())["success"]
    ask(app, *WRITES[1][:1], **WRITES[1][1])
    # While the database is open, so that its log is there.
    assert open_to_others(place / "data") == []
    app.close()


def open_to_others(folder: Path) -> list[str]:
    """Name the files that others may enter, read or write."""
    return [
        f"{path.name} {stat.filemode(path.stat().st_mode)}"
        for path in (folder, *folder.rglob("*"))
        if path.stat().st_mode & 0o077
    ]


@pytest.mark.engine("sqlite")
def test_what_is_made_is_private(place: Path) -> None:
    """Folder, database, log, artifacts, notes and a backup are private despite the umask."""
    use(place)
    app = App(settings_in(place))
    back_up(app.stores, place / "copy")
    app.close()
    assert open_to_others(place / "copy") == []


@pytest.mark.engine("sqlite")
def test_what_was_left_open_is_closed_at_the_start(place: Path) -> None:
    """A server closes it before its first call."""
    use(place)
    for path in (place / "data", *(place / "data").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    app = App(settings_in(place))
    app.stores.start()
    app.close()
    assert open_to_others(place / "data") == []


def test_what_is_not_ours_is_left_as_it_is(place: Path, tmp_path: Path) -> None:
    """Other files in the folder and targets of links keep their modes."""
    data, outside = place / "data", tmp_path / "outside"
    data.mkdir(mode=0o755)
    (data / "mine").mkdir(mode=0o755)
    (data / "notes.txt").write_text("mine")
    outside.write_text("theirs")
    (data / "artifacts").symlink_to(tmp_path)
    (data / "npl.db-link").symlink_to(outside)
    private_folder(data)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert [stat.S_IMODE((data / name).stat().st_mode) for name in ("mine", "notes.txt")] == [0o755, 0o666]
    assert stat.S_IMODE(outside.stat().st_mode) == 0o666
