"""Terms of words, and keywords of contexts."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.ranking.analysis import terms
from npl_index.ranking.keywords import MAX_QUERY_TERMS, extract_keywords
from npl_index.ranking.spelling import MAX_ANALYSED
from npl_index.ranking.wordlists import commonness, stop_words
from tests.conftest import cases

TERMS = cases("npl_index/ranking/terms")


@pytest.mark.parametrize(("text", "expected"), TERMS.values(), ids=TERMS)
def test_terms(text: str, expected: list[str]) -> None:
    """Every spelling of a word leads to the terms of a search for it."""
    assert terms(text) == expected


def test_stop_words_are_kept_on_request() -> None:
    assert terms("How to be", keep_stop_words=True) == ["how", "to", "be"]
    assert terms("How to be") == []


@given(st.text(max_size=300))
def test_terms_of_any_text(text: str) -> None:
    """Any text yields terms that are not empty, hold no blanks, and are the same each time."""
    words = terms(text)
    assert words == terms(text)
    assert all(term and not any(char.isspace() for char in term) for term in words)


@given(st.characters(categories=["Lu", "Ll", "Lo"]), st.integers(1, 3))
def test_every_letter_can_be_found(letter: str, times: int) -> None:
    """A word in any script gives at least one term, if only among the stop words."""
    word = letter * times
    parts = unicodedata.normalize("NFKD", word)
    letters = any(unicodedata.category(char)[0] in "LN" for char in parts)
    assert terms(word, keep_stop_words=True) or not letters


def test_decomposed_and_composed_are_one() -> None:
    """Unicode's two ways to write an accent give equal terms."""
    assert terms("résumé") == terms("re\u0301sume\u0301")


KEYWORDS = cases("npl_index/ranking/analysis")


@pytest.mark.parametrize(("text", "expected"), KEYWORDS.values(), ids=KEYWORDS)
def test_keywords_for_people(text: str, expected: list[str]) -> None:
    """Identifiers, phrases and technical terms are shown as they were written."""
    assert set(expected) <= set(words := extract_keywords(text).words)
    assert all(word in text.lower() for word in words if not text.isascii())


def test_keywords_are_best_first() -> None:
    """A technical term comes before a word that says nothing about the subject."""
    words = extract_keywords("give me an example of a handlebars template and some other thing").words
    assert words.index("handlebars") < words.index("example")


def test_keywords_leave_stop_words_out() -> None:
    keywords = extract_keywords("how do I use the fence when there is no other one")
    assert not stop_words() & set(keywords.words)
    assert not stop_words() & {term for term, _ in keywords.weights}


def test_a_question_of_stop_words_still_asks() -> None:
    """When there is nothing else, stop words are what is looked for."""
    assert dict(extract_keywords("How to be?").weights).keys() == {"how", "to", "be"}


def test_repeated_words_weigh_more_and_question_words_less() -> None:
    """Weights follow the emphasis of the context."""
    weights = dict(extract_keywords("explain fences, nested fences and more fences, and tables").weights)
    assert weights["fenc"] > weights["tabl"] > weights["explain"]


@pytest.mark.parametrize("forms", ["owns owner ownership", "verify verification", "forbid forbidden"])
def test_forms_and_nouns_of_a_verb_are_one_term(forms: str) -> None:
    assert len(set(terms(forms))) == 1


def test_neighbours_are_pairs() -> None:
    assert ("defin", "list") in extract_keywords("a definition list").pairs


def test_parts_of_identifiers_are_terms_of_the_query() -> None:
    """Every part of an identifier is a term of the query, even if a long question drops terms."""
    names = " ".join(f"rare{number}x the-time-{number % 9}_of_{number}" for number in range(60))
    keywords = extract_keywords(f"{names} the-time-8_of_9")
    assert {term for parts in keywords.parts for term in parts} <= dict(keywords.weights).keys()


@given(st.text(max_size=400))
def test_keywords_of_any_text(text: str) -> None:
    """Keywords of any text are unique, bounded and positive."""
    keywords = extract_keywords(text)
    assert len(set(keywords.words)) == len(keywords.words)
    assert len(keywords.weights) <= MAX_QUERY_TERMS
    assert all(weight > 0 for _, weight in keywords.weights)
    known = {term for term, _ in keywords.weights}
    assert all(first in known and other in known for first, other in keywords.pairs)


def test_a_huge_context_is_sampled() -> None:
    """Of a very long text the beginning and the end count, so that time stays bounded."""
    filler = "filler " * (MAX_ANALYSED // 7)
    keywords = dict(
        extract_keywords(f"aardvark {filler} {filler} middlemost {filler} {filler} zebra").weights
    )
    assert "aardvark" in keywords
    assert "zebra" in keywords
    assert "middlemost" not in keywords


@pytest.mark.parametrize("unit", ["x", "漢", "a_", "é.1", "\\n", "🎯"])
def test_ten_megabytes_without_a_blank(unit: str) -> None:
    """A text that is one endless word costs no more than a long one."""
    assert len(extract_keywords(unit * (10_000_000 // len(unit))).weights) <= MAX_QUERY_TERMS


def test_commonness_is_a_share() -> None:
    """Commonness of English words lies between never and always; an invented word is rare."""
    assert 0 < commonness("zyzzyva") < commonness("file") < 1
