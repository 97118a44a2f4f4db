"""A title in front matter, a heading of level 1 or a file names a page, as a client sees it."""

from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Call
from tests.folders import fill

CHAPTERS = "".join(
    f"## {name} a harbour\n\nA harbour has {name.lower()} harbour rules, harbour by harbour.\n\n"
    for name in ("Entering", "Leaving", "Dredging", "Lighting", "Charting", "Naming", "Closing", "Painting")
)
LEAD = "Ships lie there, safe from the sea."
PAGES = {
    "basin.md": f"---\ntitle: Harbour\n---\n\n{LEAD}\n\n{CHAPTERS}",
    "pages/moor.md": (
        '---\ntitle: "Tying up: the <basics>"\nsidebar_label: Mooring primer\nlinkTitle: Berthing\n'
        "aliases:\n  - hawsers\nkeywords: [bollards, fenders]\ndescription: How not to drift at night.\n---\n"
        "Ropes first.\n\n## Steps\n\nKnots, then coffee.\n"
    ),
    "tide-tables.md": "They say when it is deep.\n\n## Reading tide tables\n\nTide tables have columns.\n",
    "lock.md": f"# Sluice\n\n## Sluice\n\nGates.\n\n{CHAPTERS.replace('harbour', 'sluice')}",
    "logs.md": "# Logs\n\n## Tying up the basics\n\nTying up the basics.\n\n### Harbour\n\nHarbour logs.\n",
}


@pytest.fixture
def site(docs: Path) -> Path:
    return fill(docs / "site", PAGES)


QUESTIONS = [
    ("Harbour", "basin", "Harbour", LEAD),
    ("what is a harbour", "basin", "Harbour", LEAD),
    ("Tying up: the basics", "pages/moor", "Tying up: the <basics>", "Ropes first."),
    ("mooring primer", "pages/moor", "Tying up: the <basics>", "Ropes first."),
    ("berthing", "pages/moor", "Tying up: the <basics>", "Ropes first."),
    ("hawsers", "pages/moor", "Tying up: the <basics>", "Ropes first."),
    ("fenders", "pages/moor", "Tying up: the <basics>", "Ropes first."),
    ("drift at night", "pages/moor", "Tying up: the <basics>", "Ropes first."),
    ("what are tide tables", "tide-tables", "tide-tables", "They say when it is deep."),
    ("what is a sluice", "lock", "Sluice", "Gates."),
]


@pytest.mark.parametrize(("question", "file", "title", "text"), QUESTIONS)
@pytest.mark.parametrize("alone", [False, True], ids=["folder", "file"])
def test_the_name_of_a_page_finds_its_first_text(
    question: str, file: str, title: str, text: str, alone: bool, site: Path, call: Call
) -> None:
    """A question about a name gets the beginning of the page with that name, not its chapters."""
    del site
    where = f"site/{file}.md" if alone else "site/"
    data = call("npl_load_tailored", context=question, file=where, explain=True)["data"]
    first, ranked = data["sections"][0], data["ranking"][0]
    assert (first["title"], ranked["title"]) == (title, title)
    assert alone or first["file"] == f"site/{file}.md"
    assert text in data["content"]
    assert "title:" not in data["content"]
    again = call("npl_load_tailored", selectors=[first["selector"]], file=where)["data"]
    assert again["sections"][0]["start_line"] == first["start_line"]
    assert text in again["content"]


def test_documents_keep_their_names_in_selectors(site: Path, call: Call) -> None:
    """A title is not a selector: earlier selectors work as before."""
    del site
    selected = {"moor[depth=0]": "Tying up: the <basics>", "moor > ## Steps": "Steps"}
    for selector, title in selected.items():
        asked = call("npl_load_tailored", selectors=[selector], file="site/pages/moor.md")
        assert [section["title"] for section in asked["data"]["sections"]] == [title]
    (section,) = call("npl_load_tailored", selectors=["Harbour"], file="site/")["data"]["sections"]
    assert (section["file"], section["title"]) == ("site/logs.md", "Harbour")


def test_outlines_show_titles(site: Path, call: Call) -> None:
    """A title is shown if it says more than the file's name, and no heading says it."""
    del site
    moor = call("npl_section_index", file="site/pages/moor.md")["data"]
    assert moor["title"] == "Tying up: the <basics>"
    assert "title" not in call("npl_section_index", file="site/lock.md")["data"]
    nodes = call("npl_section_index", file="site/")["data"]["sections"]
    assert {node["name"]: node["heading"] for node in nodes} == {
        "site/basin.md": "Harbour",
        "site/lock.md": "",
        "site/logs.md": "",
        "site/pages/moor.md": "Tying up: the <basics>",
        "site/tide-tables.md": "",
    }
    every, outline, other = (
        call.text("npl_section_index", file=file, format="markdown")
        for file in ("site/", "site/pages/moor.md", "site/lock.md")
    )
    assert 'path "title"' in every.splitlines()[0]
    assert any(line.endswith('pages/moor.md "Tying up: the <basics>"') for line in every.splitlines())
    assert outline.startswith('title "Tying up: the <basics>"; lines tokens')
    assert other.startswith("lines tokens")


def test_answers_show_a_title_that_no_heading_shows(site: Path, call: Call) -> None:
    """Marks, pointers and lines of a search show it once and shortened."""
    fees = f"---\ntitle: Tariff {'x' * 500} -->\n---\n\nThe wombat sum.\n"
    (site / "fees.md").write_text(fees, encoding="utf-8")
    load, search = (partial(call.text, tool, format="markdown") for tool in ("npl_load_tailored", "search"))
    mark = load(context="bollards ropes first", file="site/pages/moor.md")
    first, other = (search(query=query, kinds="document") for query in ("ropes first", "knots coffee"))
    long = load(context="wombat sum", file="site/fees.md")
    assert mark.startswith("<!-- site/pages/moor.md [depth=0] .43 (Tying up: the <basics>) ")
    assert "  4 (Tying up: the <basics>)  Ropes first." in first
    assert "Tying up" not in other
    assert 80 < len(long.splitlines()[0]) < 160


HOSTILE = {
    "two-lines": ('title: "a\\nb --> # c"', "a b --> # c"),
    "folded": ("title: >-\n  Long\n  name", "Long name"),
    "list": ("title: [one, two]", "one"),
    "mapping": ("title:\n  a: b\nsidebar_label: Side", "Side"),
    "anchor": ("title: &a [x]\nlinkTitle: Link", "&a [x]"),
    "endless": (f"title: {'long ' * 3000}", ("long " * 3000)[:1024]),
    "beyond": (f"filler: {'x' * 20_000}\ntitle: Far", "odd"),
    "blank": ('title: "  "', "odd"),
    "none": ("title:", "odd"),
}


@pytest.mark.parametrize(("front", "title"), HOSTILE.values(), ids=HOSTILE)
def test_a_title_is_one_line_of_bounded_length(front: str, title: str, docs: Path, call: Call) -> None:
    """The text before the first heading has a title, with any front matter."""
    (docs / "odd.md").write_text(
        f"---\n{front}\n---\n\nUnusual words.\n\n## Next\n\nMore.\n", encoding="utf-8"
    )
    data = call("npl_load_tailored", context="unusual words", file="odd.md")["data"]
    assert data["sections"][0]["title"].rstrip() == title.rstrip()
    assert data["content"] == "Unusual words.\n"
