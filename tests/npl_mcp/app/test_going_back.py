"""A selector of an answer selects the same section again, without a file, on a new server."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_index.errors import SectionNotFoundError
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.tools.artifact import artifact_add_revision, artifact_create
from npl_mcp.tools.contract.responses import as_dict
from tests.conftest import calls, case_text, cases
from tests.folders import fill
from tests.npl_mcp.documents.change_requests import make_project
from tests.tools import npl_load_tailored, npl_section_index

BUILD = case_text("texts/build.md")

PLAN = case_text("npl_mcp/app/going_back/plan.md")

HEADER = "npl-instructions:\n   name: {}\n   version: 1.0.0\n---\n\n"


@pytest.fixture
def places(settings: Settings, docs: Path, tmp_path: Path) -> Settings:
    """Two roots with files of equal names, a working directory, artifacts and change requests."""
    second = tmp_path / "other" / "docs"
    parts = "\n* * *\n\n".join(
        f"{HEADER.format(name)}# {name}\n\n## Build\n\nBuild {name}.\n" for name in ("one", "two")
    )
    files = {"guide/build.md": BUILD, "deep/guide/build.md": BUILD, "parts.md": parts}
    fill(docs, files | cases("npl_mcp/app/going_back")["files"])
    other = "# Other guide\n\n## Building\n\nBuild it anew.\n"
    fill(second, {"guide/build.md": BUILD.replace("Build", "Rebuild"), "guide.md": other})
    fill(tmp_path / "work", {"notes/today.md": BUILD})
    make_project(tmp_path / "work")
    own = replace(settings, roots=(docs, second))
    with closing(App(own)) as app:
        for name in ("plan", "sketch"):
            artifact_create(app, name, "document", f"{name}.md", PLAN.replace("Plan", name))
        picture = base64.b64encode(b"\x89PNG\r\n").decode()
        artifact_create(app, "picture", "image", "p.png", file_content_base64=picture)
        artifact_add_revision(app, 1, "plan.md", PLAN.replace("slip", "slide"))
    return own


ASKED: Mapping[str, Mapping[str, str]] = cases("npl_mcp/app/going_back")["asked"]

QUESTIONS: tuple[Mapping[str, Any], ...] = cases("npl_mcp/app/going_back")["questions"]


def selectors(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name == "selector":
                yield part
            elif name == "request_more":
                yield from part
            else:
                yield from selectors(part)
    elif isinstance(value, list):
        for part in value:
            yield from selectors(part)


def load(app: App, **request: Any) -> dict[str, Any]:
    """Return what a tailored load answers."""
    data: dict[str, Any] = as_dict(npl_load_tailored(app, **request))
    return data


def selected(app: App, selector: str, **where: str) -> tuple[list[tuple[str, int, int]], str]:
    """Return the selected sections and their text without the lines that name files."""
    answer = load(app, selectors=[selector], **where)
    rows = [(row["title"], row["start_line"], row["end_line"]) for row in answer["sections"]]
    lines = [line for line in answer["content"].split("\n") if line and not line.startswith("<!--")]
    return rows, "\n".join(lines)


@pytest.mark.thorough
@pytest.mark.parametrize("case", ASKED)
def test_each_selector_of_each_answer_goes_back(places: Settings, case: str) -> None:
    """It selects the same text with the file, and without it on a new server."""
    where = ASKED[case]
    with closing(App(places)) as first:
        answers = [load(first, **question, **where) for question in QUESTIONS]
        answers.append(as_dict(npl_section_index(first, **where)))
        expected = {
            selector: selected(first, selector, **where) for selector in dict.fromkeys(selectors(answers))
        }
    assert len(expected) > 1
    with closing(App(places)) as second:
        for selector, sections in expected.items():
            assert selected(second, selector) == sections, selector


@pytest.mark.parametrize("case", [case for case in ASKED if case != "a list"])
def test_the_file_an_answer_names_goes_back(places: Settings, case: str) -> None:
    """The file of a row leads to that file alone."""
    with closing(App(places)) as app:
        answer = load(app, context="build the example", **ASKED[case])
        for row in answer["sections"]:
            sections, _ = selected(app, row["selector"], file=row.get("file", answer["file"]))
            assert sections == [(row["title"], row["start_line"], row["end_line"])]


@pytest.mark.parametrize(
    ("selector", "text"), cases("npl_mcp/app/going_back")["other_names_of_a_document_lead_to_it"]
)
def test_other_names_of_a_document_lead_to_it(places: Settings, selector: str, text: str) -> None:
    """Its path, the end of its path, an item's name and the usual short forms lead to it."""
    with closing(App(places)) as app:
        content = load(app, selectors=[selector])["content"]
        assert text in content
        assert "<!--" not in content


def test_selectors_of_several_documents_and_of_none_go_together(places: Settings) -> None:
    """A selector without a document is looked for in all given roots as well."""
    with closing(App(places)) as app:
        both = load(app, selectors=["artifact:1 > ## Risks", "## Sowing"])["sections"]
        assert [row["title"] for row in both] == ["Risks", "Sowing"]
        assert [row["file"] for row in both] == ["artifact:1@1", "plants/beans.md"]


@pytest.mark.parametrize("form", ["json", "markdown"])
@pytest.mark.parametrize("case", ["nothing", "a pattern", "a list", "all artifacts"])
def test_an_agent_goes_on_with_what_an_answer_named(places: Settings, case: str, form: str) -> None:
    """It sends the remaining selectors and those it has, without a file, to a server without a past."""
    asked: dict[str, Any] = {"selectors": ["// *"], **ASKED[case]}
    had: list[str] = []
    lines: list[str] = []
    for _ in range(40):
        with closing(App(places)) as app:
            answer = npl_load_tailored(app, exclude=had, token_budget=600, format=form, **asked).value
        assert answer.not_found is None
        lines += [
            f"{row.file}:{line}" for row in answer.sections for line in range(row.start_line, row.end_line)
        ]
        had += [row.selector for row in answer.sections]
        if not answer.request_more:
            break
        asked = {"selectors": list(answer.request_more)}
    assert len(had) > 1
    assert len({line.rpartition(":")[0] for line in lines}) > 1
    assert len(lines) == len(set(lines))


def test_what_is_had_of_other_documents_is_no_error(places: Settings) -> None:
    """Only a selector without any section is an error."""
    with closing(App(places)) as app:
        for had in (["guide/build > ## App Mode"], ["artifact:1 > ## Risks", "TST-002"], ["## Building"]):
            answer = load(app, selectors=["plants/beans > ## Sowing"], exclude=had)
            assert [row["title"] for row in answer["sections"]] == ["Sowing"]
        with pytest.raises(SectionNotFoundError, match="exclude: "):
            load(app, selectors=["plants/beans > ## Sowing"], exclude=["nowhere > ## Building"])


def test_sets_of_sources_are_read_together(places: Settings) -> None:
    """All Markdown artifacts, and lists with commas or as JSON, are read as one set."""
    names = ["artifact:2", "cr:TST-002", "guide.md"]
    files = ["artifact:*", ", ".join(names), ",".join(names), names]
    answers = calls(places, [("npl_section_index", {"file": file}) for file in files])
    shown = [[node["name"] for node in answer["data"]["sections"]] for answer in answers]
    assert shown[0] == ["artifact:1@1", "artifact:2@0"]
    assert shown[1] == shown[2] == shown[3] == ["artifact:2@0", "cr:TST-002", "guide.md"]


@pytest.mark.parametrize(("file", "problem"), cases("npl_mcp/app/going_back")["absent"])
def test_a_set_of_what_is_not_there_gets_a_clear_error(places: Settings, file: str, problem: str) -> None:
    """The error names the missing part of a list; braces must match something."""
    (answer,) = calls(places, [("npl_section_index", {"file": file})])
    assert not answer["success"]
    assert problem in answer["error"]


NASTY = (
    case_text("texts/nasty.md").replace("<no-break space>", "\u00a0").replace("<zero-width space>", "\u200b")
)

LONG = "# Long\n\n## Oil table\n\n" + "".join(f"Paragraph {n} on the crane.\n\n" for n in range(90))
FILES = {"nasty.md": NASTY, "yard/long.md": LONG, **cases("npl_mcp/app/marks_go_back")["files"]}

MARKED: Mapping[str, Mapping[str, str]] = cases("npl_mcp/app/marks_go_back")["asked"]

ASKED_OF_MARKS: tuple[Mapping[str, Any], ...] = cases("npl_mcp/app/marks_go_back")["questions"]

MARK = re.compile(r"<!-- (?P<selector>.+?) (?:\.\d\d|1)(?: \(.*\))?(?: cut)?(?: #[0-9a-f]{6})? -->\n")
NOTE = re.compile(r"^<!--(?: more:)?\n(?P<lines>(?:.*(?<!-->)\n)*.*?)(?: #[0-9a-f]{6})? -->\n", re.MULTILINE)
HIT = "<!-- ranking "
FILE_MARK = re.compile(r"<!-- .* -->\n\n")


@pytest.fixture
def nasty(settings: Settings, docs: Path, tmp_path: Path) -> Settings:
    """A root of files with hard names and headings, an artifact of each kind of text, a change request."""
    fill(docs, FILES)
    make_project(tmp_path / "work")
    with closing(App(settings)) as app:
        for name in ("plan", "oil .5 cut"):
            artifact_create(app, name, "document", f"{name}.md", NASTY)
    return settings


def pieces(answer: str) -> Iterator[tuple[str, str | None]]:
    """Return each selector of an answer in Markdown with the text below it, if it has any."""
    tags = set(re.findall(r"(?:^| )#([0-9a-f]{6}) -->$", answer, re.MULTILINE))
    tail = f" #{tags.pop()} -->\n" if tags else " -->\n"
    if note := NOTE.search(answer):
        lines = (line for line in note["lines"].splitlines() if line.startswith('"'))
        yield from ((json.JSONDecoder().raw_decode(line)[0], None) for line in lines)
        answer = answer[: note.start()] + answer[note.end() :]
    marks = [mark for mark in re.finditer(r"^<!-- .*\n", answer, re.MULTILINE) if mark[0].endswith(tail)]
    for number, mark in enumerate(marks):
        end = marks[number + 1].start() if number + 1 < len(marks) else len(answer)
        if mark[0].startswith(HIT):
            continue
        parts = MARK.fullmatch(mark[0])
        assert parts, mark[0]
        yield parts["selector"], answer[mark.end() : end]


def marked(answer: Any) -> Iterator[tuple[str, str | None]]:
    """Return each selector as :func:`pieces` does, and those of the ranking."""
    yield from pieces(answer.text)
    for hit in answer.value.ranking or ():
        assert f" {json.dumps(hit.selector, ensure_ascii=False)} " in answer.text
        yield hit.selector, None


def outlined(outline: str) -> Iterator[str]:
    """Return the selector of each heading of an outline, by the rule of its first line."""
    first, *lines = outline.splitlines()
    root = re.search(r"selector (.+) > ## A( > ### B)?$", first)
    assert root
    above: list[tuple[int, str]] = []
    for line in lines:
        match = re.fullmatch(r"\d+-\d+ \d+ (?:[cted]*(?:\+\d+)? )?((#+ |\").*)", line)
        if not match:
            assert line.startswith(("warning", "+")), line
            continue
        if not root[2]:
            above = []
        level = 0 if match[2] == '"' else len(match[2].strip())
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, match[1]))
        yield " > ".join([root[1], *(step for _, step in above)])


def content(app: App, selector: str, **where: str) -> tuple[list[tuple[str, int, int]], str]:
    data = as_dict(npl_load_tailored(app, selectors=[selector], **where))
    rows = [(row["title"], row["start_line"], row["end_line"]) for row in data["sections"]]
    lead = FILE_MARK.match(data["content"]) if any("file" in row for row in data["sections"]) else None
    return rows, data["content"][lead.end() if lead else 0 :]


@pytest.mark.thorough
@pytest.mark.parametrize("case", MARKED)
def test_what_marks_say_goes_back(nasty: Settings, case: str) -> None:
    """A new server that is given no file selects the same text by the printed selector."""
    where = MARKED[case]
    with closing(App(nasty)) as first:
        pairs = [
            pair
            for question in ASKED_OF_MARKS
            for pair in marked(npl_load_tailored(first, format="markdown", **question, **where))
        ]
        if where:
            files = as_dict(npl_section_index(first, **where))["sections"]
            names = [node["name"] for node in files] if files[0]["level"] == 0 else [None]
            for name in names:
                file = {"file": name} if name else where
                pairs += [
                    (line, None)
                    for line in outlined(npl_section_index(first, format="markdown", **file).text)
                ]
        asked = {line: content(first, line, **where) for line, _ in pairs}
    assert len(asked) > 1
    with closing(App(nasty)) as second:
        for selector, text in dict(pairs).items():
            again = content(second, selector)
            assert again == asked[selector], selector
            if text is not None:
                assert again[1].strip().endswith(text.strip()), selector
