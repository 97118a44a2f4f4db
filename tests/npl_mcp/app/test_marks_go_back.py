"""Selectors in Markdown answers work as printed, for all headings and file names."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.tools.artifact import artifact_create
from npl_mcp.tools.contract.responses import as_dict
from tests.conftest import case_text, cases
from tests.folders import fill
from tests.npl_mcp.documents.change_requests import make_project
from tests.tools import npl_load_tailored, npl_section_index

NASTY = (
    case_text("texts/nasty.md").replace("<no-break space>", "\u00a0").replace("<zero-width space>", "\u200b")
)

FILES = {
    "nasty.md": NASTY,
    "yard/-- > oil.md": "# Oil\n\n## Same\n\nOil apart.\n",
    "yard/--> oil.md": "# Oil\n\n## Same\n\nOil in a mark.\n",
    'yard/"oil" [x].md': "# Oil\n\n## Same\n\nQuoted oil.\n",
    "yard/oil .5 cut.md": "# Oil\n\n## Same\n\nOil that looks like a score.\n",
    "yard/油.md": "# 油\n\n## Same\n\nOil 油.\n",
    "yard/oil.mdx": "# Oil\n\n## Same\n\nOil in another suffix.\n",
    "yard/oil.md": "# Oil\n\n## Same\n\nOil as such.\n",
    "oil.md": "# Oil\n\n## Same\n\nOil above.\n",
    "oil.md.md": "# Oil\n\n## Same\n\nOil twice.\n",
    "yard/long.md": "# Long\n\n## Oil table\n\n"
    + "".join(f"Paragraph {n} on the crane.\n\n" for n in range(90)),
}

ASKED: Mapping[str, Mapping[str, str]] = cases("npl_mcp/app/marks_go_back")["asked"]

QUESTIONS: tuple[Mapping[str, Any], ...] = cases("npl_mcp/app/marks_go_back")["questions"]

MARK = re.compile(r"<!-- (?P<selector>.+?) (?:\.\d\d|1)(?: \(.*\))?(?: cut)?(?: #[0-9a-f]{6})? -->\n")
NOTE = re.compile(r"^<!--(?: more:)?\n(?P<lines>(?:.*(?<!-->)\n)*.*?)(?: #[0-9a-f]{6})? -->\n", re.MULTILINE)
HIT = "<!-- ranking "
FILE_MARK = re.compile(r"<!-- .* -->\n\n")


@pytest.fixture
def places(settings: Settings, docs: Path, tmp_path: Path) -> Settings:
    """A root of files with hard names and headings, an artifact of each kind of text, a change request."""
    fill(docs, FILES)
    make_project(tmp_path / "work")
    with closing(App(settings)) as app:
        for name in ("plan", "oil .5 cut"):
            artifact_create(app, name, "document", f"{name}.md", NASTY)
    return settings


def load(app: App, **request: Any) -> Any:
    return npl_load_tailored(app, **request)


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
    data = as_dict(load(app, selectors=[selector], **where))
    rows = [(row["title"], row["start_line"], row["end_line"]) for row in data["sections"]]
    lead = FILE_MARK.match(data["content"]) if any("file" in row for row in data["sections"]) else None
    return rows, data["content"][lead.end() if lead else 0 :]


@pytest.mark.thorough
@pytest.mark.parametrize("case", ASKED)
def test_what_marks_say_goes_back(places: Settings, case: str) -> None:
    """A new server that is given no file selects the same text by the printed selector."""
    where = ASKED[case]
    with closing(App(places)) as first:
        pairs = [
            pair
            for question in QUESTIONS
            for pair in marked(load(first, format="markdown", **question, **where))
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
    with closing(App(places)) as second:
        for selector, text in dict(pairs).items():
            again = content(second, selector)
            assert again == asked[selector], selector
            if text is not None:
                assert again[1].strip().endswith(text.strip()), selector
