"""Change requests through the tools, in a project with one of them."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from npl_mcp.documents.format import template
from npl_mcp.tools import cr
from tests import conftest
from tests.conftest import Connect, calls, cases
from tests.npl_mcp.documents.change_requests import NAME, SECOND, inside, make_project, without_stamp

STATUSES = cases("npl_mcp/tools/cr")["statuses"]
TYPES = ("Architecture", "Feature Enhancement", "Bug Fix", "Technical Debt", "Documentation", "Research")


class Workspace:
    """A project and a server started in it.

    :param connect: starts it.
    :param folder: the project's.
    """

    def __init__(
        self, connect: Connect, settings: Settings, folder: Path, end: str = "\n", text: str = SECOND
    ) -> None:
        self.folder = folder
        self.file = make_project(folder, text, end)
        self.settings = inside(settings, folder)
        self.tickets = self.file.parent
        self.call = connect(self.settings)

    def fail(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """Return code and text of a refusal, which changes no file."""
        before = tree(self.folder)
        refusal = self.call.refused(tool, **arguments)
        assert tree(self.folder) == before
        return refusal

    def edit(self, operation: str, section: str, content: str, **more: Any) -> Any:
        return self.call.do(
            "manage_cr_sections", key="2", operation=operation, section=section, content=content, **more
        )

    def section(self, section: str) -> str:
        data = self.call.do("manage_cr_sections", key="2", operation="get", section=section)
        text: str = data["content"]
        return text


def tree(folder: Path) -> dict[str, str]:
    """Return a digest of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def workspace(connect: Connect, settings: Settings, tmp_path: Path) -> Workspace:
    return Workspace(connect, settings, tmp_path / "proj")


@pytest.fixture(params=["\n", "\r\n"], ids=["LF", "CRLF"])
def ended(
    request: pytest.FixtureRequest, connect: Connect, settings: Settings, tmp_path: Path
) -> tuple[Workspace, str]:
    return Workspace(connect, settings, tmp_path / "proj", request.param), request.param


def listed(settings: Settings) -> list[dict[str, Any]]:
    names = {spec.name for spec in cr.TOOLS}
    return [tool for tool in conftest.listed(settings) if tool["name"] in names]


def test_ten_tools_are_listed_by_the_names_clients_know(settings: Settings) -> None:
    """Their list is smaller than any earlier one."""
    tools = listed(settings)
    assert {tool["name"] for tool in tools} == {*cases("npl_mcp/tools/cr")["tools"]}
    assert len(json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False)) < 6_546


def test_schemas_say_what_may_be_given(settings: Settings) -> None:
    """The schemas list statuses, types, priorities and modes; every tool is described."""
    by_name = {tool["name"]: tool["inputSchema"]["properties"] for tool in listed(settings)}
    assert by_name["update_cr_status"]["status"]["enum"] == list(STATUSES)
    assert by_name["create_cr"]["type"]["enum"] == list(TYPES)
    for tool, name in (("create_cr", "data"), ("update_cr_attrs", "attributes")):
        priorities = by_name[tool][name]["properties"]["priority"]["enum"]
        assert priorities == ["Low", "Medium", "High", "Critical"]
    assert by_name["get_cr"]["mode"]["enum"] == ["full", "attributes", "metadata"]
    assert by_name["manage_cr_sections"]["updateMode"]["enum"] == ["replace", "append", "prepend"]
    assert by_name["manage_cr_sections"]["operation"]["enum"][:3] == ["list", "get", "update"]
    attributes = by_name["update_cr_attrs"]["attributes"]["properties"]
    assert attributes["implementationDate"]["format"] == "date"
    assert "impactAreas" in attributes
    description = next(tool["description"] for tool in listed(settings) if tool["name"] == "create_cr")
    assert all(kind in description for kind in TYPES)
    assert "template" in description
    assert "e.g." not in json.dumps(listed(settings))
    assert all(tool.get("project", {"description": "x"})["description"] for tool in by_name.values())
    for tool in listed(settings):
        assert tool["description"]
        described = (part.get("description", "-") for part in tool["inputSchema"]["properties"].values())
        assert all(described)


def test_the_whole_text_comes_by_default(ended: tuple[Workspace, str]) -> None:
    """It has all headings and paragraphs, the title's too; front matter comes as fields."""
    data = ended[0].call.do("get_cr", key="TST-002")
    assert data["other"] == {"custom": "kept: yes"}
    assert data["dateCreated"] == "2025-01-01T00:00:00.000Z"
    assert data["content"] == SECOND.split("---\n\n", 1)[1].rstrip("\n")
    assert (data["code"], data["title"], data["status"]) == ("TST-002", "Second", "Proposed")


def test_attributes_are_those_of_the_front_matter_but_the_title(ended: tuple[Workspace, str]) -> None:
    """The first heading beats the front matter; unknown fields come too; the digest ignores line ends."""
    assert ended[0].call.do("get_cr", key="TST-002", mode="attributes") == {
        "code": "TST-002",
        "title": "Second",
        "status": "Proposed",
        "type": "Feature Enhancement",
        "priority": "Medium",
        "dateCreated": "2025-01-01T00:00:00.000Z",
        "lastModified": "2025-01-02T00:00:00.000Z",
        "other": {"custom": "kept: yes"},
        "digest": hashlib.blake2b(SECOND.strip("\n").encode(), digest_size=16).hexdigest()[:8],
    }


def test_metadata_is_short_and_says_where_the_file_is(workspace: Workspace) -> None:
    data = workspace.call.do("get_cr", key="TST-002", mode="metadata")
    assert data["path"] == f"docs/CRs/{NAME}"
    assert {"code", "title", "status", "type", "priority"} <= data.keys()
    assert "first para" not in str(data)
    whole = (
        workspace.call.do("get_cr", key="TST-002"),
        workspace.call.do("get_cr", key="TST-002", mode="attributes"),
    )
    assert len(str(data)) < len(str(whole))


@pytest.mark.parametrize("key", ["2", "002", "tst-2", "TST-0002", " 2 "])
def test_a_key_may_be_short(workspace: Workspace, key: str) -> None:
    """A number alone, any case, any zeros and blanks around it are accepted."""
    assert workspace.call.do("get_cr", key=key, mode="metadata")["code"] == "TST-002"


@pytest.mark.parametrize(("arguments", "code", "parts"), cases("npl_mcp/tools/cr")["a_wrong_name_is_told"])
def test_a_wrong_name_is_told(
    workspace: Workspace, arguments: dict[str, Any], code: str, parts: list[str]
) -> None:
    refusal, error = workspace.fail("get_cr", **arguments)
    assert refusal == code
    assert all(part in error for part in parts), error
    assert "root:" not in error


def test_sections_are_listed_in_document_order(ended: tuple[Workspace, str]) -> None:
    """There are seven with their levels; equal headings have different paths, each of which leads to its
    section.
    """
    workspace, _ = ended
    rows = workspace.call.do("manage_cr_sections", key="2", operation="list")["sections"]
    assert [(row["section"], row["chars"]) for row in rows] == [
        ("# Second", 150),
        ("## 1. Description", 42),
        ("## 1. Description / ### Sub A", 3),
        ("## 1. Description / ### Sub B", 3),
        ("## 2. Rationale", 19),
        ("## 2. Rationale / ### Sub A", 3),
        ("## 3. Acceptance Criteria", 9),
    ]
    for row in rows:
        assert len(workspace.section(row["section"])) == row["chars"]


@pytest.mark.parametrize("name", cases("npl_mcp/tools/cr")["a_section_is_found_by_any_form_of_its_name"])
def test_a_section_is_found_by_any_form_of_its_name(ended: tuple[Workspace, str], name: str) -> None:
    assert ended[0].section(name) == "first para\n\n### Sub A\n\naaa\n\n### Sub B\n\nbbb"


def test_an_ambiguous_name_is_answered_with_paths_that_work(workspace: Workspace) -> None:
    """Reading and writing accept each path as it is."""
    code, error = workspace.fail("manage_cr_sections", key="2", operation="get", section="Sub A")
    assert code == "NOT_FOUND"
    paths = [line.removeprefix("  - ") for line in error.split("\n")[1:]]
    assert paths == ["# Second / ## 1. Description / ### Sub A", "# Second / ## 2. Rationale / ### Sub A"]
    assert [workspace.section(path) for path in paths] == ["aaa", "dup"]
    for path in paths:
        assert workspace.edit("append", path, "more")["section"] == path


@pytest.mark.parametrize("path", ["# Second / ## 2. Rationale / ### Sub A", "## 2. Rationale / ### Sub A"])
def test_a_duplicate_is_read_and_written_by_its_path(ended: tuple[Workspace, str], path: str) -> None:
    """The path may be the full one or begin anywhere; only its paragraph changes."""
    workspace, end = ended
    assert workspace.section(path) == "dup"
    before = workspace.file.read_bytes()
    workspace.edit("replace", path, "DUP2")
    wanted = before.replace(f"dup{end}".encode(), f"DUP2{end}".encode())
    assert without_stamp(workspace.file.read_bytes()) == without_stamp(wanted)


@pytest.mark.parametrize(
    ("text", "wanted", "heading", "contents"),
    [
        ("### Step\n\na\n\n### Step\n\nb\n\n### Step\n\nc\n", "Step [2]", "### Step [2]", ["a", "new", "c"]),
        ("## A\n\n### B\n\nb\n\n## C\n\nc\n", "C", "## A / ### B", ["### B\n\nb", "b", "new"]),
    ],
)
def test_every_path_leads_to_its_own_section(
    workspace: Workspace, text: str, wanted: str, heading: str, contents: list[str]
) -> None:
    """A heading may even be written like the path of another section."""
    workspace.file.write_text(SECOND.partition("## 1.")[0] + text, encoding="utf-8")
    answer = workspace.edit("replace", wanted, f"{heading}\n\nnew")
    rows = workspace.call.do("manage_cr_sections", key="2", operation="list")["sections"]
    paths = [row["section"] for row in rows][1:]
    assert [workspace.section(path) for path in paths] == contents
    assert workspace.section(answer["section"]) == "new"
    for path in paths:
        workspace.edit("append", path, "more")
        assert workspace.section(path).endswith("more")
    assert workspace.fail("manage_cr_sections", key="2", operation="get", section=heading)[0] == "NOT_FOUND"


def test_a_part_of_a_name_is_read_but_not_replaced(workspace: Workspace) -> None:
    """The refusal lists the sections with it in their names, and says how to add one."""
    assert workspace.section("Criteria") == "- [ ] one"
    code, error = workspace.fail(
        "manage_cr_sections", key="2", operation="update", section="Criteria", content="x"
    )
    assert code == "NOT_FOUND"
    assert "# Second / ## 3. Acceptance Criteria" in error
    assert "append" in error
    workspace.edit("append", "Criteria", "- [ ] two")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        *cases("npl_mcp/tools/cr")["an_operation_that_cannot_be_done_changes_nothing"],
        ({"operation": "append", "section": "Rationale", "content": "x" * 500_001}, ["500,001"]),
    ],
)
def test_an_operation_that_cannot_be_done_changes_nothing(
    workspace: Workspace, arguments: dict[str, Any], parts: list[str]
) -> None:
    code, error = workspace.fail("manage_cr_sections", key="2", **arguments)
    assert code in ("MISSING_REQUIRED", "INVALID_PARAMETER", "NOT_FOUND")
    assert all(part in error for part in parts), error


EDITS = [
    ("replace", "# Second", "# Renamed", "# Second\n", "# Renamed\n"),
    ("append", "Criteria", "- [ ] two", "- [ ] one\n", "- [ ] one\n- [ ] two\n"),
    ("append", "Rationale", r"a literal \n\n and $& stay", "dup\n", "dup\n\na literal \\n\\n and $& stay\n"),
]


@pytest.mark.parametrize(("operation", "section", "content", "old", "new"), EDITS)
def test_an_edit_changes_these_bytes_and_no_others(
    ended: tuple[Workspace, str], operation: str, section: str, content: str, old: str, new: str
) -> None:
    """Line ends, blank lines and front matter stay; only ``lastModified`` follows."""
    workspace, end = ended
    before = workspace.file.read_bytes()
    workspace.edit(operation, section, content)
    after = workspace.file.read_bytes()
    assert SECOND.count(old) == 1
    wanted = before.replace(old.replace("\n", end).encode(), new.replace("\n", end).encode())
    assert without_stamp(after) == without_stamp(wanted)
    assert b"lastModified: 2025-01-02" not in after
    assert after.endswith(end.encode())


@pytest.mark.parametrize(
    ("mode", "expected"), cases("npl_mcp/tools/cr")["both_spellings_of_an_update_do_the_same"]
)
def test_both_spellings_of_an_update_do_the_same(
    ended: tuple[Workspace, str], mode: str | None, expected: str
) -> None:
    """They are ``update`` with a mode, by default ``replace``, and the mode as operation."""
    workspace, _ = ended
    before, done = workspace.file.read_bytes(), mode or "replace"
    for operation, more in (("update", {"updateMode": mode} if mode else {}), (done, {})):
        workspace.file.write_bytes(before)
        assert workspace.edit(operation, "Rationale", "x", **more)["operation"] == done
        assert workspace.section("Rationale") == expected


def test_an_edit_says_which_subsections_are_gone(workspace: Workspace) -> None:
    """The answer has their headings, or nothing if they stay."""
    assert "removed" not in workspace.edit("append", "Rationale", "x")
    assert "removed" not in workspace.edit("replace", "Rationale", "y\n\n### Sub A\n\nz")
    assert workspace.edit("update", "Rationale", "NEW")["removed"] == ["### Sub A"]


def test_a_renamed_section_is_answered_with_its_new_path(workspace: Workspace) -> None:
    answer = workspace.edit("replace", "Rationale", "## 2. Reasons")
    assert answer["section"] == "# Second / ## 2. Reasons"
    assert workspace.section(answer["section"]) == "why\n\n### Sub A\n\ndup"


def test_unknown_lines_of_front_matter_stay(connect: Connect, settings: Settings, tmp_path: Path) -> None:
    """They are comments, quotes, blanks, lists, and a leading byte order mark."""
    odd = (
        "# a comment\nTags :  [a, 'b']   # both\nnested:\n  - one\n  -   two\n\npriority:   'High'  # soon\n"
    )
    text = "\ufeff" + SECOND.replace("priority: Medium\n", odd)
    workspace = Workspace(connect, settings, tmp_path / "proj", text=text)
    before = workspace.file.read_bytes()
    workspace.edit("replace", "Rationale", "NEW")
    wanted = before.replace(b"why\n\n### Sub A\n\ndup\n", b"NEW\n")
    assert without_stamp(workspace.file.read_bytes()) == without_stamp(wanted)
    data = workspace.call.do("get_cr", key="2", mode="attributes")
    assert data["priority"] == "High"
    assert data["other"] == {"custom": "kept: yes", "Tags": ["a", "b"], "nested": ["one", "two"]}
    workspace.call.do("update_cr_attrs", key="2", attributes={"priority": "Low"})
    assert workspace.file.read_bytes().count(b"priority:   'Low'  # soon\n") == 1


def test_a_new_change_request_gets_the_next_key(workspace: Workspace) -> None:
    """File, name and front matter have the form they always had."""
    data = workspace.call.do("create_cr", type="Bug Fix", data={"title": "First bug", "priority": "Critical"})
    assert (data["key"], data["status"]) == ("TST-003", "Proposed")
    assert data["path"] == "docs/CRs/TST-003-first-bug.md"
    text = (workspace.tickets / "TST-003-first-bug.md").read_text(encoding="utf-8")
    front, _, body = text.removeprefix("---\n").partition("---\n")
    names = [line.partition(":")[0] for line in front.splitlines()]
    assert names == ["code", "status", "dateCreated", "type", "priority"]
    assert body.startswith("\n# First bug\n\n## 1. Description\n")
    assert text.endswith("\n")
    assert data["sections"] == [line for line in body.split("\n") if line.startswith("## ")]


OUTLINES = cases("npl_mcp/tools/cr")["outlines"]


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_has_its_template(workspace: Workspace, kind: str) -> None:
    """Its sections are numbered, and each can be read and written by its name."""
    made = workspace.call.do("create_cr", type=kind, data={"title": "Some title"})
    wanted = OUTLINES.get(kind, OUTLINES["Architecture"]).split(", ")
    assert made["sections"] == [f"## {number}. {name}" for number, name in enumerate(wanted, 1)]
    assert template(kind).count("- [ ] ") >= 3
    done = workspace.call.do(
        "manage_cr_sections", key="3", operation="replace", section="Acceptance Criteria", content="- [x] all"
    )
    assert done["section"] == "# Some title / ## 4. Acceptance Criteria"


def test_content_takes_the_templates_place(workspace: Workspace) -> None:
    """The given title replaces the content's; comments in code stay; everything else is written."""
    data = {
        "title": "With: content #1",
        "content": "# Other\r\n\r\ntext\r\n\r\n```bash\r\n# comment\r\n```\r\n",
        "phaseEpic": "Phase 2: Import",
        "assignee": "me@example.com",
        "relatedTickets": "tst-2",
        "dependsOn": ["TST-0002"],
        "impactAreas": ["Backend", "API"],
    }
    made = workspace.call.do("create_cr", type="Technical Debt", data=data)
    assert "sections" not in made
    text = (workspace.folder / made["path"]).read_text(encoding="utf-8")
    assert text.endswith("---\n\n# With: content #1\n\ntext\n\n```bash\n# comment\n```\n")
    assert 'phaseEpic: "Phase 2: Import"\n' in text
    attributes = workspace.call.do("get_cr", key="3", mode="attributes")
    assert attributes["title"] == "With: content #1"
    assert (attributes["phaseEpic"], attributes["assignee"]) == ("Phase 2: Import", "me@example.com")
    assert (attributes["relatedTickets"], attributes["dependsOn"]) == ("TST-002", "TST-002")
    assert attributes["impactAreas"] == "Backend, API"


@pytest.mark.parametrize(
    ("arguments", "part"), cases("npl_mcp/tools/cr")["what_cannot_be_written_as_data_is_refused"]
)
def test_what_cannot_be_written_as_data_is_refused(
    workspace: Workspace, arguments: dict[str, Any], part: str
) -> None:
    """The error names the field, and no file is made anywhere."""
    code, error = workspace.fail("create_cr", **arguments)
    assert code in ("INVALID_PARAMETER", "MISSING_REQUIRED")
    assert part in error


@pytest.mark.parametrize(
    ("title", "name"),
    [
        (
            "Héllo, World! It's (a) Test -- of   slugs / and very long title that goes on",
            "hllo-world-its-a-test-of-slugs-and-very-long-title",
        ),
        ("!!!", "bug-fix"),
        ("堆肥", "bug-fix"),
        ("a" * 49 + " b", "a" * 49),
        ("$& and C #", "and-c"),
    ],
)
def test_a_title_is_kept_whatever_its_file_is_called(workspace: Workspace, title: str, name: str) -> None:
    """The file's name drops unportable characters; the title reads back as given."""
    made = workspace.call.do("create_cr", type="Bug Fix", data={"title": title})
    assert made["path"] == f"docs/CRs/TST-003-{name}.md"
    assert workspace.call.do("get_cr", key="3", mode="metadata")["title"] == title


@pytest.mark.parametrize("name", ["TST-050.md", "tst-050-x.md", "TST-050-.md"])
def test_a_number_that_any_file_has_is_not_given_again(workspace: Workspace, name: str) -> None:
    (workspace.tickets / name).write_text("", encoding="utf-8")
    assert workspace.call.do("create_cr", type="Bug Fix", data={"title": "x"})["key"] == "TST-051"


def test_numbers_grow_beyond_three_digits_and_begin_where_the_project_says(workspace: Workspace) -> None:
    config = workspace.folder / ".mdt-config.toml"
    config.write_text(config.read_text(encoding="utf-8") + "startNumber = 1000\n", encoding="utf-8")
    assert workspace.call.do("create_cr", type="Bug Fix", data={"title": "x"})["key"] == "TST-1000"


def test_any_status_may_follow_any(ended: tuple[Workspace, str]) -> None:
    workspace, _ = ended
    before = workspace.file.read_bytes()
    data = workspace.call.do("update_cr_status", key="2", status="Implemented")
    assert (data["change"], data["status"]) == ("Proposed → Implemented", "Implemented")
    assert workspace.file.read_bytes() == before.replace(b"status: Proposed", b"status: Implemented")
    assert (
        workspace.call.do("update_cr_status", key="2", status="Proposed")["change"]
        == "Implemented → Proposed"
    )
    assert workspace.file.read_bytes() == before
    for status in STATUSES:
        workspace.call.do("update_cr_status", key="2", status=status)
        assert workspace.call.do("get_cr", key="2", mode="metadata")["status"] == status


def test_a_new_attribute_gets_a_line_before_the_end(ended: tuple[Workspace, str]) -> None:
    """All other bytes stay, and a cleared attribute keeps its line."""
    workspace, end = ended
    before = workspace.file.read_bytes()
    data = workspace.call.do("update_cr_attrs", key="2", attributes={"assignee": "me"})
    assert data["updated"] == {"assignee": "me"}
    closing = f"{end}---{end}".encode()
    wanted = before.replace(closing, f"{end}assignee: me{end}---{end}".encode(), 1)
    assert workspace.file.read_bytes() == wanted
    assert workspace.call.do("update_cr_attrs", key="2", attributes={"assignee": ""})["updated"] == {
        "assignee": ""
    }
    assert workspace.file.read_bytes() == wanted.replace(b"assignee: me", b"assignee:")
    assert "assignee" not in workspace.call.do("get_cr", key="2", mode="attributes")


ATTRIBUTES = cases("npl_mcp/tools/cr")["attributes"]


@pytest.mark.parametrize(("name", "values"), ATTRIBUTES.items())
def test_every_attribute_is_set_and_read(workspace: Workspace, name: str, values: tuple[object, str]) -> None:
    """Any value is kept as data. The same value again writes nothing."""
    given, read = values
    workspace.call.do("update_cr_attrs", key="2", attributes={name: given})
    assert workspace.call.do("get_cr", key="2", mode="attributes")[name] == read
    stamp = workspace.file.stat().st_mtime_ns
    assert workspace.call.do("update_cr_attrs", key="2", attributes={name: given})["updated"] == {}
    assert workspace.file.stat().st_mtime_ns == stamp


def test_nothing_to_set_is_no_failure(workspace: Workspace) -> None:
    before = tree(workspace.folder)
    for attributes in ({}, {"assignee": None}):
        assert workspace.call.do("update_cr_attrs", key="2", attributes=attributes)["updated"] == {}
    assert tree(workspace.folder) == before


@pytest.mark.parametrize(
    ("attributes", "part"), cases("npl_mcp/tools/cr")["an_attribute_that_does_not_fit_changes_nothing"]
)
def test_an_attribute_that_does_not_fit_changes_nothing(
    workspace: Workspace, attributes: dict[str, Any], part: str
) -> None:
    code, error = workspace.fail("update_cr_attrs", key="2", attributes=attributes)
    assert code == "INVALID_PARAMETER"
    assert part in error


def test_a_repeated_field_is_changed_everywhere(connect: Connect, settings: Settings, tmp_path: Path) -> None:
    """Readers of the first and of the last occurrence then agree."""
    workspace = Workspace(
        connect, settings, tmp_path / "proj", text=SECOND.replace("type:", "status: Rejected\ntype:")
    )
    assert workspace.call.do("get_cr", key="2")["status"] == "Rejected"
    workspace.call.do("update_cr_status", key="2", status="Approved")
    assert workspace.file.read_bytes().count(b"status: Approved\n") == 2


def numbered(workspace: Workspace, number: int, **fields: str) -> None:
    text = SECOND.replace("TST-002", f"TST-{number:03d}").replace("# Second", f"# Number {number}")
    for name, value in fields.items():
        text = text.replace(f"{name}: ", f"{name}: {value} # was ", 1)
    (workspace.tickets / f"TST-{number:03d}-n.md").write_text(text, encoding="utf-8")


def test_lists_are_short_rows_from_the_highest_number_down(workspace: Workspace) -> None:
    """They are sorted as numbers, not as texts, and come in pages."""
    for number in (10, 1000, 9):
        numbered(workspace, number)
    page = workspace.call.do("list_crs", limit=2, offset=1)
    assert [row["key"] for row in page["items"]] == ["TST-010", "TST-009"]
    assert (page["total"], page["limit"], page["offset"]) == (4, 2, 1)
    assert workspace.call.do("list_crs")["items"][-1] == {
        "key": "TST-002",
        "title": "Second",
        "status": "Proposed",
        "type": "Feature Enhancement",
        "priority": "Medium",
    }


@pytest.mark.parametrize(("filters", "numbers"), cases("npl_mcp/tools/cr")["filters_compare_whole_values"])
def test_filters_compare_whole_values(
    workspace: Workspace, filters: dict[str, Any], numbers: list[int]
) -> None:
    """Values of a field are alternatives, several fields must all match; case does not count."""
    numbered(workspace, 3, status="Implemented")
    numbered(workspace, 4, status="Partially Implemented", type="Bug Fix")
    numbered(workspace, 5, priority="Critical")
    rows = workspace.call.do("list_crs", filters=filters)["items"]
    assert [int(row["key"][4:]) for row in rows] == numbers


@pytest.mark.parametrize(
    ("filters", "parts"),
    [
        ({"status": "open"}, ["'open'", *STATUSES, '["Low", "Medium"]']),
        ({"status": "Proposed,Approved"}, ['["Low", "Medium"]']),
        ({"status": ["Proposed", "done"]}, ["'done'"]),
        ({"type": "Bug"}, ["'bug'", *TYPES]),
        ({"priority": "Urgent"}, ["Critical"]),
        ({"statu": "x"}, ["no field 'statu'", "status"]),
        ({"status": 7}, ["list of strings"]),
        ({"status": []}, ["list of strings"]),
        ({"status": ["Proposed", 7]}, ["list of strings"]),
    ],
)
def test_a_filter_that_cannot_be_used_is_answered_with_those_there_are(
    workspace: Workspace, filters: dict[str, Any], parts: list[str]
) -> None:
    code, error = workspace.fail("list_crs", filters=filters)
    assert code == "INVALID_PARAMETER"
    assert all(part in error for part in parts), error


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [("status", "Cancelled", "cancelled"), ("status", "Proposed\nassignee: Jose\u0301", "jos\u00e9")],
)
def test_values_of_others_are_filters(workspace: Workspace, field: str, value: str, wanted: str) -> None:
    """Letters with accents are found however they are stored."""
    numbered(workspace, 3, **{field: value})
    name = "assignee" if "assignee" in value else field
    assert workspace.call.do("list_crs", filters={name: wanted})["total"] == 1


def test_what_is_deleted_is_gone(workspace: Workspace) -> None:
    notes = workspace.tickets / "TST-002" / "notes.md"
    notes.parent.mkdir()
    notes.write_text("kept", encoding="utf-8")
    gone = workspace.call.do("delete_cr", key="2")
    assert (gone["key"], gone["title"], gone["status"]) == ("TST-002", "Second", "Proposed")
    assert workspace.fail("get_cr", key="2")[0] == "NOT_FOUND"
    assert workspace.fail("delete_cr", key="2")[0] == "NOT_FOUND"
    assert notes.exists()


def test_improvements_are_those_that_are_missing(workspace: Workspace) -> None:
    """A heading counts in any case; the number of suggestions changes no urgency."""
    suggestions = workspace.call.do("suggest_cr_improvements", key="2")
    texts = " ".join(entry["text"] for entry in suggestions["suggestions"])
    assert "acceptance criteria" not in texts
    assert "phaseEpic" in texts
    assert {entry["priority"] for entry in suggestions["suggestions"]} == {"High", "Low"}
    made = workspace.call.do("create_cr", type="Bug Fix", data={"title": "x", "content": "It breaks."})
    suggestions = workspace.call.do("suggest_cr_improvements", key=made["key"])
    ranks = [entry["priority"] for entry in suggestions["suggestions"]]
    assert ranks == ["High"] * 3 + ["Medium"] + ["Low"] * 2
    assert "root cause" in suggestions["suggestions"][2]["text"]


def test_projects_are_listed_and_described(workspace: Workspace) -> None:
    """Each has the number of its change requests; a code may be in lower case."""
    answer = workspace.call.do("list_projects")
    listed = answer["items"]
    assert (answer["total"], answer["offset"], "projects" in answer) == (1, 0, False)
    assert workspace.call.do("list_projects", offset=1)["items"] == []
    assert workspace.fail("list_projects", limit=0)[0] == "INVALID_PARAMETER"
    assert [(row["code"], row["name"], row["crs"]) for row in listed] == [("TST", "Test Project", 1)]
    info = workspace.call.do("get_project_info", key="tst")
    assert info["ticketsPath"] == "docs/CRs"
    assert info["path"] == str(workspace.folder)
    for key, code in (("NOPE", "NOT_FOUND"), ("", "MISSING_REQUIRED"), ("../x", "INVALID_PARAMETER")):
        assert workspace.fail("get_project_info", key=key)[0] == code


def test_there_may_be_no_project(settings: Settings) -> None:
    """The list is empty, and a message says how to make a project."""
    listed, answer = calls(settings, [("list_projects", {}), ("list_crs", {})])
    assert (listed["data"]["items"], listed["data"]["total"]) == ([], 0)
    assert ".mdt-config.toml" in answer["error"]


@pytest.mark.parametrize(
    ("old", "arguments", "new", "more"), cases("npl_mcp/tools/cr")["names_from_before_are_accepted"]
)
def test_names_from_before_are_accepted(
    workspace: Workspace, old: str, arguments: dict[str, str], new: str, more: dict[str, str]
) -> None:
    given = {"project": "TST", "key": "TST-002", **arguments}
    assert workspace.call(old, **given) == workspace.call(new, **given, **more)


def test_sections_are_updated_by_the_name_from_before(workspace: Workspace) -> None:
    given = {"project": "TST", "key": "TST-002", "section": "Rationale"}
    workspace.call.do("update_cr_section", **given, operation="append", content="tail")
    assert workspace.section("Rationale").endswith("dup\n\ntail")


def test_reading_changes_no_file(workspace: Workspace) -> None:
    """A refused call changes none either; an old configuration is read as it is."""
    config = workspace.folder / ".mdt-config.toml"
    config.write_text('[project]\nname = "T"\ncode = "TST"\npath = "docs/CRs"\n', encoding="utf-8")
    before = tree(workspace.folder)
    requests: list[tuple[str, dict[str, Any]]] = [
        ("list_projects", {}),
        ("get_project_info", {"key": "TST"}),
        ("list_crs", {"filters": {"status": "Proposed"}}),
        *(("get_cr", {"key": "2", "mode": mode}) for mode in ("full", "attributes", "metadata")),
        ("manage_cr_sections", {"key": "2", "operation": "list"}),
        ("manage_cr_sections", {"key": "2", "operation": "get", "section": "Rationale"}),
        ("suggest_cr_improvements", {"key": "2"}),
    ]
    assert all(answer["success"] for answer in calls(workspace.settings, requests * 2))
    assert tree(workspace.folder) == before
    calls(
        workspace.settings,
        [("manage_cr_sections", {**requests[-2][1], "operation": "append", "content": "x"})],
    )
    after = tree(workspace.folder)
    assert {name for name in after if after[name] != before.get(name)} == {f"docs/CRs/{NAME}"}
    assert after.keys() == before.keys()
