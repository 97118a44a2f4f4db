"""The verdict on an answer follows from the question's words in its sections."""

from functools import partial

import pytest

from npl_index.ranking.collection import Collection
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank
from npl_index.ranking.spelling import MAX_SHOWN
from npl_index.ranking.verdict import MAX_WORDS, Verdict, judge
from tests.conftest import case_text, cases
from tests.npl_index.conftest import collection, lines_run

CACHE = case_text("npl_index/ranking/verdict/cache.md")
SERVER = case_text("npl_index/ranking/verdict/server.md")
BOTH = collection(CACHE, SERVER)


def told(question: str, *topics: str, among: Collection = BOTH) -> Verdict:
    """Ask a question and return its verdict."""
    return judge(rank(among, Query(extract_keywords(question), topics)).coverage)


HELD = {
    **cases("npl_index/ranking/verdict")["held"],
    "unknown words that are repeated": f"processing time of the middleware {'lorem ipsum dolor ' * 200}",
}

ABSENT = cases("npl_index/ranking/verdict")["absent"]


@pytest.mark.parametrize("question", HELD.values(), ids=HELD)
def test_a_question_that_sections_answer_is_held(question: str) -> None:
    """One section has the words that matter."""
    assert told(question).state == "held"


@pytest.mark.parametrize(("question", "words"), ABSENT.values(), ids=ABSENT)
def test_a_question_about_something_else_is_absent(question: str, words: list[str] | None) -> None:
    """No section has its rare words, which are named as the caller wrote them."""
    verdict = told(question)
    assert verdict.state == "absent"
    assert words is None or list(verdict.absent) == words
    assert len(verdict.absent) <= MAX_WORDS


def test_words_are_named_as_written_most_telling_first() -> None:
    """Identifiers come before words, rare words before common ones; verbs like "use" are not missed."""
    verdict = told("Configure the Middleware, `Kafka` and ZOO_HOME to add a header.")
    assert verdict.absent == ("ZOO_HOME", "Kafka")
    assert verdict.held[-1] == "add"
    assert set(verdict.held) == {"Middleware", "header", "add"}


@pytest.mark.parametrize("word", ["x" * 20_000, "a-b_c." * 500, "/".join(["部分"] * 500)])
def test_a_long_word_is_named_by_its_beginning(word: str) -> None:
    """The name of any word costs few tokens."""
    verdict = told(word)
    assert verdict.absent
    assert all(len(word) <= MAX_SHOWN for word in verdict.absent)


@pytest.mark.thorough
@pytest.mark.parametrize("part", ["堆", "数据库连接", "ﷺ", "x_", "größe-", "x*", "\u00ad"])
def test_a_question_without_spaces_takes_time_in_proportion(part: str) -> None:
    told(f"{part} harvest")  # reads the lists of words
    double, single = (lines_run(partial(told, part * (size // len(part)))) for size in (4_000, 2_000))
    assert double < 2.5 * single
    assert lines_run(partial(told, part * 100_000)) < 25 * double


def test_the_best_section_holds_too_little() -> None:
    """The best section is weak if another of the first ones has the question's words."""
    question = "middleware adds the processing time to each response"
    among = collection(CACHE, SERVER, "".join(f"## Note {number}\n\nText.\n\n" for number in range(500)))
    assert told(question, among=among).state == "held"
    verdict = told(f"{'installation ' * 60}{question}", among=among)
    assert verdict.held == ("installation",)
    assert verdict.state == "weak"


def test_more_sections_need_more_evidence() -> None:
    """A single page has fewer words by chance than many pages."""
    question = "which delay between groups of lamps fits a clock"
    notes = "".join(f"## Note {number}\n\nText.\n\n" for number in range(500))
    assert told(question).state == "held"
    assert told(question, among=collection(CACHE, SERVER, notes)).state == "absent"


@pytest.mark.parametrize(("planted", "state"), [(14, "held"), (1, "absent")])
def test_sections_answer_a_long_task_together(planted: int, state: str) -> None:
    """No section has enough of a long task alone; a few about its parts have it together."""
    beds = [" ".join(f"{first}{letter}vetch" for letter in "kmp") for first in "abcdefghijklno"]
    texts = [bed if number < planted else "Empty." for number, bed in enumerate(beds * 36)]
    among = collection("".join(f"## Bed {number}\n\n{text}\n\n" for number, text in enumerate(texts)))
    assert told("; ".join(beds), among=among).state == state


def test_words_of_a_topic_belong_to_the_question() -> None:
    """The verdict says whether a named heading exists."""
    assert told("", "Cache directory").state == "held"
    assert told("", "Kafka rebalancing") == Verdict(("Kafka", "rebalancing"), (), "absent")


def test_a_word_counts_wherever_it_stands() -> None:
    """A word that an edit removes is absent afterwards; an added one is not."""
    assert told("Kafka", among=collection(CACHE)).state == "absent"
    assert told("Kafka", among=collection(CACHE, "# Queue\n\nKafka.\n")).state == "held"
    assert told("middleware", among=collection(CACHE)).absent == ("middleware",)
