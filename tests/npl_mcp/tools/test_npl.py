"""Promises of the npl tools, as an MCP client sees them."""

import itertools
import json
import os
import re
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from npl_index.errors import DocumentTimeoutError
from npl_index.library.documents import DocumentRef
from npl_index.markdown.sections import parse_sections
from npl_index.tokens.estimated import estimator
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests.conftest import GUIDE, Call, Connect
from tests.tools import npl_load_tailored, npl_section_index


def nodes(tree: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [below for node in tree for below in (node, *nodes(node["children"]))]


def test_the_index_shows_every_heading_with_its_place(call: Call) -> None:
    data = call.do("npl_section_index", file="guide.md")
    rows = nodes(data["sections"])
    assert [(node["name"], node["level"]) for node in rows] == [
        ("Garden Guide", 1),
        ("Watering", 2),
        ("Drip lines", 3),
        ("Pruning", 2),
        ("See Also", 3),
        ("Compost", 2),
        ("See Also", 3),
        ("堆肥と水やり", 2),
    ]
    assert data["total_sections"] == data["filtered_sections"] == 8
    lines = GUIDE.encode().split(b"\n")
    for node in rows:
        assert node["heading"] == node["name"]
        assert lines[node["start_line"] - 1] == b"#" * node["level"] + b" " + node["name"].encode()
        text = GUIDE.encode()[node["start_byte"] : node["end_byte"]]
        assert text.startswith(lines[node["start_line"] - 1])
        assert text.count(b"\n") == node["end_line"] - node["start_line"]


def test_a_folder_lists_its_documents(call: Call) -> None:
    """A set shows its files; a call with ``depth`` opens them."""
    data = call.do("npl_section_index", file="plants")
    assert [(node["name"], node["level"], node["more"]) for node in data["sections"]] == [
        ("plants/beans.md", 0, 2),
        ("plants/roses.md", 0, 2),
    ]
    deep = call.do("npl_section_index", file="plants", depth=9)
    assert [node["name"] for node in nodes(deep["sections"])][1:3] == ["Beans", "Sowing"]


def test_without_a_file_the_roots_that_were_given_are_searched(
    settings: Settings, call: Call, connect: Connect
) -> None:
    """They are the user's own documents; the NPL reference answers without a root, or when it is named."""
    data = call.do("npl_section_index")
    assert data["file"] == "docs"
    assert [node["name"] for node in data["sections"]] == ["guide.md", "plants/beans.md", "plants/roses.md"]
    answer = call.do("npl_load_tailored", context="where to cut roses")
    assert (answer["sections"][0]["file"], answer["sections"][0]["title"]) == ("plants/roses.md", "Pruning")
    assert call.do("npl_section_index", file="npl.md")["sections"][0]["level"] == 1
    assert connect(replace(settings, roots=())).do("npl_section_index")["file"] == "npl.md"
    settings.roots[0].joinpath("empty").mkdir()
    empty = connect(replace(settings, roots=(settings.roots[0] / "empty",)))
    code, text = empty.refused("npl_load_tailored", context="roses")
    assert (code, "npl.md" in text) == ("NOT_FOUND", True)


def test_items_are_documents_of_every_kind(call: Call) -> None:
    """``resource_type`` and ``item`` reach the documents of files and paths."""
    for kind, item in [
        ("component", "syntax.placeholder"),
        ("agent", "code-reviewer"),
        ("prompt", "npl-conventions"),
    ]:
        data = call.do("npl_section_index", resource_type=kind, item=item)
        assert data["item"] == item
        assert data["path"].endswith(item.replace(".", "/") + ".md")
        assert data["total_sections"] > 3


def test_a_versioned_prompt_says_its_version(call: Call, docs: Path) -> None:
    """The index has the header's version as written, and selectors can ask for it."""
    header = "npl-instructions:\n  name: house-rules\n  version: 1.10\n---\n\n"
    (docs / "rules.md").write_text(f"{header}# House Rules\n\n## Tone\n\nBe brief.\n", encoding="utf-8")
    data = call.do("npl_section_index", file="rules.md")
    assert data["version"] == "1.10"
    assert data["total_tokens"] > 0
    newer = call.do("npl_load_tailored", selectors=["house-rules[version>=1.9] > ## Tone"], file="rules.md")
    assert newer["content"] == "## Tone\n\nBe brief.\n"
    older = call("npl_load_tailored", selectors=["[version<1.9]"], file="rules.md")
    assert older["error_code"] == "NOT_FOUND"


def test_tailored_load_answers_with_the_sections_of_the_task(call: Call) -> None:
    """The right section comes back alone, cited by line; the next hit is pointed to."""
    data = call.do("npl_load_tailored", context="when should fruit trees be pruned?", file="guide.md")
    best = data["sections"][0]
    assert best["title"] == "Pruning"
    assert 0.1 <= best["relevance_score"] <= 1
    assert data["content"].startswith("## Pruning\n\nPrune fruit trees")
    lines = GUIDE.split("\n")
    assert lines[best["start_line"] - 1] == "## Pruning"
    assert lines[best["end_line"] - 1] == "### See Also"
    assert "fruit" in data["keywords_extracted"]
    assert data["truncated"] is False
    assert data["request_more"] == ["guide > ## Pruning > ### See Also"]
    assert "Watering" not in data["content"]


def test_selectors_bring_their_sections_alone(call: Call) -> None:
    """A selector brings its subsections and needs no score; the context adds no section."""
    data = call.do(
        "npl_load_tailored",
        context="compost from green and brown material",
        selectors=["guide > ## Watering"],
        file="guide.md",
    )
    assert [(row["selector"], row["relevance_score"]) for row in data["sections"]] == [
        ("guide > ## Watering", 1)
    ]
    assert "### Drip lines" in data["content"]
    assert "## Compost" not in data["content"]


def test_sections_is_another_name_for_selectors_and_takes_ranges(call: Call) -> None:
    """The older parameter works, ranges included."""
    data = call.do("npl_load_tailored", sections=["## Watering...## Pruning"], file="guide.md")
    assert [part for part in data["content"].split("\n") if part.startswith("#")] == [
        "## Watering",
        "### Drip lines",
        "## Pruning",
        "### See Also",
    ]


def test_depth_limits_what_comes_with_a_selected_section(call: Call) -> None:
    """depth=0 returns a section's own text only, under a selector that says so."""
    data = call.do("npl_load_tailored", selectors=["## Watering"], depth=0, file="guide.md")
    assert "Drip" not in data["content"]
    (row,) = data["sections"]
    again = call.do("npl_load_tailored", selectors=[row["selector"]], file="guide.md")
    assert again["content"] == data["content"]


def test_a_selector_can_name_the_document_itself(call: Call) -> None:
    """Without a file the document is the one the selector begins with."""
    data = call.do("npl_load_tailored", selectors=["npl-conventions > ## Fences"])
    assert data["file"].endswith("npl-conventions.md")
    assert data["sections"][0]["title"] == "Fences"
    for name in ("syntax.placeholder", '"npl/syntax/placeholder.md"', "syntax/placeholder"):
        item = call.do("npl_load_tailored", selectors=[f"{name} > ## Writing a placeholder"])
        assert item["sections"][0]["title"] == "Writing a placeholder"


PRUNING, COMPOST = "guide > ## Pruning", "guide > ## Compost"


def test_selected_sections_bring_no_neighbours(call: Call) -> None:
    """An answer does not depend on earlier calls."""
    for selectors in ([PRUNING, COMPOST], [PRUNING]):
        assert call.do("npl_load_tailored", selectors=selectors, file="guide.md")["suggestions"] == []


def test_explain_reports_every_hit_and_its_parts(call: Call) -> None:
    """The ranking is complete, ordered, and its parts lie between 0 and 1."""
    data = call.do(
        "npl_load_tailored", context="prune trees", topics=["pruning"], file="guide.md", explain=True
    )
    ranking = data["ranking"]
    assert len(ranking) >= len(data["sections"])
    assert [hit["score"] for hit in ranking] == sorted((hit["score"] for hit in ranking), reverse=True)
    assert ranking[0]["title"] == "Pruning"
    assert ranking[0]["topic"] == 1
    for hit in ranking:
        assert all(0 <= hit[part] <= 1 for part in ("score", "name", "content", "topic"))
        assert sum(hit["signals"].values()) == pytest.approx(hit["score"], abs=1e-3)
    without = call.do("npl_load_tailored", context="prune trees", file="guide.md")
    assert "ranking" not in without


def test_an_edit_is_seen_by_the_next_call(call: Call, docs: Path) -> None:
    """The edit may even keep the size and set the time stamp back."""
    path = docs / "guide.md"
    old = path.stat().st_mtime_ns - 3_600_000_000_000
    for month in ("February", "November", "December"):
        path.write_text(GUIDE.replace("February", month), encoding="utf-8")
        os.utime(path, ns=(old, old))
        assert month in call.do("npl_load_tailored", context="apple", file="guide.md")["content"]


def test_components_come_whole_with_their_origin(call: Call) -> None:
    """The answer has text, flags and the origin of every item."""
    data = call.do("npl_load_components", items="fences.example,syntax", skip="syn*")
    assert data["loaded_items"] == ["fences.example"]
    assert data["content"].startswith("# fences.example:\n# ")
    assert data["flags"] == data["flags_updated"] == {"npl.def.loaded": "fences.example"}
    assert data["skipped"] == ["syntax"]
    (item,) = data["items"]
    assert item["root"] == "bundled"
    assert item["path"].endswith("fences/example.md")
    assert len(item["digest"]) == 32


def test_an_agent_comes_with_what_it_relies_on(call: Call) -> None:
    """``with_definition`` appends the NPL that the agent needs, each part once."""
    alone = call.do("npl_load_agent", agent_name="code-reviewer")
    whole = call.do("npl_load_agent", agent_name="code-reviewer", with_definition=True)
    assert whole["content"].startswith(alone["content"])
    assert "# NPL Definition for code-reviewer" in whole["content"]
    assert len(set(whole["loaded_items"])) == len(whole["loaded_items"]) > 5


def test_project_files_beat_the_bundled_ones(settings: Settings, call: Call) -> None:
    """Search places are asked in order; the answer names the one that had the item."""
    own = settings.cwd / ".npl" / "npl"
    own.mkdir(parents=True)
    (own / "syntax.md").write_text("# Our Syntax\n", encoding="utf-8")
    data = call.do("npl_load_components", items="syntax")
    assert data["content"] == "# syntax:\n# Our Syntax\n\n"
    assert data["items"][0]["root"] == "project"


def test_every_selector_given_out_selects_its_section_again(call: Call, docs: Path) -> None:
    tree = parse_sections((docs / "guide.md").read_bytes(), "guide")
    rows = nodes(call.do("npl_section_index", file="guide.md")["sections"])
    for node in rows:
        data = call.do("npl_load_tailored", selectors=[node["selector"]], file="guide.md")
        (row,) = data["sections"]
        assert (row["start_line"], row["end_line"]) == (node["start_line"], node["end_line"])
    assert len(rows) == len(tree.sections) - 1


def test_a_call_that_counts_too_long_is_told_so(settings: Settings, docs: Path) -> None:
    """The time limit of the settings covers everything after reading, too."""
    first = App(settings)
    path = docs / "guide.md"
    os.utime(path, (1, 1))
    first.gather(DocumentRef(file="guide.md"))
    late = App(replace(settings, time_limit=-1.0), first.state)
    for work in (
        lambda: npl_section_index(late, file="guide.md"),
        lambda: npl_load_tailored(late, context="water", file="guide.md"),
        lambda: npl_load_tailored(late, selectors=["## Pruning"], file="guide.md"),
    ):
        with pytest.raises(DocumentTimeoutError, match=r"guide\.md took longer"):
            work()
    first.close()


@pytest.mark.thorough
def test_indexing_and_answering_share_the_time_of_a_call(
    settings: Settings, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that is enough for each of the two is not enough for both; the clock counts its readings."""
    text = "# Guide\n\n" + "".join(f"## Part {n}\n\nWater and *soil* in words.\n\n" for n in range(3_000))
    (docs / "guide.md").write_text(text, encoding="utf-8")
    os.utime(docs / "guide.md", (1, 1))
    readings = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(readings)))

    def steps(seconds: float) -> tuple[int, int]:
        with closing(App(replace(settings, time_limit=seconds, cache_mode="memory"))) as app:
            began = next(readings)
            app.gather(DocumentRef(file="guide.md"))
            indexed = next(readings)
            npl_section_index(app, file="guide.md", token_budget=500)
            answered = next(readings)
            return indexed - began, answered - indexed

    indexing, answering = steps(1_000_000)
    assert min(indexing, answering) > 20
    enough = max(indexing, answering) + 10.0
    steps(enough)
    app = App(replace(settings, time_limit=enough, cache_mode="memory"))
    with pytest.raises(DocumentTimeoutError, match=r"guide\.md took longer"):
        npl_section_index(app, file="guide.md", token_budget=500)
    app.close()


def test_whole_items_come_as_plain_markdown(settings: Settings, call: Call, connect: Connect) -> None:
    """The text has no envelope; a last line names missing items, errors stay as they are."""
    load = partial(call.text, "npl_load_components")
    whole = call.do("npl_load_components", items="syntax")["content"]
    assert load(items="syntax", format="markdown") == whole
    part = load(items="syntax,sintax", format="markdown")
    assert part.startswith(whole.rstrip())
    assert part.split("\n")[-2].startswith("<!-- not found: sintax (near: syntax)")
    assert call.refused("npl_load_components", items="sintax", format="markdown")[0] == "NOT_FOUND"
    assert "format" in call.refused("npl_load_components", items="syntax", format="yaml")[1]
    usual = connect(replace(settings, format="markdown"))
    assert not usual.text("npl_load_meta", items="symbol-table").startswith("{")


def test_sections_come_as_plain_markdown(call: Call) -> None:
    """Each section has a mark with file, selector and score; the last says what to ask for next."""
    load = partial(call.text, "npl_load_tailored", format="markdown")
    text = load(context="prune fruit trees in late winter", file="guide.md")
    first, line, *_ = text.split("\n")
    mark = re.fullmatch(r"<!-- (.+) \.\d\d -->", first)
    assert mark is not None
    assert mark[1] == "guide.md ## Pruning [depth=0]"
    assert line == "Prune fruit trees in late winter."
    again = load(selectors=[mark[1]], file="guide.md")
    assert again.split("\n")[1:5] == ["## Pruning", "", *text.split("\n")[1:3]]

    text = load(selectors=["## Pruning", "## Watering"], file="**/*.md", token_budget=130)
    assert estimator().count(text) <= 130
    *_, more = text.partition("<!-- more:\n")
    assert more.endswith(" -->\n")
    selectors = [json.JSONDecoder().raw_decode(line)[0] for line in more.rstrip("\n").split("\n")]
    rest = load(selectors=selectors, file="**/*.md")
    assert rest.count("\n## ") + text.count("\n## ") >= 3

    text = load(context="zzzz qqqq", file="guide.md")
    assert text == "<!--\nno section has: zzzz, qqqq\nno section has most of these words -->\n"


def test_what_the_caller_has_does_not_come_again(call: Call) -> None:
    """An agent excludes what answers named; each answer says how much was left out."""
    request = {"context": "water the compost and prune the trees", "file": "guide.md", "token_budget": 900}
    seen: list[str] = []
    lines: list[str] = []
    for _ in range(9):
        data = call.do("npl_load_tailored", exclude=seen, **request)
        lines += [line for line in data["content"].split("\n") if line and line != "### See Also"]
        assert ("excluded_tokens" in data) is bool(seen)
        if not data["sections"]:
            break
        seen += [row["selector"] for row in data["sections"]]
        assert not set(seen) & {*data["request_more"], *(row["selector"] for row in data["suggestions"])}
    assert data["content"] == ""
    assert data["truncated"] is False
    assert data["excluded_tokens"] > 50
    assert len(lines) == len(set(lines)) > 8
    selected = call(
        "npl_load_tailored", selectors=["## Watering"], exclude=["### Drip lines"], file="guide.md"
    )
    assert "Deep roots" in selected["data"]["content"]
    assert "drip line" not in selected["data"]["content"]


def test_what_is_excluded_exists(call: Call) -> None:
    data = call.do("npl_load_tailored", context="water", exclude=["## Wat", "## Nowhere"], file="guide.md")
    assert "exclude: " in data["not_found"][0]
    assert "## Nowhere" in data["not_found"][0]
    failed = call("npl_load_tailored", context="water", exclude=["## Nowhere"], file="guide.md")
    assert failed["error_code"] == "NOT_FOUND"
    assert failed["error"].startswith("exclude: ")


@pytest.mark.parametrize("anchor", ["{ #library-mode }", "{/* #library-mode */}", "{/*library-mode*/}"])
def test_anchors_of_headings_cost_nothing(call: Call, docs: Path, anchor: str) -> None:
    """Marks for page generators are in the text alone; the heading as written selects, too."""
    text = f"# Build\n\n## Library Mode {anchor}\n\nBundle a library.\n\n## Modes {{#m .x}}\n\nOther.\n"
    (docs / "build.md").write_text(text, encoding="utf-8")
    data = call.do("npl_load_tailored", context="bundle a library", file="build.md")
    row = data["sections"][0]
    assert (row["selector"], row["title"]) == ("build > ## Library Mode", "Library Mode")
    assert f"## Library Mode {anchor}\n" in data["content"]
    for selector in ("build > ## Library Mode", f"## Library Mode {anchor}"):
        again = call.do("npl_load_tailored", selectors=[selector], file="build.md")
        assert [row["title"] for row in again["sections"]] == ["Library Mode"]


def test_a_heading_that_one_file_has_needs_no_name_of_it(call: Call) -> None:
    """A unique heading of the root suffices; where two files have it, a heading above it comes first."""
    for context, title in (("sow beans in May", "Sowing"), ("cut above an outward bud", "Pruning")):
        row = call.do("npl_load_tailored", context=context, file=".")["sections"][0]
        expected = {"Sowing": "## Sowing", "Pruning": "# Roses > ## Pruning"}[title]
        assert (row["title"], row["selector"]) == (title, expected)
        (again,) = call.do("npl_load_tailored", selectors=[row["selector"]], file=".")["sections"]
        assert (again["file"], again["start_line"]) == (row["file"], row["start_line"])


@pytest.mark.parametrize("form", ["json", "markdown"])
@pytest.mark.parametrize("file", [None, "api/page3.md"])
@pytest.mark.parametrize("context", [None, "page 3: how do I call op7"])
def test_a_selector_of_many_sections_lists_them(
    call: Call, docs: Path, form: str, file: str | None, context: str | None
) -> None:
    """A heading that stands everywhere does not flood; a section, a budget and a page bring text."""
    (docs / "api").mkdir()
    for page in range(5):
        parts = [f"## op{part}\n\n### Example\n\n{f'call op{part} ' * 100}\n" for part in range(20)]
        (docs / "api" / f"page{page}.md").write_text(f"# Page {page}\n\n" + "\n".join(parts))
    given = {"file": file, "context": context, "format": form}
    text = call.text("npl_load_tailored", selectors=["### Example"], **given)
    assert estimator("o200k_base").count(text) <= 1_000
    assert f"{20 if file else 100} sections of" in text
    assert "token_budget" in text
    assert "call op1 call" not in text
    listed = call.do("npl_load_tailored", selectors=["### Example"], **given | {"format": "json"})
    assert (listed["truncated"], listed["sections"]) == (True, [])
    assert listed["notes"].keys() == set(listed["request_more"])
    first = listed["request_more"][0]
    size = int(listed["notes"][first].removesuffix(" tokens"))
    assert "op7" in first or not context
    if not context:
        whole = call.do("npl_load_tailored", selectors=[first], file=file)
        assert whole["content"].count("call op0") == 100
        assert whole["sections"][0]["token_count"] == size
        page = call.do("npl_load_tailored", selectors=["api/page3"], token_budget=None)
        assert page["content"].count("call op") == 2_000
    budget = call.do(
        "npl_load_tailored", selectors=["### Example"], token_budget=0, **given | {"format": "json"}
    )
    assert budget["content"].count("call op") == (2_000 if file else 10_000)
