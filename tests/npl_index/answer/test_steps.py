"""The texts that answer a question, and those that a larger budget adds."""

import pytest

from npl_index.answer.steps import related
from npl_index.ranking.collection import Collection
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank
from tests.npl_index.conftest import collection
from tests.npl_index.ranking.test_scoring import ONE

FILLER = "".join(f"## Part {n}\n\nSomething else about the garden, number {n}.\n\n" for n in range(40))
BEDS = "".join(
    f"## Bed {n}\n\nIn bed {n} there are roses, among many other flowers and herbs.\n\n" for n in range(9)
)
WATERING = "## Watering\n\nWater the roses in the garden each evening.\n\n"
ROSES = "## Roses\n\nPrune roses in spring.\n\n## Tulips\n\nPlant tulips in autumn.\n\n"
FAQ = "# FAQ\n\n## Does it run on Windows?\n\nNot yet.\n\n## Does it run fast?\n\nVery.\n"
ASPECTS = [f"aspect{chr(97 + number)}x" for number in range(26)]


def names(among: Collection, question: str, *, answers: bool) -> list[str]:
    about = related(rank(among, Query(extract_keywords(question))))
    hits = [hit for hit, is_answer in about if is_answer or not answers]
    return [among.documents[hit.document].tree.sections[hit.section].name for hit in hits]


@pytest.mark.parametrize(
    ("text", "question", "answers"),
    [
        (f"# Garden\n\n{FILLER}{WATERING}", "how often to water the roses", ["Watering"]),
        (f"# Garden\n\nWork.\n\n{ROSES}{BEDS}", "prune roses, plant tulips", ["Roses", "Tulips"]),
        (f"# Garden\n\nWork.\n\n{ROSES}{BEDS}", "prune roses", ["Roses"]),
        (FAQ, "does it run on Windows", ["Does it run on Windows?"]),  # a body of stop words is text
        (FAQ, "kafka", []),
    ],
)
def test_answers_are_the_best_sections_of_each_subject(text: str, question: str, answers: list[str]) -> None:
    assert sorted(names(collection(text), question, answers=True)) == answers


def test_a_bare_heading_gives_way_to_its_sections() -> None:
    """A heading without text of its own is not returned; what stands below it is."""
    assert names(ONE, "formatting", answers=True)[0] == "Table Formatting"


def test_a_task_with_many_aspects_brings_the_sections_of_all() -> None:
    text = "".join(f"## About {aspect}\n\nWhat to know of {aspect}.\n\n" for aspect in ASPECTS)
    about = names(collection(f"# All\n\nText.\n\n{text}"), " and ".join(ASPECTS), answers=False)
    assert len(about) == len(ASPECTS)
