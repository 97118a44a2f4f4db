"""A question names sections or describes them; what it names is an answer."""

import pytest

from npl_index.ranking.collection import KnownCollection
from npl_index.ranking.naming import read
from npl_index.ranking.scoring import Query, rank
from npl_index.ranking.verdict import Verdict, judge
from tests.conftest import cases
from tests.npl_index.conftest import collection, document, index_document

CASES = cases("npl_index/ranking/naming")
NOTES = "".join(f"## Usage\n\nLamps and kettles of row {number}.\n\n" for number in range(60))
FILES = {**CASES["files"], "guide/notes.md": f"# Notes\n\n{NOTES}"}
BOTH = KnownCollection([index_document(document(path, text)) for path, text in FILES.items()])


def told(question: str, *topics: str) -> tuple[Verdict, str]:
    """Return the verdict on a question, and the heading of the first text."""
    ranking = rank(BOTH, Query(read(question, BOTH), topics))
    places = [hit.place for hit in ranking.hits if hit.size][:1]
    names = [BOTH.documents[number].tree.sections[index].name for number, index in places]
    return judge(ranking.coverage), "".join(names)


@pytest.mark.parametrize(("question", "heading", "absent"), CASES["named"])
def test_a_section_that_is_named_is_an_answer(question: str, heading: str, absent: list[str]) -> None:
    """Other words that no section has do not matter; a name is absent if sections have only a part of it."""
    verdict, first = told(question)
    assert (verdict.state, first, list(verdict.absent)) == ("held", heading, absent)


@pytest.mark.parametrize("context", CASES["contexts"])
def test_a_topic_that_is_a_heading_is_an_answer(context: str) -> None:
    """The heading is as spelt, and no other has it; a title without text stands for the first text."""
    for topic, heading in {"Caching module": "Caching module", "Limits": "Rows"}.items():
        verdict, first = told(context, topic)
        assert (verdict.state, first) == ("held", heading)
    assert told(context, "Usage")[0].state == "absent"


@pytest.mark.parametrize("question", CASES["absent"])
def test_what_nobody_wrote_is_absent(question: str) -> None:
    """A common heading and a common word name nothing."""
    assert told(question)[0].state == "absent"


def test_lifted_sections_keep_their_order() -> None:
    """Of several names, the section that fits better is first."""
    verdict, first = told("the frobnicator says E1042 connection and E2077")
    assert (verdict.state, first) == ("held", "E1042: connection pool exhausted")


def test_one_document_has_names() -> None:
    """A path may name the only document."""
    alone = collection("# Lamps\n\nLamps hang.\n")
    assert read("part0.md", alone).places == {(0, 0), (0, 1)}


def test_a_text_without_spaces_is_not_read_as_two_words() -> None:
    """There are too many places where such a text could be divided."""
    assert read("lamp" * 10_000, BOTH).said.startswith("lamplamp")
    assert read("lampskettles", BOTH).said == read("lamps kettles", BOTH).said
