"""Words are located in texts, and a word that stands somewhere is never called absent."""

import re
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from npl_index.answer.cutting import cut
from npl_index.answer.finding import nowhere
from npl_index.ranking.analysis import locate
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.naming import read
from npl_index.ranking.scoring import Query, rank
from npl_index.ranking.spelling import holds, pattern
from npl_index.ranking.verdict import judge
from tests.conftest import cases
from tests.npl_index.conftest import document_set, lines_run

CASES = cases("words")
STANDS = [(text, word) for text, *words in CASES["stands"] for word in words]
FILLER = "Paragraph {} says something of the weather in the garden.\n\n"


def absent(text: str, question: str) -> set[str]:
    """Return the words that a search and an answer call absent."""
    documents = document_set({"a.md": f"# Garden\n\n{text}\n\n## Other\n\nweather\n"})
    coverage = rank(documents.collection, Query(read(question, documents.collection))).coverage
    return {*nowhere(documents, coverage), *judge(coverage).absent}


@pytest.mark.parametrize(("text", "word"), STANDS)
def test_a_word_stands_in_a_text(text: str, word: str) -> None:
    """A word is present in any spelling, and a long section is cut around it."""
    assert absent(text, word) == set()
    filler = "".join(map(FILLER.format, range(40)))
    documents = document_set({"a.md": f"# T\n\n{filler}{text}\n\n{filler}"})
    documents = replace(documents, wanted=read(word, documents.collection).weights)
    piece = cut(documents, documents.part((0, 1)), 60)
    assert piece
    assert text in piece.text


@pytest.mark.parametrize(("text", "word"), CASES["absent"])
def test_another_word_is_absent(text: str, word: str) -> None:
    """An identifier does not match a different one with the same parts."""
    assert absent(text, f"is {word} here") == {word}


@pytest.mark.parametrize(("text", "phrase", "present"), CASES["phrases"])
def test_a_phrase_is_compared_as_a_page_shows_it(text: str, phrase: str, present: bool) -> None:
    """Markup, accents and line ends make no difference, different words do."""
    assert holds(text, phrase) is present


@pytest.mark.parametrize("word", ["needle", "иголка", "kırmızı"])
def test_the_end_of_a_long_text_is_searched(word: str) -> None:
    line = "The garden is green, é.\n"
    text = line * 20_000 + f"Here is the {word}.\n"
    wanted = dict(extract_keywords(word).weights)
    assert sorted({at for at, _ in locate(text, wanted, 9)}) == [text.index(word)]
    double, single = (lines_run(partial(locate, line * size, wanted, 9)) for size in (2_000, 1_000))
    assert double <= 2 * single


PARTS = st.sampled_from(
    ["pool", "Mode", "maxRetries", "v2", "10", "9", "x", "größe", "łódź", "the", "isn't", "重", "轴承"]
)
JOINTS = st.sampled_from(
    ["-", "--", ".", "_", "+", "'", "’", "#", ":", "/", "*", "\\_", "\u00ad", " ", "\n", "`", "(", "c++"]
)
RUNS = st.lists(st.tuples(PARTS, JOINTS), min_size=1, max_size=6).map(lambda run: "".join(map("".join, run)))


@given(RUNS, RUNS)
@example("pool-10c++", "10c++")
def test_a_word_that_is_called_absent_stands_nowhere(text: str, question: str) -> None:
    for word in absent(text, question):
        assert not re.search(pattern(word), text, re.IGNORECASE), word


ANY = st.characters(categories=["L", "N", "P", "S", "Zs"])


@given(st.text(ANY, max_size=80), st.text(ANY, max_size=40))
def test_no_word_of_any_text_is_called_absent(text: str, question: str) -> None:
    for word in absent(text, f"{text[10:30]} {question}"):
        assert not re.search(pattern(word), text, re.IGNORECASE), word
