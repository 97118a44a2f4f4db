"""Other programs change, copy or damage change requests between calls of the tools."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import Call, Connect
from tests.npl_mcp.documents.change_requests import NAME, SECOND, inside, make_project, without_stamp

OTHER = "TST-007-copy.md"

Project = tuple[Call, Path]


@pytest.fixture
def project(settings: Settings, connect: Connect, tmp_path: Path) -> Project:
    """Calls of a server in a project, and the file of its change request."""
    file = make_project(tmp_path / "proj")
    return connect(inside(settings, tmp_path / "proj")), file


EDIT = {"operation": "update", "section": "Rationale", "content": "mine"}
NEEDS_ONE: list[tuple[str, dict[str, Any]]] = [
    ("get_cr", {}),
    ("get_cr", {"mode": "metadata"}),
    ("manage_cr_sections", {"operation": "list"}),
    ("manage_cr_sections", {"operation": "get", "section": "Rationale"}),
    ("manage_cr_sections", EDIT),
    ("update_cr_status", {"status": "Approved"}),
    ("update_cr_attrs", {"attributes": {"priority": "High"}}),
    ("suggest_cr_improvements", {}),
    ("delete_cr", {}),
]


def states(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("code", ["TST-002", "TST-2", "TST-00002"])
@pytest.mark.parametrize("warm", [False, True], ids=["found", "added"])
def test_two_files_with_one_code_are_refused_by_every_call(project: Project, warm: bool, code: str) -> None:
    """The refusal repeats after a list, also if the second file appears while the server runs."""
    call, file = project
    copy = file.with_name(OTHER)
    requests = [(tool, {"key": "2", **more}) for tool, more in NEEDS_ONE]

    if warm:
        assert call("get_cr", key="2")["success"]
    copy.write_text(SECOND.replace("TST-002", code), encoding="utf-8")
    before = states(file.parent)
    for tool, arguments in [*requests, *requests]:
        answer = call(tool, **arguments)
        assert not answer["success"], tool
        assert all(part in answer["error"] for part in (NAME, OTHER, "keep one of them")), answer
    rows = call("list_crs")["data"]["items"]
    assert {row["path"] for row in rows} == {f"docs/CRs/{NAME}", f"docs/CRs/{OTHER}"}
    assert all("2 files have this code" in row["problem"] for row in rows)
    after = [call(tool, **arguments) for tool, arguments in requests]
    assert not any(answer["success"] for answer in after)
    for name in ("cr:TST-002", "cr:TST"):
        answer = call("npl_section_index", file=name)
        assert OTHER in answer["error"]
    assert states(file.parent) == before
    copy.unlink()
    assert all(call(tool, **arguments)["success"] for tool, arguments in requests)


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("manage_cr_sections", EDIT),
    ("manage_cr_sections", {**EDIT, "updateMode": "append"}),
    ("update_cr_status", {"status": "Rejected"}),
    ("update_cr_attrs", {"attributes": {"assignee": "me"}}),
    ("delete_cr", {}),
]


@pytest.mark.parametrize(("tool", "more"), WRITES)
def test_what_changed_since_it_was_read_is_not_overwritten(
    project: Project, tool: str, more: dict[str, Any]
) -> None:
    """A call with the present digest succeeds."""
    call, file = project
    theirs = [
        ("manage_cr_sections", {"key": "2", **EDIT, "content": "theirs"}),
        ("update_cr_status", {"key": "2", "status": "Approved"}),
    ]

    digest = call("get_cr", key="2", mode="metadata")["data"]["digest"]
    for step in theirs:
        assert call(step[0], **step[1])["success"]
    before = file.read_bytes()
    answer = call(tool, key="2", **more, expect=digest)
    assert answer["error_code"] == "OPERATION_FAILED"
    assert "has changed since you read it" in answer["error"]
    assert file.read_bytes() == before
    digest = call("get_cr", key="2")["data"]["digest"]
    assert call(tool, key="2", **more, expect=digest)["success"]


def test_the_digest_of_a_section_is_enough_to_change_it(project: Project) -> None:
    """Changes elsewhere do not count; each answer has the digest for the next call."""
    call, file = project

    edit = partial(call, "manage_cr_sections", key="2")
    digest = edit(operation="get", section="Rationale")["data"]["digest"]
    edit(operation="append", section="Description", content="elsewhere")
    first = edit(**EDIT, expect=digest)
    assert first["success"]
    stale = edit(**EDIT, expect=digest)
    assert "changed" in stale["error"]
    last = edit(operation="append", section="Rationale", content="x", expect=first["data"]["digest"])
    assert last["success"]
    assert file.read_text(encoding="utf-8").count("mine\n\nx\n") == 1


@pytest.mark.parametrize("expect", ["", "zz", "0123456", "012345678", "\u0660" * 8])
def test_what_is_no_digest_is_refused(project: Project, expect: str) -> None:
    answer = project[0]("delete_cr", key="2", expect=expect)
    assert answer["error_code"] in ("INVALID_PARAMETER", "MISSING_REQUIRED")
    assert project[1].exists()
    answer = project[0]("delete_cr", key="2", expect="00000000")
    assert "has changed since you read it" in answer["error"]
    assert project[1].exists()


@pytest.mark.parametrize("cut", [0, 10, 100, 230, 300])
def test_a_file_that_is_half_written_is_left_to_its_writer(project: Project, cut: int) -> None:
    """Cut in front matter or section, it is refused unchanged each time; after the other program both writes
    are there.
    """
    call, file = project
    whole = SECOND.replace("first para", "first para, longer").encode()
    append = {"key": "2", "operation": "append", "section": "Description", "content": "ours"}

    call("get_cr", key="2")
    with file.open("wb", buffering=0) as opened:
        opened.write(whole[:cut])
        for _ in range(3):
            answer = call("manage_cr_sections", **append)
            assert not answer["success"], answer
            assert "TST-002" in answer["error"]
            assert file.read_bytes() == whole[:cut]
        opened.write(whole[cut:])
    assert call("manage_cr_sections", **append)["success"]
    wanted = whole.replace(b"bbb\n", b"bbb\n\nours\n")
    assert without_stamp(file.read_bytes()) == without_stamp(wanted)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("TST-004-x.md", b"\xff\xfe", "not UTF-8"),
        ("TST-004-x.md", SECOND.replace("TST-002", "TST-004").encode() + b"\xe9", "not UTF-8"),
        ("TST-004-x.md", b"x" * ((16 << 20) + 1), "larger than"),
        ("TST-100000-x.md", SECOND.replace("TST-002", "TST-100000").encode(), "too long"),
        (f"TST-{10**20}-x.md", b"\xff\xfe", "not UTF-8"),
    ],
)
def test_an_unreadable_file_is_listed_as_such(project: Project, name: str, data: bytes, problem: str) -> None:
    call, file = project
    file.with_name(name).write_bytes(data)
    row = call("list_crs")["data"]["items"][-1]
    assert (row["status"], row["path"]) == ("Unreadable", f"docs/CRs/{name}")
    assert row["key"] == name[:-5]
    assert problem in row["problem"]
    if name.startswith("TST-004"):
        assert problem in call("get_cr", key="4")["error"]
        assert call("create_cr", type="Research", data={"title": "x"})["data"]["key"] == "TST-005"


def test_names_and_fields_of_odd_bytes_are_shown(project: Project) -> None:
    """File names that are not text and escapes in front matter are no defects."""
    call, file = project
    odd = os.fsencode(file.parent) + b"/TST-004-\xff\n.md"
    text = SECOND.replace("TST-002", "TST-004").replace("kept: yes", "\\ud83d\\u0000").replace("# Second", "")
    with open(odd, "wb") as opened:  # noqa: PTH123 - the name is no text
        opened.write(text.encode())
    requests: list[tuple[str, dict[str, Any]]] = [
        ("list_crs", {}),
        ("npl_section_index", {"file": "cr:TST-4"}),
        *((tool, {"key": "4", **more}) for tool, more in NEEDS_ONE if "section" not in more),
    ]
    for answer in (call(tool, **arguments) for tool, arguments in requests):
        assert answer["success"], answer
        assert "\n" not in str(answer["data"].get("path"))


@pytest.mark.thorough
def test_an_append_that_would_make_the_file_unreadable_is_refused(project: Project) -> None:
    """The size of the whole decides, and the file stays as it was."""
    call, file = project
    file.write_bytes(SECOND.encode() + b"x" * 79 + b"\n" + (b"y" * 4095 + b"\n") * ((16 << 20) // 4096 - 2))
    before = file.read_bytes()
    answer = call("manage_cr_sections", key="2", **{**EDIT, "content": "z" * 400_000})
    assert not answer["success"]
    assert "16,777,216" in answer["error"]
    assert file.read_bytes() == before


def test_front_matter_never_grows_beyond_what_is_read(project: Project) -> None:
    """The change request would otherwise vanish."""
    call, file = project
    front = (1 << 20) - len(SECOND.partition("\n---\n")[0]) - 40
    file.write_text(SECOND.replace("custom:", f"long: {'x' * front}\ncustom:", 1), encoding="utf-8")
    before = file.read_bytes()
    notes = {"implementationNotes": "n" * 2_000}
    answer = call("update_cr_attrs", key="2", attributes=notes)
    assert not answer["success"]
    assert "too long" in answer["error"]
    assert file.read_bytes() == before
    assert call("get_cr", key="2", mode="metadata")["success"]


@pytest.mark.parametrize("tool", ["manage_cr_sections", "update_cr_status", "delete_cr"])
def test_a_write_protected_file_is_not_changed(project: Project, tool: str) -> None:
    """Replacing the file would not need that permission."""
    call, file = project
    file.chmod(0o444)
    more: dict[str, Any] = {"manage_cr_sections": EDIT, "update_cr_status": {"status": "Approved"}}.get(
        tool, {}
    )
    answer = call(tool, key="2", **more)
    assert answer["error_code"] == "FILE_SYSTEM_ERROR"
    assert "write-protected" in answer["error"]
    assert file.read_bytes() == SECOND.encode()
    assert file.stat().st_mode & 0o777 == 0o444
