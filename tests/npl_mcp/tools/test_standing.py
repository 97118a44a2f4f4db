"""Copies, translations, versions and retired pages in answers and searches."""

import shutil
from functools import partial
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import Call, Connect, cases
from tests.folders import fill

COPY = (
    "### Keep mode\n\nIn this mode the store keeps each file after its upload to the cloud, up to port {}.\n"
)
PAGES = {
    **{f"cmd/{name}.md": f"# {name}\n\n## Store\n\n{COPY.format(80)}" for name in ("copy", "move", "sync")},
    "cmd/link.md": f"# link\n\n## Store\n\n{COPY.format(80)}".replace("mode the", "**mode** the"),
    "cmd/serve.md": f"# serve\n\n## Store\n\n{COPY.format(81)}",
    "faq.md": "# FAQ\n\n## Disk is full\n\nThe store keeps files after their upload. Use `off` as mode.\n",
    "en/logs.md": "# Logs\n\n## Place of the logs\n\nThe daemon writes its logs to the folder `kiln-logs`.\n",
    "de/logs.md": "# Logs\n\n## Daemon-Logs\n\nDer Daemon schreibt die Logs in den Ordner `kiln-logs`.\n",
    "v1/setup.md": "# Setup\n\n## Start\n\nRun `pond init` to start the pond on port 7070.\n",
    "v2/setup.md": "# Setup\n\n## Start\n\nRun `pond setup` to start the pond on port 8080.\n",
    "kite/1.0/man/fly.md": "# Kite\n\n## Launch of the kite\n\nThe kite flies on a string of 20 metres.\n",
    "kite/2.0/man/fly.md": "# Kite\n\n## Launch of the kite\n\nThe kite flies on a string of 30 metres.\n",
    "CHANGELOG.md": "# Changes\n\n## 2.0\n\nThe pond starts on port 8080; `pond init` was removed.\n",
    "margin.md": "---\nstatus: stable\n---\n# Margin\n\nMargin is revenue minus the full cost of goods.\n",
    "orders.md": "---\ntype: Table\nverified:\n  - { by: process:nightly, at: 2026-06-26T02:00:00Z }\n"
    "  - { by: human:ada, at: 2026-06-25T09:00:00Z }\ngenerated: { by: pen/2, at: 2026-06-20T22:53:05Z }\n"
    "stale_after: 2124-12-31T00:00:00Z\n---\n# Orders\n\nOrders have one row for each checkout.\n",
    "metric.md": "---\ntype: Table\nstale_after: 2124-12-31T00:00:00Z\nverified: 1\n---\n# Metric\n\nPay.\n",
    "margin-old.md": "---\nStatus: Deprecated\n---\n# Margin\n\nMargin is revenue minus the cost of goods.\n",
}


@pytest.fixture
def folder(settings: Settings, connect: Connect) -> Call:
    """Call tools of a server of these pages."""
    (root,) = settings.roots
    shutil.rmtree(root)
    fill(root, PAGES)
    return connect(settings)


def test_a_text_comes_once(folder: Call) -> None:
    """Copies are counted and one is named; a text with another port is a different text."""
    asked = {"context": "store keeps a file after upload, keep mode", "token_budget": 2000}
    answer = folder("npl_load_tailored", **asked)["data"]
    assert answer["content"].count("up to port 80") == 1
    assert answer["content"].count("up to port 81") == 1
    (copied,) = [row for row in answer["sections"] if "also in" in row.get("note", "")]
    assert "also in 3 files, " in copied["note"]
    hits = folder("search", query="keep mode upload cloud port")["data"]["items"]
    assert len([row for row in hits if row["title"] == "Keep mode"]) == 2


PAIRS = cases("npl_mcp/tools/standing")["pairs"]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0][-12:])
def test_texts_whose_difference_may_be_the_answer_both_come(
    folder: Call, settings: Settings, pair: tuple[str, str]
) -> None:
    for name, text in zip(("one", "two"), pair, strict=True):
        page = f"# Run\n\n## Nightly\n\nOf the files on a node of the cluster,\n\n{text}\n"
        (settings.roots[0] / f"{name}.md").write_text(page)
    answer = folder("npl_load_tailored", context="nightly run keeps files of the cluster", token_budget=1000)
    assert [row.get("note") for row in answer["data"]["sections"]][:2] == [None, None]


def test_a_text_without_an_article_is_similar(folder: Call, settings: Settings) -> None:
    texts = "wakes the node of pumps in the night.", "wakes node of pumps in the night"
    for name, text in {"one": texts[0], "two": texts[1], "three": texts[0]}.items():
        (settings.roots[0] / f"{name}.md").write_text(f"# Run\n\n## Nightly\n\nThe nightly run {text}\n")
    asked = {"context": "nightly run wakes pumps", "token_budget": 1000}
    (only,) = folder("npl_load_tailored", **asked)["data"]["sections"]
    assert only["note"] == "also in three; similar in two"


def test_the_beginning_of_a_page_comes_once(folder: Call, settings: Settings) -> None:
    """It comes twice only below a different title."""
    text = "---\ntitle: {}\n---\nThe badger digs a sett with many doors and cleans it each week.\n"
    for name, title in {"one": "Badger", "two": "Badger", "three": "Mole"}.items():
        (settings.roots[0] / f"{name}.md").write_text(text.format(title))
    answer = folder("npl_load_tailored", context="badger digs a sett", token_budget=2000)["data"]
    assert sorted(row.get("note", "") for row in answer["sections"]) == ["", "also in two"]


def test_a_selector_brings_every_copy(folder: Call) -> None:
    named = [f"cmd/{name} ## Store > ### Keep mode" for name in ("copy", "move")]
    answer = folder("npl_load_tailored", selectors=named)["data"]
    assert answer["content"].count("up to port 80") == 2
    answer = folder("npl_load_tailored", context="keep mode upload", file="cmd/move.md")["data"]
    assert "note" not in answer["sections"][0]


@pytest.mark.parametrize(
    ("question", "first", "behind"), cases("npl_mcp/tools/standing")["what_stands_behind_is_named"]
)
def test_what_stands_behind_is_named(folder: Call, question: str, first: str, behind: str) -> None:
    answer: dict[str, Any] = folder("npl_load_tailored", context=question, token_budget=700)["data"]
    assert answer["sections"][0]["file"] == first
    assert "note" not in answer["sections"][0]
    assert behind in str(answer.get("notes", {}))
    hits = folder("search", query=question)["data"]["items"]
    assert hits[0]["file"] == first
    assert behind in [row.get("note", "") for row in hits] or not behind


def test_marks_name_standing_and_copies(folder: Call) -> None:
    folder("search", query="margin")
    load = partial(folder.text, "npl_load_tailored", format="markdown")
    retired = load(context="What is margin?", file="margin-old.md")
    copied = load(context="keep mode upload to the cloud", token_budget=300)
    assert retired.startswith("<!-- margin-old.md # Margin 1 (deprecated) -->")
    assert "(also in 3 files, cmd/" in copied


TRUST = "verified 2026-06-26 by process; generated 2026-06-20 by pen"


def test_who_confirmed_a_document_stands_beside_it(folder: Call) -> None:
    """As the Open Knowledge Format writes it; other values of these fields say nothing."""
    for page, question, note in (
        ("orders.md", "rows of checkout orders", TRUST),
        ("metric.md", "metric pay", None),
    ):
        hit, *_ = folder("search", query=question)["data"]["items"]
        assert (hit["file"], hit.get("note")) == (page, note)


def test_an_outline_of_a_folder_has_its_fields(folder: Call) -> None:
    """Those that several documents have, with the commonest values; a small budget leaves them out."""
    fields = {"stale_after": {"2124-12-31": 2}, "type": {"table": 2}}
    assert folder("npl_section_index", token_budget=0)["data"]["fields"] == fields
    line = "front matter: stale_after = 2124-12-31 2; type = table 2\n"
    load = partial(folder.text, "npl_section_index", format="markdown")
    assert load().endswith(line)
    assert "front matter" not in load(token_budget=60)
    assert "front matter" not in load(file="orders.md")
    folder("npl_section_index", filter={"type": "table"})


def test_the_outline_names_the_status(folder: Call) -> None:
    """The status stands after the name of a retired document, as in answers."""
    nodes = folder("npl_section_index", format="json", token_budget=0)["data"]["sections"]
    assert {node["name"]: node["status"] for node in nodes if "status" in node} == {
        "margin-old.md": "deprecated",
        "orders.md": TRUST,
    }
    assert folder("npl_section_index", file="margin-old.md")["data"]["status"] == "deprecated"
    outline = partial(folder.text, "npl_section_index", format="markdown")
    whole, single = outline(), outline(file="margin-old.md")
    assert "margin-old.md (deprecated)\n" in whole
    assert "; deprecated; lines tokens" in single or single.startswith("deprecated; lines tokens")


def test_a_passage_brings_its_definitions(folder: Call, settings: Settings) -> None:
    """It brings those it uses; a selected section is verbatim, so that it can be edited."""
    text = (
        "# Pump\n\n## Priming\n\nPrime the pump as [manual][m] says[^1], not `[code]`.\n\n## Rest\n\nOil\n\n"
        "[m]: https://example.org/manual\n[^1]: Only when cold.\n[code]: nowhere.md\n[other]: elsewhere.md\n"
    )
    (settings.roots[0] / "pump.md").write_text(text)
    ranked = folder("npl_load_tailored", context="prime the pump", file="pump.md")["data"]["content"]
    assert ranked.endswith("\n\n[m]: https://example.org/manual\n[^1]: Only when cold.\n")
    selected = folder("npl_load_tailored", selectors=["pump ## Priming"])["data"]["content"]
    assert "example.org" not in selected


def test_front_matter_is_found_with_the_first_text(folder: Call, settings: Settings) -> None:
    """The first text may be below a heading that is not the title."""
    text = (
        "---\ntitle: Burrow\ntags:\n  - nocturnal\ndescription: how to dig gravel\n---\n\n# Plan\n\nText.\n"
    )
    (settings.roots[0] / "burrow.md").write_text(text)
    for word in ("nocturnal", "gravel"):
        assert [row["line"] for row in folder("search", query=word)["data"]["items"]] == [8]


def test_a_folder_is_found_by_the_name_of_its_version(folder: Call) -> None:
    answer = folder("search", query="pond setup version 1")["data"]
    assert answer["items"][0]["file"] == "v1/setup.md"
    assert "absent" not in answer


@pytest.mark.parametrize("question", ["the of and", "of", "?!"])
def test_common_words_alone_bring_no_text(folder: Call, question: str) -> None:
    answer = folder("npl_load_tailored", context=question)["data"]
    assert answer["content"] == ""
    assert answer["advice"] == "no section has most of these words"
