"""The benchmark of an agent's day: a small day over the bundled documents, and what it is measured with."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from benchmarks.agent_day.__main__ import HERE, KEPT, MARKS, figures, main, readme_table
from benchmarks.agent_day.player import Played, Player
from benchmarks.agent_day.probes import Probed, absent, title_of
from benchmarks.agent_day.systems import Npl, pointers
from benchmarks.agent_day.tasks import DAYS, Documents, read_day
from npl_index.tokens.estimated import estimator
from npl_mcp.config.settings import corpus_folder

Day = tuple[dict[str, list[Played]], list[Probed]]


@pytest.fixture(scope="module")
def small_day() -> Day:
    """How the tasks over the bundled documents went, by day, and the answers to what is not there."""
    return asyncio.run(_play())


async def _play() -> Day:
    documents, day = Documents.read(corpus_folder()), read_day(HERE / "corpus.toml")
    topics = day.absent["corpus"]
    assert documents.faults(day.tasks) == []
    assert documents.present(topics) == []
    count = estimator("o200k_base").count
    player = Player(documents, count)
    async with Npl.started([sys.executable, "-m", "npl_mcp"], documents) as server:
        days = {}
        for name in DAYS:
            days[name] = [await player.play(task, name, server) for task in day.tasks]
        return days, await absent(server, topics, count)


@pytest.mark.thorough
@pytest.mark.parametrize(("day", "held", "listed"), [("lay", 11, 8), ("terms", 11, 10), ("topics", 11, 11)])
def test_tasks_are_held(small_day: Day, day: str, held: int, listed: int) -> None:
    """The floors lie a little below what was measured; tokens are bounded generously."""
    sums = figures(small_day[0][day])
    assert sums["held"] >= held
    assert sums["listed"] >= listed
    assert sums["calls"] <= 20
    assert sums["tokens"] <= 10_000


def test_the_tasks_about_other_styles_fit_their_documents() -> None:
    """Each label is a section, and each solution is in it."""
    documents, day = Documents.read(HERE / "documents"), read_day(HERE / "styles.toml")
    assert documents.faults(day.tasks) == []
    for folder, topics in day.absent.items():
        assert Documents.read(HERE / "documents" / folder).present(topics) == []


@pytest.mark.thorough
def test_what_is_absent_costs_little(small_day: Day) -> None:
    """A word that stands nowhere brings no text; other topics bring some."""
    probed = small_day[1]
    assert not probed[-1].found, "zzzqqq frobnicate"
    assert sum(one.tokens for one in probed) <= 1_000 * len(probed)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (
            '<!-- more: "a > ## B", "## C \\"D\\""; see also: "E" (next to "B"), "F" -->',
            ["a > ## B", '## C "D"', "E", "F"],
        ),
        ('<!-- more:\n"a > ## B" 210: says "no"\n"## C" 1,300\n-->', ["a > ## B", "## C"]),
        ('<!-- "a > ## B" 210: says "no" -->\n"## C" 1,300: a line', ["a > ## B", "## C"]),
        ('<!-- a > ## B .92 -->\nHe said "no" twice.\n<!-- of "C:\\x" -->', []),
    ],
    ids=["in a row", "a line each", "a comment each", "none"],
)
def test_pointers_are_told_from_texts(answer: str, named: list[str]) -> None:
    """Reasons in brackets and matching lines are in quotation marks, too."""
    assert list(pointers(answer)) == named


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\nid: a\ntitle: 'Grow peas'\n---\n\n# Peas\n", "Grow peas"),
        ("---\nid: a\n---\n\ntitle: no\n\n# Peas\n\n---\n", "Peas"),
        ("## Peas\n", None),
    ],
    ids=["front matter", "first heading", "none"],
)
def test_titles_are_read(tmp_path: Path, text: str, title: str | None) -> None:
    """The title in front matter comes before the first heading."""
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    assert title_of(Documents.read(tmp_path).files["page.md"]) == title


PAGES = {
    "peas.md": "# Peas\n\n## Sowing\n\nSow peas in March, two inches deep.\n\n## Harvest\n\nPick.\n",
    "soil.md": "# Soil\n\n" + "".join(f"## Bed {number}\n\nBed {number} is wet.\n\n" for number in range(20)),
}
TASKS = """
[[task]]
id = "sowing"
need = "when do seeds go into the ground"
add = "sow peas inches"
topics = ["Sowing"]
again = "sow peas"
sections = ["peas.md > Sowing"]
holds = ['two inches']

[absent]
garden = [["bicycle repair", 'bicycle']]
"""


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    """Two pages and a task about them."""
    (tmp_path / "garden").mkdir()
    for name, text in PAGES.items():
        (tmp_path / "garden" / name).write_text(text, encoding="utf-8")
    (tmp_path / "day.toml").write_text(TASKS, encoding="utf-8")
    return tmp_path / "garden"


def _run(garden: Path, *flags: str) -> dict[str, object]:
    written = garden.parent / "figures.json"
    tasks = ["--tasks", str(garden.parent / "day.toml"), "--systems", "fts5,grep", "--json", str(written)]
    assert main([*flags, *tasks]) == 0
    return json.loads(written.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def test_others_are_played_by_the_same_rule(garden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not found in lay words is asked again; all calls and their tokens are counted."""
    found = _run(garden, str(garden), "--days", "lay,terms", "--verbose")
    for system in ("fts5", "grep"):
        lay, terms = (found[day][system]["tasks"][0] for day in ("lay", "terms"))  # type: ignore[index]
        assert (lay["calls"], lay["first"], lay["held"]) == (2, False, True)
        assert (terms["calls"], terms["first"], terms["held"]) == (1, True, True)
        assert lay["tokens"] > terms["tokens"] > 0
    assert "| lay, 1 tasks | tokens | calls | first | listed | held |" in capsys.readouterr().out


def test_absent_topics_and_titles_are_asked(garden: Path) -> None:
    """Nothing is said of bicycles; each page is found by its title."""
    absent_topics = _run(garden, str(garden), "--absent")
    titles = _run(garden, "--titles", str(garden))
    (topics,) = absent_topics["fts5"].values()  # type: ignore[attr-defined]
    (pages,) = titles["fts5"].values()  # type: ignore[attr-defined]
    assert [one["found"] for one in topics] == [False]
    assert [one["question"] for one in pages if one["found"]] == ["Peas", "Soil"]


def test_readme_gets_what_was_measured(garden: Path) -> None:
    """One command plays the days, asks the absent topics, keeps the sums and writes the table."""
    readme, kept = garden.parent / "README.md", garden.parent / "kept.json"
    readme.write_text("# Garden\n\n{}\nold\n{}\n\nMore.\n".format(*MARKS), encoding="utf-8")
    kept.write_text(
        json.dumps({"before": json.loads(KEPT.read_text(encoding="utf-8"))["day"]}), encoding="utf-8"
    )
    _run(garden, str(garden), "--readme", str(readme), "--keep", str(kept))
    sums = json.loads(kept.read_text(encoding="utf-8"))
    text = readme.read_text(encoding="utf-8")
    assert text == f"# Garden\n\n{MARKS[0]}\n{readme_table(sums)}{MARKS[1]}\n\nMore.\n"
    lay = sums["day"]["days"]["lay"]["grep"]
    assert "| 44 tasks in lay words |" in text
    assert f"| `grep` and `sed` | {lay['tokens']} | 2 | 0 | 0 | 1 |" in text
    assert "of 1, FTS5 0 (" in text


@pytest.mark.parametrize(
    ("told", "instead", "flags", "fault"),
    [
        ("> Sowing", "> Reaping", [], "peas.md > Reaping: no such heading"),
        ("two inches", "two feet", [], "no section has 'two feet'"),
        ("'bicycle'", "'peas'", ["--absent"], "peas.md has 'Peas'"),
    ],
    ids=["label", "expression", "absent"],
)
def test_tasks_that_do_not_fit_the_documents_are_refused(
    garden: Path, capsys: pytest.CaptureFixture[str], told: str, instead: str, flags: list[str], fault: str
) -> None:
    """A label of nothing, an expression that matches nowhere, and an absent topic that is present."""
    (garden.parent / "day.toml").write_text(TASKS.replace(told, instead), encoding="utf-8")
    with pytest.raises(SystemExit):
        _run(garden, str(garden), *flags)
    assert fault in capsys.readouterr().err
