"""Each change request gets a number that was never given."""

import os
from pathlib import Path

import pytest

from npl_mcp.documents.change_requests import ChangeRequests
from npl_mcp.documents.projects import LAST_KEY_FILE, Projects
from npl_mcp.stores.base.errors import ClosedError
from tests.npl_mcp.documents.change_requests import SECOND, make_project


def started(folder: Path) -> ChangeRequests:
    """Return an application that was just started."""
    return ChangeRequests(Projects(folder, ()))


def new(changes: ChangeRequests) -> str:
    return changes.create(None, "Research", {"title": "x"}).key


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_a_deleted_number_is_not_given_again(tmp_path: Path, restart: bool) -> None:
    """Neither this server nor the next gives it, for files of any author."""
    file = make_project(tmp_path)
    changes = started(tmp_path)

    def server() -> ChangeRequests:
        return started(tmp_path) if restart else changes

    assert new(server()) == "TST-003"
    server().delete(None, "3")
    assert new(server()) == "TST-004"
    next(file.parent.glob("TST-004-*")).unlink()
    assert new(server()) == "TST-005"
    file.with_name("TST-009-x.md").write_text(SECOND.replace("TST-002", "TST-009"), encoding="utf-8")
    server().delete(None, "9")
    assert new(server()) == "TST-010"


@pytest.mark.parametrize(
    ("kept", "key"),
    [
        ("TST-040\n", "TST-041"),
        ("TST-001", "TST-003"),
        ("OTHER", "TST-003"),
        ("ABC-040", "TST-003"),
        ("TST-" + "9" * 70, "TST-003"),
        ("\0\xff", "TST-003"),
    ],
)
def test_the_kept_number_counts_if_it_is_the_projects(tmp_path: Path, kept: str, key: str) -> None:
    """A file of that name from another program or project is ignored and stays."""
    make_project(tmp_path)
    path = tmp_path / LAST_KEY_FILE
    path.write_text(kept, encoding="utf-8")
    assert new(started(tmp_path)) == key
    theirs = kept in ("OTHER", "\0\xff") or len(kept) > 20
    assert path.read_text(encoding="utf-8") == (kept if theirs else f"{key}\n")


def test_the_kept_number_is_not_written_through_a_link(tmp_path: Path) -> None:
    """The link's target is not changed, and the number is still given."""
    make_project(tmp_path / "proj")
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "proj" / LAST_KEY_FILE).symlink_to(tmp_path / "secret")
    assert new(started(tmp_path / "proj")) == "TST-003"
    assert (tmp_path / "secret").read_text(encoding="utf-8") == "secret"


@pytest.mark.parametrize("name", ["TST-99999-x.md", "tst-99999"])
def test_when_no_number_is_left_that_is_said(tmp_path: Path, name: str) -> None:
    """The error names the file with the highest number, and no file is made."""
    file = make_project(tmp_path)
    file.with_name(name).write_text(SECOND.replace("TST-002", "TST-99999"), encoding="utf-8")
    before = sorted(os.listdir(file.parent))  # noqa: PTH208
    for _ in range(3):
        with pytest.raises(ClosedError, match=f"99999.*{name}"):
            new(started(tmp_path))
    assert sorted(os.listdir(file.parent)) == before  # noqa: PTH208


def test_a_date_in_a_name_is_no_number(tmp_path: Path) -> None:
    """It would use up all numbers."""
    file = make_project(tmp_path)
    file.with_name("TST-20260131-notes.md").write_text("# Notes\n", encoding="utf-8")
    assert new(started(tmp_path)) == "TST-003"
