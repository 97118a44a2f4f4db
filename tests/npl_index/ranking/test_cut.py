"""The cut returns the useful beginning of the ranking."""

import pytest

from npl_index.ranking import cut as cutting
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.indexing import Collection
from npl_index.ranking.scoring import Hit, Query, rank
from tests.conftest import case_text
from tests.npl_index.conftest import collection
from tests.npl_index.ranking.test_scoring import ONE, ask, names


def cut(hits: list[Hit], among: Collection, query: Query, *, generous: bool = False) -> list[Hit]:
    return cutting.cut(rank(among, query)._replace(hits=hits), generous=generous)


def asked(context: str, *topics: str) -> Query:
    """Make the query that :func:`ask` asks."""
    return Query(extract_keywords(context), topics)


def test_the_cut_keeps_the_best() -> None:
    """The cut returns the first few hits, and with a budget at least as many."""
    hits, query = ask("agent definition of a table list"), asked("agent definition of a table list")
    few, more = cut(hits, ONE, query), cut(hits, ONE, query, generous=True)
    assert few == hits[: len(few)]
    assert 0 < len(few) <= len(more) <= len(hits)
    assert set(few) <= set(more)


def test_a_bare_heading_gives_way_to_its_sections() -> None:
    """A heading without text of its own is not returned; what stands below it is."""
    hits = ask("formatting")
    assert "Formatting" in names(hits)
    assert names(cut(hits, ONE, asked("formatting")))[0] == "Table Formatting"


def test_named_topics_survive_the_cut() -> None:
    topics = ("agent declaration", "definition list", "runtime environment", "table formatting")
    context = "corner marks with name and type of an agent declaration"
    hits = ask(context, *topics)
    wanted = {"Agent Declaration", "Definition List", "Runtime Environment", "Table Formatting"}
    assert wanted <= set(names(cut(hits, ONE, asked(context, *topics))))


def test_cutting_nothing() -> None:
    assert cut([], ONE, asked("nothing")) == []


def test_a_short_question_brings_its_section() -> None:
    """If one section answers, it comes alone, at any budget."""
    filler = "".join(f"## Part {n}\n\nSomething else about the garden, number {n}.\n\n" for n in range(40))
    among = collection(f"# Garden\n\n{filler}## Watering\n\nWater the roses in the garden each evening.\n")
    question = "how often to water the roses"
    kept = cut(ask(question, among=among), among, asked(question), generous=True)
    assert names(kept, among) == ["Watering"]


def test_a_task_with_many_aspects_brings_the_sections_of_all() -> None:
    """A budget sets no fixed number of sections."""
    aspects = [f"aspect{chr(97 + n)}x" for n in range(26)]
    text = "".join(f"## About {aspect}\n\nWhat to know of {aspect}.\n\n" for aspect in aspects)
    among = collection(f"# All\n\nText.\n\n{text}")
    task = " and ".join(aspects)
    kept = cut(ask(task, among=among), among, asked(task), generous=True)
    assert len(kept) == len(aspects)


def test_nothing_better_is_passed_over() -> None:
    """The result is the beginning of the ranking, without headings that have no text."""
    question = "tables and lists with a definition, an agent, formatting and the environment"
    hits = [hit for hit in ask(question) if hit.size]
    for generous in (False, True):
        kept = cut(hits, ONE, asked(question), generous=generous)
        assert kept == hits[: len(kept)]


def test_a_body_of_stop_words_is_text() -> None:
    """A section that says "Not yet." answers its heading's question."""
    among = collection("# FAQ\n\n## Does it run on Windows?\n\nNot yet.\n\n## Does it run fast?\n\nVery.\n")
    question = "does it run on Windows"
    for generous in (False, True):
        kept = cut(ask(question, among=among), among, asked(question), generous=generous)
        assert names(kept, among)[0] == "Does it run on Windows?"


def test_half_of_a_question_is_not_its_answer() -> None:
    """The section with the second half comes too; then only nearly equal sections follow."""
    roses, tulips, filler = (
        "## Roses\n\nPrune roses in spring.\n\n",
        "## Tulips\n\nPlant tulips in autumn.\n\n",
        "".join(
            f"## Bed {n}\n\nIn bed {n} there are roses, among many other flowers and herbs.\n\n"
            for n in range(9)
        ),
    )
    among = collection(f"# Garden\n\nWork.\n\n{roses}{tulips}{filler}")
    for question, expected in (
        ("prune roses, plant tulips", {"Roses", "Tulips"}),
        ("prune roses", {"Roses"}),
    ):
        kept = cut(ask(question, among=among), among, asked(question), generous=True)
        assert set(names(kept, among)) == expected


def test_a_task_with_many_aspects_brings_other_documents_first() -> None:
    """Each document gives a section before the best gives a second, slightly better one."""
    aspects = [f"aspect{chr(97 + n)}x" for n in range(26)]
    half, other = " ".join(aspects[:17]), " ".join(aspects[17:])
    among = collection(
        f"# One\n\n## First\n\n{half}.\n\n## Second\n\n{half}.\n", f"# Two\n\n## Third\n\n{other}.\n"
    )
    task = " and ".join(aspects)
    hits = [hit for hit in ask(task, among=among) if hit.size]
    kept = cut(hits, among, asked(task), generous=True)
    assert [hit.document for hit in kept][:3] == [0, 1, 0]


LAMP = case_text("npl_index/ranking/cut/lamp.md")


@pytest.mark.parametrize(
    ("more", "kept"), [(0, ["Charging the lamp", "Plate of the lamp"]), (60, ["Charging the lamp"])]
)
def test_a_further_section_follows_a_short_one(more: int, kept: list[str]) -> None:
    """In a search of a few documents a short section is followed by another, a long one is not."""
    text = "It is quiet there, and nothing else happens until the morning. " * more
    among = collection(LAMP.format(text))
    ranking = rank(among, asked("charging the lamp"))
    assert names(cutting.best_of_each_subject(ranking, among), among) == kept
