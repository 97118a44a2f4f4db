"""Change requests that others change, copy or damage, through the tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client

from npl_mcp.config.settings import Settings
from tests.conftest import calls, envelope, with_client
from tests.npl_mcp.documents.change_requests import NAME, SECOND, inside, make_project, without_stamp

OTHER = "TST-007-copy.md"


@pytest.fixture
def project(settings: Settings, tmp_path: Path) -> tuple[Settings, Path]:
    file = make_project(tmp_path / "proj")
    return inside(settings, tmp_path / "proj"), file


def one(settings: Settings, tool: str, **arguments: Any) -> dict[str, Any]:
    return calls(settings, [(tool, arguments)])[0]


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
def test_two_files_with_one_code_are_refused_by_every_call(
    project: tuple[Settings, Path], warm: bool, code: str
) -> None:
    """The first time and later, after a list, and whether or not the second came while the server ran."""
    settings, file = project
    copy = file.with_name(OTHER)
    requests = [(tool, {"key": "2", **more}) for tool, more in NEEDS_ONE]

    async def ask(client: Client[Any]) -> list[dict[str, Any]]:
        async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return envelope(await client.call_tool(tool, arguments, raise_on_error=False))

        if warm:
            assert (await call("get_cr", {"key": "2"}))["success"]
        copy.write_text(SECOND.replace("TST-002", code), encoding="utf-8")
        before = states(file.parent)
        for tool, arguments in [*requests, *requests]:
            answer = await call(tool, arguments)
            assert not answer["success"], tool
            assert all(part in answer["error"] for part in (NAME, OTHER, "keep one of them")), answer
        rows = (await call("list_crs", {}))["data"]["items"]
        assert {row["path"] for row in rows} == {f"docs/CRs/{NAME}", f"docs/CRs/{OTHER}"}
        assert all("2 files have this code" in row["problem"] for row in rows)
        after = [await call(tool, arguments) for tool, arguments in requests]
        assert not any(answer["success"] for answer in after)
        for name in ("cr:TST-002", "cr:TST"):
            answer = await call("npl_section_index", {"file": name})
            assert OTHER in answer["error"]
        assert states(file.parent) == before
        copy.unlink()
        return [await call(tool, arguments) for tool, arguments in requests]

    assert all(answer["success"] for answer in with_client(settings, ask))


def test_a_code_changed_inside_a_file_is_seen_before_a_delete(project: tuple[Settings, Path]) -> None:
    """No name in the folder comes or goes then."""
    settings, file = project
    copy = file.with_name(OTHER)
    copy.write_text(SECOND.replace("TST-002", "TST-007"), encoding="utf-8")

    async def ask(client: Client[Any]) -> dict[str, Any]:
        await client.call_tool("get_cr", {"key": "2"})
        copy.write_text(SECOND, encoding="utf-8")
        return envelope(await client.call_tool("delete_cr", {"key": "2"}, raise_on_error=False))

    answer = with_client(settings, ask)
    assert not answer["success"]
    assert NAME in answer["error"]
    assert OTHER in answer["error"]


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("manage_cr_sections", EDIT),
    ("manage_cr_sections", {**EDIT, "updateMode": "append"}),
    ("update_cr_status", {"status": "Rejected"}),
    ("update_cr_attrs", {"attributes": {"assignee": "me"}}),
    ("delete_cr", {}),
]


@pytest.mark.parametrize(("tool", "more"), WRITES)
def test_what_changed_since_it_was_read_is_not_overwritten(
    project: tuple[Settings, Path], tool: str, more: dict[str, Any]
) -> None:
    """With the digest of the present state the call is done."""
    settings, file = project
    theirs = [
        ("manage_cr_sections", {"key": "2", **EDIT, "content": "theirs"}),
        ("update_cr_status", {"key": "2", "status": "Approved"}),
    ]

    async def ask(client: Client[Any]) -> None:
        async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return envelope(await client.call_tool(tool, arguments, raise_on_error=False))

        digest = (await call("get_cr", {"key": "2", "mode": "metadata"}))["data"]["digest"]
        for step in theirs:
            assert (await call(*step))["success"]
        before = file.read_bytes()
        answer = await call(tool, {"key": "2", **more, "expect": digest})
        assert answer["error_code"] == "OPERATION_FAILED"
        assert "has changed since you read it" in answer["error"]
        assert file.read_bytes() == before
        digest = (await call("get_cr", {"key": "2"}))["data"]["digest"]
        assert (await call(tool, {"key": "2", **more, "expect": digest}))["success"]

    with_client(settings, ask)


def test_the_digest_of_a_section_is_enough_to_change_it(project: tuple[Settings, Path]) -> None:
    """Changes elsewhere do not count; each answer has the digest for the next call."""
    settings, file = project

    async def ask(client: Client[Any]) -> None:
        async def call(**more: Any) -> dict[str, Any]:
            answer = await client.call_tool("manage_cr_sections", {"key": "2", **more}, raise_on_error=False)
            return envelope(answer)

        digest = (await call(operation="get", section="Rationale"))["data"]["digest"]
        await call(operation="append", section="Description", content="elsewhere")
        first = await call(**EDIT, expect=digest)
        assert first["success"]
        stale = await call(**EDIT, expect=digest)
        assert "changed" in stale["error"]
        last = await call(
            operation="append", section="Rationale", content="x", expect=first["data"]["digest"]
        )
        assert last["success"]

    with_client(settings, ask)
    assert file.read_text(encoding="utf-8").count("mine\n\nx\n") == 1


@pytest.mark.parametrize("expect", ["", "zz", "0123456", "012345678", "\u0660" * 8])
def test_what_is_no_digest_is_refused(project: tuple[Settings, Path], expect: str) -> None:
    """It would never be the present one."""
    answer = one(project[0], "delete_cr", key="2", expect=expect)
    assert answer["error_code"] in ("INVALID_PARAMETER", "MISSING_REQUIRED")
    assert project[1].exists()
    answer = one(project[0], "delete_cr", key="2", expect="00000000")
    assert "has changed since you read it" in answer["error"]
    assert project[1].exists()


@pytest.mark.parametrize("cut", [0, 10, 100, 230, 300])
def test_a_file_that_is_half_written_is_left_to_its_writer(project: tuple[Settings, Path], cut: int) -> None:
    """Wherever it was cut, in the front matter or in a section: the call is refused, as often as it is made,
    and changes nothing; after the other program it is done, and both writes are there.
    """
    settings, file = project
    whole = SECOND.replace("first para", "first para, longer").encode()
    append = {"key": "2", "operation": "append", "section": "Description", "content": "ours"}

    async def ask(client: Client[Any]) -> None:
        async def call() -> dict[str, Any]:
            return envelope(await client.call_tool("manage_cr_sections", append, raise_on_error=False))

        await client.call_tool("get_cr", {"key": "2"})
        with file.open("wb", buffering=0) as opened:
            opened.write(whole[:cut])
            for _ in range(3):
                answer = await call()
                assert not answer["success"], answer
                assert "TST-002" in answer["error"]
                assert file.read_bytes() == whole[:cut]
            opened.write(whole[cut:])
        assert (await call())["success"]

    with_client(settings, ask)
    wanted = whole.replace(b"bbb\n", b"bbb\n\nours\n")
    assert without_stamp(file.read_bytes()) == without_stamp(wanted)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("TST-004-x.md", b"\xff\xfe", "not UTF-8"),
        ("TST-004-x.md", SECOND.replace("TST-002", "TST-004").encode() + b"\xe9", "not UTF-8"),
        ("TST-004-x.md", b"x" * ((16 << 20) + 1), "larger than"),
        ("TST-100000-x.md", SECOND.replace("TST-002", "TST-100000").encode(), "too long"),
    ],
)
def test_an_unreadable_file_is_listed_as_such(
    project: tuple[Settings, Path], name: str, data: bytes, problem: str
) -> None:
    """With the reason; one that is asked for says it, too."""
    settings, file = project
    file.with_name(name).write_bytes(data)
    row = one(settings, "list_crs")["data"]["items"][-1]
    assert (row["status"], row["path"]) == ("Unreadable", f"docs/CRs/{name}")
    assert row["key"] == name[:-5]
    assert problem in row["problem"]
    if name.startswith("TST-004"):
        assert problem in one(settings, "get_cr", key="4")["error"]
        assert one(settings, "create_cr", type="Research", data={"title": "x"})["data"]["key"] == "TST-005"


def test_names_and_fields_of_odd_bytes_are_shown(project: tuple[Settings, Path]) -> None:
    """Neither file names that are no text nor escapes in front matter are defects."""
    settings, file = project
    odd = os.fsencode(file.parent) + b"/TST-004-\xff\n.md"
    text = SECOND.replace("TST-002", "TST-004").replace("kept: yes", "\\ud83d\\u0000").replace("# Second", "")
    with open(odd, "wb") as opened:  # noqa: PTH123 - the name is no text
        opened.write(text.encode())
    requests: list[tuple[str, dict[str, Any]]] = [
        (tool, {"key": "4", **more}) for tool, more in NEEDS_ONE if "section" not in more
    ]
    for answer in calls(settings, [("list_crs", {}), ("npl_section_index", {"file": "cr:TST-4"}), *requests]):
        assert answer["success"], answer
        assert "\n" not in str(answer["data"].get("path"))


def test_an_append_that_would_make_the_file_unreadable_is_refused(project: tuple[Settings, Path]) -> None:
    """The file stays as it was; the size of the whole decides."""
    settings, file = project
    file.write_bytes(SECOND.encode() + b"x" * 79 + b"\n" + (b"y" * 4095 + b"\n") * ((16 << 20) // 4096 - 2))
    before = file.read_bytes()
    answer = one(settings, "manage_cr_sections", key="2", **{**EDIT, "content": "z" * 400_000})
    assert not answer["success"]
    assert "16,777,216" in answer["error"]
    assert file.read_bytes() == before


def test_front_matter_never_grows_beyond_what_is_read(project: tuple[Settings, Path]) -> None:
    """The change request would vanish."""
    settings, file = project
    front = (1 << 20) - len(SECOND.partition("\n---\n")[0]) - 40
    file.write_text(SECOND.replace("custom:", f"long: {'x' * front}\ncustom:", 1), encoding="utf-8")
    before = file.read_bytes()
    notes = {"implementationNotes": "n" * 2_000}
    answer = one(settings, "update_cr_attrs", key="2", attributes=notes)
    assert not answer["success"]
    assert "too long" in answer["error"]
    assert file.read_bytes() == before
    assert one(settings, "get_cr", key="2", mode="metadata")["success"]


@pytest.mark.parametrize("tool", ["manage_cr_sections", "update_cr_status", "delete_cr"])
def test_a_write_protected_file_is_not_changed(project: tuple[Settings, Path], tool: str) -> None:
    """Replacing it would not ask for that permission."""
    settings, file = project
    file.chmod(0o444)
    more: dict[str, Any] = {"manage_cr_sections": EDIT, "update_cr_status": {"status": "Approved"}}.get(
        tool, {}
    )
    answer = one(settings, tool, key="2", **more)
    assert answer["error_code"] == "FILE_SYSTEM_ERROR"
    assert "write-protected" in answer["error"]
    assert file.read_bytes() == SECOND.encode()
    assert file.stat().st_mode & 0o777 == 0o444


def test_a_parameter_there_is_not_reads_like_a_sentence(project: tuple[Settings, Path]) -> None:
    """Also where a tool has none."""
    error = one(project[0], "directive_spec_template", x=1)["error"]
    assert error.endswith("'x' is not a parameter; it takes none")
