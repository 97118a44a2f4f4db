"""Directive: templates in bundles, files below ``directive/``, and a new folder of them."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from npl_mcp.projects.directive import FALLBACK_PRIMER, SCAFFOLD, scaffold
from tests.conftest import Call, by_name, calls, cases
from tests.folders import fill

PROCEDURE = "# Work\n\n**Do not write code** before approval.\n"
FILES = {
    "directive/reference/agent_context.md": "CTX",
    "directive/reference/agent_operating_procedure.md": PROCEDURE,
    "directive/reference/templates/impact_template.md": "IMP",
    "directive/reference/templates/spec_template.md": "SPEC",
    "directive/reference/templates/tdr_template.md": "TDR",
}
KINDS = {"spec": "SPEC", "impact": "IMP", "tdr": "TDR"}
TITLES = cases("npl_mcp/tools/directive_tables")["titles"]
# Names of the tools at the time of their contract, later, and as methods of a server of their own.
NAMES = """
directive_files_list      directive/files.list      directive/files.list       directive.files.list
directive_file_get        directive/file.get        directive/files.get        directive.file.get
directive_spec_template   directive/spec.template   directive/templates.spec   spec.template
directive_impact_template directive/impact.template directive/templates.impact impact.template
directive_tdr_template    directive/tdr.template    directive/templates.tdr    tdr.template
"""
ROWS = [line.split() for line in NAMES.strip().splitlines()]


@pytest.fixture
def work(settings: Settings) -> Path:
    """Make a project with a ``directive/`` folder, and a hidden folder next to it."""
    fill(settings.cwd, {**FILES, "directive-private/secret.txt": "LEAK"})
    return settings.cwd


TAKES: dict[str, dict[str, Any]] = {
    "directive_files_list": {"limit": {"type": "integer"}, "offset": {"type": "integer"}},
    "directive_file_get": {"path": {"type": "string"}},
}


def test_the_five_tools_are_listed_with_title_description_and_schema(settings: Settings) -> None:
    """All only read; the list takes a page, one needs a path, three take nothing."""
    tools = {name: tool for name, tool in by_name(settings).items() if name.startswith("directive_")}
    assert {name: tool["title"] for name, tool in tools.items()} == TITLES
    for name, tool in tools.items():
        takes = TAKES.get(name, {})
        assert tool["description"].endswith(".")
        assert tool["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
        assert tool["inputSchema"]["properties"] == takes
        assert tool["inputSchema"].get("required", []) == [part for part in takes if part == "path"]
        assert tool["inputSchema"].get("additionalProperties", True) is ("path" not in takes)


def test_all_files_are_listed(call: Call, work: Path) -> None:
    """Paths are sorted and begin with the folder's name; a page of them can be requested."""
    files = sorted(FILES)
    page = {"total": len(files), "limit": 1_000, "offset": 0}
    assert call("directive_files_list")["data"] == {"items": files, **page}
    part = {"total": len(files), "limit": 2, "offset": 1}
    assert call("directive_files_list", limit=2, offset=1)["data"] == {"items": files[1:3], **part}


def test_hidden_files_and_links_that_leave_are_not_listed(call: Call, work: Path) -> None:
    """A link inside is listed; linked folders are not walked, so the walk ends."""
    folder = work / "directive"
    fill(folder, {".git/config": "x", "specs/20260101-a/picture.bin": "\0"})
    (folder / "outside.txt").symlink_to(work / "directive-private" / "secret.txt")
    (folder / "dangling.md").symlink_to(folder / "nowhere.md")
    (folder / "context.md").symlink_to("reference/agent_context.md")
    (folder / "again").symlink_to(folder)
    expected = {*FILES, "directive/specs/20260101-a/picture.bin", "directive/context.md"}
    assert call("directive_files_list")["data"]["items"] == sorted(expected)


@pytest.mark.parametrize("path", cases("npl_mcp/tools/directive_tables")["a_file_is_read"])
def test_a_file_is_read(call: Call, work: Path, path: str) -> None:
    """The folder's name may be left out of the path, which comes back as it was given."""
    assert call("directive_file_get", path=path)["data"] == {"path": path, "content": "CTX"}


def test_text_comes_back_byte_for_byte(call: Call, work: Path) -> None:
    """Line ends, a byte order mark, blank lines and a missing last line end stay."""
    text = "\ufeff# A\r\n\r\nb\rc\n\n\n堆  \t"
    fill(work, {"directive/specs/x.md": text})
    assert call("directive_file_get", path="specs/x.md")["data"]["content"] == text


@pytest.mark.parametrize(("path", "code"), cases("npl_mcp/tools/directive"))
def test_nothing_else_is_read(call: Call, work: Path, path: str, code: str) -> None:
    """No path and no link leads out of the folder; the message repeats only the given path."""
    folder, private = work / "directive", work / "directive-private"
    (folder / "link.txt").symlink_to(private / "secret.txt")
    (folder / "linked").symlink_to(private)
    (folder / "dangling").symlink_to(folder / "nowhere")
    (folder / "latin.md").write_bytes(b"caf\xe9")
    os.mkfifo(folder / "pipe")
    given = path.format(private=private)
    answer = call("directive_file_get", path=given)
    assert answer["error_code"] == code
    assert "LEAK" not in answer["error"]
    assert ".." not in given or "directive_files_list" in answer["error"]
    assert str(work) not in answer["error"].replace(given, "")


def test_a_missing_file_is_named_with_its_neighbours(call: Call, work: Path) -> None:
    """The message is the one clients know, with the existing names."""
    assert call("directive_file_get", path="nope.md")["error"].startswith(
        "File not found under directive/: nope.md"
    )
    error = call("directive_file_get", path="reference/agent_contxt.md")["error"]
    assert "near: directive/reference/agent_context.md" in error


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundle(call: Call, work: Path, kind: str) -> None:
    """It has primer, procedure, context, template and the list of the three, their texts unchanged."""
    paths = [
        "directive/reference/agent_operating_procedure.md",
        "directive/reference/agent_context.md",
        f"directive/reference/templates/{kind}_template.md",
    ]
    assert call(f"directive_{kind}_template")["data"] == {
        "primer": "Do not write code before approval.",
        "agentOperatingProcedure": {"path": paths[0], "content": PROCEDURE},
        "agentContext": {"path": paths[1], "content": "CTX"},
        "template": {"path": paths[2], "content": KINDS[kind]},
        "resources": [{"path": path} for path in paths],
    }


@pytest.mark.parametrize(
    ("procedure", "primer"),
    [
        ("# A\n\n- **Do not start coding** yet.\n", "- Do not start coding yet."),
        ("a\n  Do not write code, B.  \nDo not start coding, C.\n", "Do not write code, B."),
        ("Code as you like.\n", FALLBACK_PRIMER),
        ("", FALLBACK_PRIMER),
    ],
)
def test_the_primer(call: Call, work: Path, procedure: str, primer: str) -> None:
    """It is the first line that says when code may be written, or a default sentence."""
    fill(work, {"directive/reference/agent_operating_procedure.md": procedure})
    assert call("directive_spec_template")["data"]["primer"] == primer


def test_a_missing_template_names_those_that_are_there(call: Call, work: Path) -> None:
    """The error has the missing path, and what adds it."""
    (work / "directive/reference/templates/spec_template.md").unlink()
    fill(work, {"directive/reference/templates/mine.md": "M"})
    answer = call("directive_spec_template")
    assert answer["error_code"] == "NOT_FOUND"
    assert answer["error"].startswith("Missing directive/reference/templates/spec_template.md")
    assert "npl-mcp directive init" in answer["error"]
    assert answer["error"].endswith("existing templates: impact_template.md, mine.md, tdr_template.md")


def test_a_missing_part_is_named(call: Call, work: Path) -> None:
    (work / "directive/reference/agent_context.md").unlink()
    answer = call("directive_spec_template")
    assert answer["error_code"] == "NOT_FOUND"
    assert answer["error"].startswith("Missing directive/reference/agent_context.md")


@pytest.mark.parametrize("tool", TITLES)
def test_without_the_folder_each_tool_says_how_to_make_it(call: Call, tool: str) -> None:
    """The message is the one clients know, with this program's command."""
    answer = call(tool, **({"path": "a.md"} if tool == "directive_file_get" else {}))
    assert answer["error_code"] == "NOT_FOUND"
    assert answer["error"].startswith("directive/ directory not found")
    assert "npl-mcp directive init" in answer["error"]


def test_the_first_root_with_the_folder_is_taken(settings: Settings, docs: Path, call: Call) -> None:
    """Given roots come before the working directory."""
    fill(settings.cwd, FILES)
    fill(docs, {"directive/mine.md": "M"})
    assert call("directive_files_list")["data"]["items"] == ["directive/mine.md"]


def test_a_folder_that_is_a_link_out_is_refused(settings: Settings, call: Call, tmp_path: Path) -> None:
    """A link to a folder below a root is followed."""
    fill(tmp_path / "elsewhere", FILES)
    (settings.cwd / "directive").symlink_to(tmp_path / "elsewhere" / "directive")
    answer = call("directive_files_list")
    assert answer["error_code"] == "PERMISSION_DENIED"
    assert str(tmp_path) not in answer["error"]
    inside = replace(settings, roots=(tmp_path / "elsewhere",))
    assert calls(inside, [("directive_files_list", {})])[0]["data"]["items"] == sorted(FILES)


def test_the_older_layout_is_read(call: Call, settings: Settings) -> None:
    """Templates and procedure lie directly in the folder."""
    fill(settings.cwd, {path.replace("reference/", ""): text for path, text in FILES.items()})
    data = call("directive_tdr_template")["data"]
    assert data["template"] == {"path": "directive/templates/tdr_template.md", "content": "TDR"}
    assert data["agentContext"]["path"] == "directive/agent_context.md"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_former_name_gives_the_same_answer(settings: Settings, work: Path, row: list[str]) -> None:
    """They are earlier tool names, and the methods of the former server."""
    arguments = {"path": "reference/agent_context.md"} if row[0] == "directive_file_get" else {}
    answers = calls(settings, [(name, arguments) for name in row])
    assert answers[0]["success"]
    assert answers == [answers[0]] * len(answers)


def test_a_new_folder_works_at_once(settings: Settings, call: Call) -> None:
    """It has all three bundles, the three papers' headings, and the rule in the primer."""
    scaffold(settings.cwd)
    assert call("directive_files_list")["data"]["items"] == sorted(FILES)
    for kind, expected in {
        "spec": "Problem, Goal, Success criteria, User story, Flow and states, UX links, Requirements, "
        "Acceptance criteria, Non-goals",
        "impact": "Modules touched, Contracts, Risks, Observability",
        "tdr": "Summary, Decision drivers and non-goals, Current state, Proposed design, Alternatives "
        "considered, Data model and contract changes, Security, privacy, compliance, Observability and "
        "operations, Rollout and migration, Test strategy, Risks and open questions, Milestones",
    }.items():
        data = call(f"directive_{kind}_template")["data"]
        assert data["primer"].startswith("Do not write code before the TDR is approved.")
        headings = re.findall(r"^## (?:\d+\. )?(.*)$", data["template"]["content"], re.MULTILINE)
        assert ", ".join(headings) == expected


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Existing files, links and the older layout stay; missing files are added."""
    (tmp_path / "elsewhere.md").write_text("elsewhere")
    fill(
        tmp_path, {"directive/reference/agent_context.md": "MINE", "directive/templates/tdr_template.md": "T"}
    )
    (tmp_path / "directive/reference/templates").mkdir()
    (tmp_path / "directive/reference/templates/spec_template.md").symlink_to(tmp_path / "nowhere.md")
    written, kept = scaffold(tmp_path)
    assert kept == [
        "directive/reference/agent_context.md",
        "directive/reference/templates/spec_template.md",
        "directive/templates/tdr_template.md",
    ]
    assert written == [
        "directive/reference/agent_operating_procedure.md",
        "directive/reference/templates/impact_template.md",
    ]
    assert (tmp_path / "directive/reference/agent_context.md").read_text() == "MINE"
    assert not (tmp_path / "nowhere.md").exists()
    assert not (tmp_path / "directive/reference/templates/tdr_template.md").exists()
    for path in written:
        assert (tmp_path / path).read_bytes() == (SCAFFOLD.parent / path).read_bytes()


def test_the_command(settings: Settings) -> None:
    """It prints new and existing files, and refuses a path that is not a folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "npl_mcp", "directive", "init", *arguments]
        env = {**os.environ, "HOME": str(settings.home)}
        return subprocess.run(command, cwd=settings.cwd, env=env, capture_output=True, text=True, timeout=60)

    first, second, third = run(), run("."), run("nowhere")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines() == [
        *(f"written: {path}" for path in sorted(FILES)),
        "5 files written, 0 kept",
    ]
    assert second.stdout.endswith("0 files written, 5 kept\n")
    assert third.returncode == 2
    assert third.stderr == "npl-mcp: 'nowhere' is not a folder; give the project's folder\n"


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "directive").write_text("mine")
    with pytest.raises(Exception, match=r"'directive/reference/agent_context.md' cannot be written"):
        scaffold(tmp_path)
    assert (tmp_path / "directive").read_text() == "mine"


def test_a_folder_with_too_many_files(settings: Settings, work: Path) -> None:
    """The list is refused with its limit; single files are still read or reported missing."""
    told = replace(settings, limits=replace(settings.limits, max_files=4))
    requests: list[tuple[str, dict[str, Any]]] = [
        ("directive_files_list", {}),
        ("directive_file_get", {"path": "nope.md"}),
        ("directive_tdr_template", {}),
    ]
    whole, missing, bundle = calls(told, requests)
    assert (whole["error_code"], "more than 4 files" in whole["error"]) == ("OPERATION_FAILED", True)
    assert (missing["error_code"], bundle["success"]) == ("NOT_FOUND", True)
