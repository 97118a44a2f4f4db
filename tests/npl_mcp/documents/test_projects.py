"""Projects with change requests are located, and their folders remembered."""

import os
import time
from pathlib import Path

import pytest

from npl_index.errors import InvalidRequestError
from npl_mcp.documents.change_requests import ChangeRequests
from npl_mcp.documents.format import ChangeKey
from npl_mcp.documents.projects import LAST_KEY_FILE, Projects
from npl_mcp.stores.base.errors import ClosedError, ConflictError, ProjectNotFoundError
from npl_mcp.stores.base.paging import Slice
from tests.conftest import cases
from tests.npl_mcp.documents.change_requests import CONFIG, NAME, SECOND, changes_in, make_project
from tests.npl_mcp.opened_files import opened

CASES = cases("npl_mcp/documents/projects")


def codes(cwd: Path, *roots: Path) -> list[str]:
    return [project.code for project in Projects(cwd, roots).all()]


def test_a_project_is_found_from_inside_from_above_and_by_name(tmp_path: Path) -> None:
    """The working directory's comes first; below a root the search goes one level deep."""
    make_project(tmp_path / "all" / "one", code="ONE")
    make_project(tmp_path / "all" / "two", code="TWO")
    make_project(tmp_path / "all" / ".hidden", code="HID")
    (tmp_path / "all" / "two" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    assert codes(tmp_path / "all" / "two" / "deep" / "er") == ["TWO"]
    assert codes(tmp_path / "all") == ["ONE", "TWO"]
    assert codes(tmp_path / "all" / "two", tmp_path / "all") == ["TWO", "ONE"]
    assert codes(tmp_path / "empty", tmp_path / "all" / "one") == ["ONE"]
    assert codes(tmp_path / "empty") == []


def test_a_project_above_a_root_is_not_found(tmp_path: Path) -> None:
    """The root bounds the caller's view."""
    make_project(tmp_path)
    (tmp_path / "inner" / "deep").mkdir(parents=True)
    assert codes(tmp_path / "inner" / "deep") == ["TST"]
    assert codes(tmp_path / "inner" / "deep", tmp_path / "inner") == []
    (tmp_path / "link").symlink_to(tmp_path / "inner")
    assert codes(tmp_path / "inner" / "deep", tmp_path / "link") == []


def test_which_project_is_meant(tmp_path: Path) -> None:
    """It is the named one, else the key's, else the working directory's, else the only one."""
    make_project(tmp_path / "one", code="ONE")
    make_project(tmp_path / "two", code="TWO")
    projects = Projects(tmp_path, ())
    assert projects.find("two", ChangeKey("ONE", 1)).code == "TWO"
    assert projects.find(None, ChangeKey("ONE", 1)).code == "ONE"
    with pytest.raises(ProjectNotFoundError, match="several projects") as caught:
        projects.find(None)
    assert caught.value.near == ("ONE", "TWO")
    assert Projects(tmp_path / "one", ()).find(None, ChangeKey(None, 1)).code == "ONE"
    assert Projects(tmp_path / "one", (tmp_path,)).find(None).code == "ONE"


def test_a_project_that_is_switched_off_is_none(tmp_path: Path) -> None:
    make_project(tmp_path / "good", code="GOOD")
    make_project(tmp_path / "off")
    (tmp_path / "off" / ".mdt-config.toml").write_text(CONFIG + "active = false\n", encoding="utf-8")
    assert codes(tmp_path / "off", tmp_path) == ["GOOD"]


def test_a_changed_configuration_counts_at_once(tmp_path: Path) -> None:
    """A configuration is remembered only as long as its file is unchanged."""
    make_project(tmp_path)
    projects = Projects(tmp_path, ())
    assert projects.find(None).info.name == "Test Project"
    (tmp_path / ".mdt-config.toml").write_text(CONFIG.replace("Test Project", "Other"), encoding="utf-8")
    assert projects.find(None).info.name == "Other"


def test_a_file_is_found_by_its_code_whatever_it_is_called(tmp_path: Path) -> None:
    """The code still counts after a renaming; two files with one code are an error."""
    file = make_project(tmp_path)
    requests = changes_in(tmp_path)
    assert requests.get(None, "2", "full").title == "Second"
    file.rename(file.with_name("anything.md"))
    assert requests.get(None, "2", "metadata").path == "docs/CRs/anything.md"
    file.with_name("anything.md").write_text(SECOND.replace("TST-002", "TST-007"), encoding="utf-8")
    assert requests.get(None, "7", "full").title == "Second"
    file.write_text(SECOND.replace("TST-002", "TST-007"), encoding="utf-8")
    with pytest.raises(ConflictError, match=rf"anything.md.*{NAME}|{NAME}.*anything.md"):
        changes_in(tmp_path).get(None, "7", "full")


@pytest.mark.parametrize("text", CASES["others"])
def test_what_is_no_change_request_is_left_out(tmp_path: Path, text: str) -> None:
    """The others are still listed."""
    file = make_project(tmp_path)
    file.with_name("TST-001-x.md").write_text(text, encoding="utf-8")
    (file.parent / "TST-004-folder.md").mkdir()
    assert [row.key for row in changes_in(tmp_path).list(None, None, Slice(50, 0)).items] == ["TST-002"]


@pytest.mark.parametrize(("head", "title"), CASES["titles"])
def test_the_title_is_the_first_heading(tmp_path: Path, head: str, title: str) -> None:
    """The title is as written, and headings in code do not count."""
    file = make_project(tmp_path)
    front = SECOND.partition("---\n\n")[0] + "---\n"
    file.write_text(front + head, encoding="utf-8")
    assert changes_in(tmp_path).list(None, None, Slice(50, 0)).items[0].title == title


def fill(folder: Path, count: int) -> None:
    long_ago = time.time() - 60
    for number in range(3, 3 + count):
        path = folder / f"TST-{number:03d}-n.md"
        path.write_text(SECOND.replace("TST-002", f"TST-{number:03d}"), encoding="utf-8")
        os.utime(path, (long_ago, long_ago))


def test_unchanged_files_are_not_read_again(tmp_path: Path) -> None:
    """A thousand files are listed without opening one; a changed one is seen."""
    file = make_project(tmp_path)
    os.utime(file, (1, 1))
    fill(file.parent, 1_000)
    requests = changes_in(tmp_path)

    def read() -> list[str]:
        with opened() as names:
            assert requests.list(None, {"status": "Proposed"}, Slice(10, 0)).total == 1_001
        return names

    assert len(set(read())) == 1_001
    assert read() == []
    file.write_text(SECOND.replace("# Second", "# Changed"), encoding="utf-8")
    assert requests.list(None, None, Slice(1, 1_000)).items[0].title == "Changed"
    file.unlink()
    assert requests.list(None, None, Slice(1, 0)).total == 1_000


def test_a_file_changed_within_one_tick_is_seen(tmp_path: Path) -> None:
    """A new file with equal size and time is read again."""
    file = make_project(tmp_path)
    requests = changes_in(tmp_path)
    for status in ("Proposed", "Rejected", "Proposed", "Rejected"):
        stamp = file.stat().st_mtime_ns
        with file.open("r+b") as opened:
            opened.write(SECOND.replace("Proposed", status).encode())
        os.utime(file, ns=(stamp, stamp))
        assert requests.list(None, None, Slice(50, 0)).items[0].status == status


@pytest.mark.parametrize(
    "text", ["x", "TST", "TST-", "-5", "TST-123456", "000005", "T-1", "TST-1/..", "TST 1"]
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        ChangeKey.parse(text)


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        *((config.encode("utf-8", "surrogateescape"), parts) for config, parts in CASES["unusable"]),
        (b'[project]\ncode = "TST"\nticketsPath = "' + b"x" * 2_000 + b'"\n', ["ticketsPath"]),
        (b"x" * 70_000, ["65,536"]),
        (b"a = " + b"[" * 5_000, ["not TOML", "too deep"]),
    ],
)
def test_a_configuration_that_cannot_be_used_is_named(
    tmp_path: Path, config: bytes, parts: list[str]
) -> None:
    """Answers about that project name it, and no other project replaces it."""
    make_project(tmp_path / "good", code="GOOD")
    make_project(tmp_path / "bad")
    (tmp_path / "bad" / "link").symlink_to(tmp_path / "good")
    (tmp_path / "bad" / ".mdt-config.toml").write_bytes(config)
    projects = Projects(tmp_path / "bad", (tmp_path,))
    for wanted in (None, "TST"):
        with pytest.raises(ProjectNotFoundError) as caught:
            projects.find(wanted)
        assert all(part in str(caught.value) for part in ("bad/.mdt-config.toml", *parts)), caught.value
        assert str(tmp_path) not in str(caught.value)
    assert [project.code for project in projects.all()] == ["GOOD"]
    assert len(projects.problems()) == 1
    (tmp_path / "bad" / ".mdt-config.toml").write_text(CONFIG, encoding="utf-8")
    assert projects.find(None).code == "TST"
    assert projects.problems() == ()


def test_a_byte_order_mark_is_no_part_of_a_configuration(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / ".mdt-config.toml").write_text(CONFIG, encoding="utf-8-sig")
    assert codes(tmp_path) == ["TST"]


def test_a_configuration_is_not_read_through_a_link_out_of_the_project(tmp_path: Path) -> None:
    """The target could be any file of the machine, or a pipe."""
    make_project(tmp_path / "one")
    config = tmp_path / "one" / ".mdt-config.toml"
    config.rename(tmp_path / "elsewhere.toml")
    config.symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(ProjectNotFoundError, match="a link leads outside"):
        Projects(tmp_path / "one", ()).find(None)
    config.unlink()
    os.mkfifo(config)
    with pytest.raises(ProjectNotFoundError, match="not a regular file"):
        Projects(tmp_path / "one", ()).find(None)


def test_errors_say_how_to_begin_a_project(tmp_path: Path) -> None:
    for wanted in (None, "NOPE"):
        with pytest.raises(ProjectNotFoundError, match=r"put \.mdt-config\.toml with"):
            Projects(tmp_path, ()).find(wanted)


def test_long_lists_of_projects_end(tmp_path: Path) -> None:
    for number in range(30):
        make_project(tmp_path / f"p{number}", code=f"P{number}")
    projects = Projects(tmp_path, ())
    for wanted in (None, "NOPE"):
        with pytest.raises(ProjectNotFoundError, match="and 10 more") as caught:
            projects.find(wanted)
        assert len(caught.value.near) <= 20


def new(changes: ChangeRequests) -> str:
    return changes.create(None, "Research", {"title": "x"}).key


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_a_deleted_number_is_not_given_again(tmp_path: Path, restart: bool) -> None:
    """Neither this server nor the next gives it, for files of any author."""
    file = make_project(tmp_path)
    changes = changes_in(tmp_path)

    def server() -> ChangeRequests:
        return changes_in(tmp_path) if restart else changes

    assert new(server()) == "TST-003"
    server().delete(None, "3")
    assert new(server()) == "TST-004"
    next(file.parent.glob("TST-004-*")).unlink()
    assert new(server()) == "TST-005"
    file.with_name("TST-009-x.md").write_text(SECOND.replace("TST-002", "TST-009"), encoding="utf-8")
    server().delete(None, "9")
    assert new(server()) == "TST-010"


@pytest.mark.parametrize(("kept", "key"), CASES["kept_numbers"])
def test_the_kept_number_counts_if_it_is_the_projects(tmp_path: Path, kept: str, key: str) -> None:
    """A file of that name from another program or project is ignored and stays."""
    make_project(tmp_path)
    path = tmp_path / LAST_KEY_FILE
    path.write_text(kept, encoding="utf-8")
    assert new(changes_in(tmp_path)) == key
    theirs = kept in ("OTHER", "\0\xff") or len(kept) > 20
    assert path.read_text(encoding="utf-8") == (kept if theirs else f"{key}\n")


def test_the_kept_number_is_not_written_through_a_link(tmp_path: Path) -> None:
    """The link's target is not changed, and the number is still given."""
    make_project(tmp_path / "proj")
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "proj" / LAST_KEY_FILE).symlink_to(tmp_path / "secret")
    assert new(changes_in(tmp_path / "proj")) == "TST-003"
    assert (tmp_path / "secret").read_text(encoding="utf-8") == "secret"


@pytest.mark.parametrize("name", ["TST-99999-x.md", "tst-99999"])
def test_when_no_number_is_left_that_is_said(tmp_path: Path, name: str) -> None:
    """The error names the file with the highest number, and no file is made."""
    file = make_project(tmp_path)
    file.with_name(name).write_text(SECOND.replace("TST-002", "TST-99999"), encoding="utf-8")
    before = sorted(os.listdir(file.parent))  # noqa: PTH208
    for _ in range(3):
        with pytest.raises(ClosedError, match=f"99999.*{name}"):
            new(changes_in(tmp_path))
    assert sorted(os.listdir(file.parent)) == before  # noqa: PTH208


def test_a_date_in_a_name_is_no_number(tmp_path: Path) -> None:
    """It would use up all numbers."""
    file = make_project(tmp_path)
    file.with_name("TST-20260131-notes.md").write_text("# Notes\n", encoding="utf-8")
    assert new(changes_in(tmp_path)) == "TST-003"
