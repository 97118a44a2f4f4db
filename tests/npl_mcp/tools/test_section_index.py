"""The section index in its two forms, within budgets, as an MCP client sees it."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_index import estimator
from npl_mcp.config.settings import Settings
from tests.conftest import GUIDE, Call, Connect, case_text

COUNTER = estimator("o200k_base")
LINE = re.compile(r'(?:(\d+)-(\d+) )?(\d+) (?:([cted]*)(?:\+(\d+))? )?((#+ |").*)')
TRICKY = case_text("texts/tricky-headings.md")


def text(call: Call, **arguments: Any) -> str:
    return call.text("npl_section_index", **{"format": "markdown", **arguments})


def cost(answer: str) -> int:
    return COUNTER.upper_bound(COUNTER.count(answer))


def paths(outline: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Make the selector of each line by the rule of the first one."""
    first, *lines = outline.splitlines()
    rule = re.search(r"selector (.+) > ## A( > ### B)?$", first)
    assert rule
    above: list[tuple[int, str]] = []
    for line in lines:
        match = LINE.fullmatch(line)
        assert match, line
        if not rule[2]:
            above = []
        level = 0 if match[7] == '"' else len(match[7].strip())
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, match[6]))
        yield " > ".join([rule[1], *(step for _, step in above)]), match


def flat(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [below for node in nodes for below in (node, *flat(node["children"]))]


def test_an_outline_has_a_line_for_each_heading(call: Call) -> None:
    """It has line range, tokens, letters and heading, which the first line explains."""
    first, *lines = text(call, file="guide.md").splitlines()
    assert first == "lines tokens c code t table e example; selector guide > ## A > ### B"
    assert [re.sub(r" \d+", "", line, count=1) for line in lines] == [
        "4-43 cte # Garden Guide",
        "8-19 ce ## Watering",
        "12-19 ce ### Drip lines",
        "20-32 t ## Pruning",
        "29-32 ### See Also",
        "33-40 ## Compost",
        "37-40 ### See Also",
        "41-43 ## 堆肥と水やり",
    ]


FLAT = "Words before.\n\n# Title\n\ntext\n\n## One\n\ntext\n\n## Two\n\n```\ncode\n```\n"
UNTITLED = "# One\n\n## Part\n\ntext\n\n# Two\n\ntext\n"


@pytest.mark.parametrize(
    "document",
    [GUIDE, TRICKY, FLAT, UNTITLED, "## Alone\n"],
    ids=["guide", "tricky", "flat", "untitled", "one"],
)
def test_the_rule_makes_the_selector_of_every_line(document: str, docs: Path, call: Call) -> None:
    """It selects that section and no other, for any heading."""
    (docs / "guide.md").write_text(document, encoding="utf-8")
    selectors = list(paths(text(call, file="guide.md")))
    assert len(selectors) == len(re.findall("^#+ ", document, re.MULTILINE)) + document.count("npl-ins")
    for selector, line in selectors:
        (row,) = call("npl_load_tailored", selectors=[selector], file="guide.md")["data"]["sections"]
        assert (row["start_line"], row["end_line"]) == (int(line[1]), int(line[2]) + 1)


def test_an_outline_costs_little(call: Call, docs: Path) -> None:
    """A section costs at most 25 tokens, and ten in addition to its heading."""
    body = "Some words that say what has to be said about it, and a few more of them.\n\n" * 3
    (docs / "manual.md").write_text(
        "# Manual\n\n" + f"## Settings of the proxy\n\n{body}" * 40, encoding="utf-8"
    )
    outline = text(call, file="manual.md")
    headings = COUNTER.count("## Settings of the proxy\n") * 41
    assert cost(outline) < 25 * 41
    assert COUNTER.count(outline) < headings + 10 * 41
    assert cost(outline) < 0.35 * COUNTER.count((docs / "manual.md").read_text())


def test_the_rule_is_short_where_nothing_is_nested(call: Call, docs: Path) -> None:
    """Small files take ten tokens a section in addition to their headings, too."""
    (docs / "small.md").write_text(FLAT, encoding="utf-8")
    outline = text(call, file="small.md")
    assert outline.splitlines()[0] == "lines tokens c code; selector small > ## A"
    assert COUNTER.count(outline) <= COUNTER.count("# Title\n## One\n## Two\n") + 10 * 3
    filtered = text(call, file="small.md", filter={"has_code": True})
    assert filtered.splitlines()[0] == "lines tokens c code; selector small > ## A"


def test_a_folder_costs_little(call: Call, docs: Path) -> None:
    """Each file has a line, and their common path is said once; file=path and selectors work with it."""
    (docs / "handbook").mkdir()
    for number in range(24):
        (docs / "handbook" / f"chapter-{number}.md").write_text(f"# Chapter {number}\n\n## Body\n\ntext\n")
    first, *lines = text(call, file="handbook").splitlines()
    assert cost("\n".join([first, *lines, ""])) < 400
    assert len(lines) == 24
    assert re.fullmatch(r"\d+ \+2 1\.md", lines[1])
    shared = re.search(r"path is (\S+) \+ what is written; file=path shows headings", first)
    assert shared
    assert shared[1] == "handbook/chapter-"
    assert "# Chapter 1\n" in text(call, file=shared[1] + lines[1].split()[-1])


def test_names_of_files_cannot_pose_as_marks(call: Call, docs: Path) -> None:
    """A name that is not a plain path is in quotes, on one line."""
    for name in ("+3 x.md", "12-30 4 c ## x.md", "c .md"):
        (docs / "plants" / name).write_text("# T\n")
    _, *lines = text(call, file="plants").splitlines()
    assert sorted(re.sub(r"^\d+ \+\d+ ", "", line) for line in lines) == [
        '"plants/+3 x.md"',
        '"plants/12-30 4 c ## x.md"',
        '"plants/c .md"',
        "plants/beans.md",
        "plants/roses.md",
    ]


@pytest.mark.parametrize("format", ["json", "markdown"])
@pytest.mark.parametrize("file", ["guide.md", "plants", "long.md", "prompts"])
def test_the_budget_bounds_the_whole_answer(format: str, file: str, call: Call, docs: Path) -> None:
    """The sent text fits; a smaller budget than any answer gets the shortest one."""
    (docs / "prompts").mkdir()
    for number in range(40):
        (docs / "prompts" / f"{number}.md").write_bytes(b"# T\n" if number % 2 else b"\xff")
    (docs / "long.md").write_text("".join(f"# A {n}\n## B {n}\n### C {n}\n### D\n\nx\n\n" for n in range(60)))
    budgets = [1, 20, 60, 150, 300, 600, 1200, 2500, 6000, 10**6]
    answers = [text(call, file=file, format=format, depth=9, token_budget=budget) for budget in (*budgets, 0)]
    least = max(map(cost, answers[:2]))  # with a budget of 1 it has no number of all tokens
    assert least < (130 if format == "json" else 30)
    for budget, answer in zip(budgets, answers, strict=False):
        assert cost(answer) <= max(budget, least)
    assert answers[-2] == answers[-1]
    assert [len(answer) for answer in answers] == sorted(len(answer) for answer in answers)


def test_what_does_not_fit_is_folded_deepest_and_largest_first(call: Call, docs: Path) -> None:
    """The answer counts the headings inside, and says what shows them."""
    small = "".join(f"### s {n}\n\n" for n in range(3))
    large = "".join(f"### l {n}\n\n" for n in range(20))
    parts = f"## Small\n\n{small}#### deep\n\n## Large\n\n{large}## Last\n\ntext\n"
    (docs / "long.md").write_text(f"# T\n\n{parts}")
    outline = text(call, file="long.md", token_budget=150)
    headings = [line.split(" # ")[-1].split(" ## ")[-1].split(" ### ")[-1] for line in outline.splitlines()]
    assert headings[1:-1] == ["T", "Small", "s 0", "s 1", "s 2", "Large", "Last"]
    assert re.search(r"^\d+-\d+ \d+ \+20 ## Large$", outline, re.MULTILINE)
    assert re.search(r"^\d+-\d+ \d+ \+1 ### s 2$", outline, re.MULTILINE)
    note = re.fullmatch(r"\+21: headings not shown; token_budget=(\d+) shows all", outline.splitlines()[-1])
    assert note
    assert "shown" not in text(call, file="long.md", token_budget=int(note[1]))
    data = call.do("npl_section_index", file="long.md", token_budget=620)
    assert [(node["name"], node.get("more")) for node in data["sections"][0]["children"]] == [
        ("Small", 4),
        ("Large", 20),
        ("Last", None),
    ]
    budget = re.fullmatch(r"\+24: headings not shown; token_budget=(\d+) shows all", data["unfold"])
    assert budget
    everything = call.do("npl_section_index", file="long.md", token_budget=int(budget[1]))
    assert len(flat(everything["sections"])) == 28


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", [{}, {"file": "many"}, {"filter": {"has_code": False}}], ids=str)
@pytest.mark.parametrize("format", ["json", "markdown"])
def test_many_files_are_folders_with_counts(
    arguments: dict[str, Any], format: str, call: Call, docs: Path
) -> None:
    """An outline of several files has 1,000 tokens; no file is lost, and the named call opens a folder."""
    for number in range(1_200):
        place = docs / "many" / f"part-{number % 4}" / f"of-{number % 30}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"note-{number}.md").write_text(f"# Note {number}\n\n## Part\n\ntext\n")
    total = 1_200 if "file" in arguments else 1_203
    answer, opened, everything = (
        text(call, **{**arguments, "format": format, **more})
        for more in ({}, {"file": "many/part-1"}, {"token_budget": 0})
    )
    assert 200 < cost(answer) <= 1_000
    assert "file=path opens a folder" in answer
    if format == "markdown":
        first = answer.splitlines()[0]
        alone = len(re.findall(r"\.md( |$)", answer, re.MULTILINE))
        stated = [int(number) for number in re.findall(r" (\d+) files$", answer, re.MULTILINE)]
        assert first.startswith(f"{total} files ")
        assert sum(stated) + alone == total
        assert len(everything.splitlines()) > 1_200
    else:
        nodes = json.loads(answer)["data"]["sections"]
        assert sum(node.get("files", 1) for node in nodes) == total
    assert re.search("of-1/|path is many/part-1/of- ", opened)


NAMES = ("a{n}", "a [{n}]", "b,{n}", "c/{n}/x", "c/{n}/y", "Ü{n}", "日{n}")


@pytest.mark.thorough
@pytest.mark.parametrize("roots", [1, 2])
@pytest.mark.parametrize("filter", [None, {"heading_level": 2}], ids=str)
def test_every_folded_file_is_reached_by_the_named_calls(
    filter: dict[str, Any] | None, roots: int, settings: Settings, connect: Connect, tmp_path: Path
) -> None:
    """A folder or a pattern opens exactly the files that its line counts, with a number of their headings."""
    folders = [tmp_path / "one" / "docs", tmp_path / "two" / "notes"][:roots]
    for folder in folders:
        for name in [form.format(n=n) for form in NAMES for n in range(15)]:
            place = folder / "same" / f"{folder.name}{name}.md"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("# A\n\n## B\n\ntext\n")
    call = connect(replace(settings, roots=tuple(folders)))
    total, per_file = 7 * 15 * roots, 1 if filter else 2
    counted: dict[str | None, int] = {None: total}
    reached, waiting = set[str](), [None]
    while waiting:
        file = waiting.pop()
        folded, whole = (
            text(call, file=file, filter=filter, depth=0, token_budget=budget, format="json")
            for budget in (1_000, 0)
        )
        data = json.loads(folded)["data"]
        assert cost(folded) <= 1_000
        assert data["filtered_sections"] == counted[file] * per_file
        if sum(node.get("files", 1) for node in data["sections"]) < counted[file]:
            assert re.search(r"token_budget=\d+ shows all", data["unfold"])
            data = json.loads(whole)["data"]
        for node in data["sections"]:
            assert node["more"] == per_file * node.get("files", 1)
            if "files" not in node:
                reached.add(node["name"])
            elif node["name"] not in counted:
                counted[node["name"]] = node["files"]
                waiting.append(node["name"])
    assert len(reached) == total


@pytest.mark.parametrize("name", ["link", "../docs"])
def test_a_root_is_named_through_links_and_dots(
    name: str, settings: Settings, connect: Connect, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files lie below it, not below the working directory."""
    (settings.cwd / "link").symlink_to(docs)
    monkeypatch.chdir(settings.cwd)
    lines = text(connect(replace(settings, roots=(Path(name),)))).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["guide.md", "plants/beans.md", "plants/roses.md"]


def test_one_file_is_whole_as_fields_and_bounded_as_text(call: Call, docs: Path) -> None:
    """A budget of the call replaces both rules."""
    (docs / "long.md").write_text("# T\n\n" + "## Part of the whole\n\n### Piece\n\ntext\n\n" * 300)
    outline = text(call, file="long.md")
    assert cost(outline) <= 1_000 < cost(text(call, file="long.md", token_budget=0))
    assert len(flat(call.do("npl_section_index", file="long.md")["sections"])) == 601
    assert re.search(r"\+\d+: headings not shown; token_budget=\d+ shows all", outline)


def test_a_title_counts_as_the_document(call: Call) -> None:
    """depth=1 shows the headings below it, in both forms; two headings of level 1 are not a title."""
    (title,) = call("npl_section_index", file="guide.md", depth=1)["data"]["sections"]
    assert [(node["name"], node.get("more")) for node in title["children"]] == [
        ("Watering", 1),
        ("Pruning", 1),
        ("Compost", 1),
        ("堆肥と水やり", None),
    ]
    lines = text(call, file="guide.md", depth=1).splitlines()
    assert [line.split("## ")[-1] for line in lines[2:-1]] == [node["name"] for node in title["children"]]
    assert lines[-1] == "+3: headings not shown; a higher depth shows them"


def test_own_says_only_what_differs(call: Call) -> None:
    """Own traits are shown where they differ from those of the whole section."""
    title = call("npl_section_index", file="guide.md")["data"]["sections"][0]
    watering, pruning = title["children"][:2]
    assert set(title["own"]) == {"has_examples", "has_code", "has_tables", "word_count", "token_count"}
    assert set(watering["own"]) == {"has_examples", "has_code", "word_count", "token_count"}
    assert set(pruning["own"]) == {"word_count", "token_count"}
    assert (watering["has_examples"], watering["has_code"]) == (True, True)
    assert (watering["own"]["has_examples"], watering["own"]["has_code"]) == (False, False)
    assert watering["own"]["word_count"] == 12 < watering["word_count"]
    assert "own" not in watering["children"][0]


def test_a_filter_keeps_matches_and_the_headings_above_them(call: Call) -> None:
    """Fields say that the latter do not match; in an outline they have no numbers."""
    request = {"file": "guide.md", "filter": {"has_examples": True, "heading_level": 3}}
    data = call.do("npl_section_index", **request)
    assert (data["filtered_sections"], data["total_sections"]) == (1, 8)
    assert [(node["name"], node.get("matches", True)) for node in flat(data["sections"])] == [
        ("Garden Guide", False),
        ("Watering", False),
        ("Drip lines", True),
    ]
    lines = text(call, **request).splitlines()
    assert [re.sub(r"^\S+ \d+ ", "", line) for line in lines[1:]] == [
        "# Garden Guide",
        "## Watering",
        "ce ### Drip lines",
    ]
    for file in ("guide.md", "plants"):
        assert text(call, file=file, filter={"heading_level": 6}) == "no heading matches the filter\n"


def test_what_no_line_shows_is_told(call: Call, docs: Path) -> None:
    """It tells headings beyond the depth, files beyond the budget, and text without headings."""
    assert text(call, file="guide.md", depth=0).splitlines()[1:] == [
        "+8: headings not shown; a higher depth shows them"
    ]
    (docs / "plain.md").write_text("Water the roses.\n")
    assert text(call, file="plain.md").splitlines()[1:] == ["no headings, 4 tokens"]
    for number in range(20):
        (docs / f"more{number}.md").write_text("## One\n\n## Two\n")
    lines = text(call, token_budget=200).splitlines()
    note = re.fullmatch(
        r"\+(\d+): files not shown; file=path opens a folder; token_budget=(\d+) shows all", lines[-1]
    )
    assert note
    assert int(note[1]) == 24 - sum(".md" in line for line in lines[1:-1])
    assert len(text(call, token_budget=int(note[2])).splitlines()) == 25


def test_fences_that_look_wrong_are_named(docs: Path, call: Call) -> None:
    """Both forms have their lines; and all headings of the file are there."""
    (docs / "rules.md").write_text(
        "# Rules\n\n## One\n\n**how**\n: ```python\n# no heading\n```\n\n## Two\n\ntext\n"
    )
    data = call("npl_section_index", file="rules.md")["data"]
    assert data["warnings"] == ["check the fences in lines 6: not closed, or misplaced"]
    assert [node["name"] for node in flat(data["sections"])] == ["Rules", "One", "Two"]
    outline = text(call, file=".", format="markdown")
    assert "warning: rules.md: check the fences in lines 6:" in outline
    assert "warnings" not in call("npl_section_index", file="guide.md")["data"]
