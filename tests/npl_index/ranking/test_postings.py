"""Counts and weights agree with rank-bm25."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from npl_index.ranking.bm25f import BACKGROUND, BODY_NORM, FIELD_WEIGHTS, K1, Concept, Passages, idf, match
from npl_index.ranking.postings import Postings
from npl_index.ranking.vocabulary import KnownVocabulary
from npl_index.ranking.wordlists import commonness
from tests.conftest import cases
from tests.npl_index.ranking.counted import Fields, counted

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "⌜", "数", "zeta-eta"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=6)


def passages_of(*documents: Fields) -> Passages:
    """Weigh sections that are given by their fields."""
    vocabulary, sections = counted(*documents)
    return Passages(np.arange(len(sections)), Postings(sections), vocabulary)


def known(passages: Passages) -> list[tuple[int, str]]:
    """Return the known rows and terms."""
    vocabulary = passages.vocabulary
    assert isinstance(vocabulary, KnownVocabulary)
    return vocabulary.between("", "\U0010ffff")


def bodies_only(bodies: list[list[str]]) -> Fields:
    """Return sections that have bodies but neither headings nor paths."""
    return [([], [], body) for body in bodies]


def scores(passages: Passages, row: int) -> list[float]:
    rarity = float(idf(passages.vocabulary, [row])[0])
    return [rarity * float(score) for score in match(passages, [Concept(rarity, ((row, 1.0),))]).scores]


@given(texts)
def test_scores_are_those_of_rank_bm25(bodies: list[list[str]]) -> None:
    """With bodies alone a term's score is BM25's, up to the constant factor k1 + 1."""
    passages = passages_of(bodies_only(bodies))
    if not any(bodies):
        assert known(passages) == []
        return
    oracle = BM25Plus(bodies, k1=K1, b=BODY_NORM, delta=0)
    rows = known(passages)
    oracle.idf = {term: float(idf(passages.vocabulary, [row])[0]) for row, term in rows}
    for row, term in rows:
        expected = oracle.get_scores([term]) / (K1 + 1) * FIELD_WEIGHTS[2]
        assert scores(passages, row) == pytest.approx(list(expected), rel=1e-5)


@given(texts)
def test_idf_is_that_of_rank_bm25_with_background(bodies: list[list[str]]) -> None:
    """Taking the background sections away leaves exactly the library's idf."""
    passages = passages_of(bodies_only(bodies))
    oracle = BM25Plus(bodies if any(bodies) else [["none"]])
    for row, term in known(passages):
        rarity = idf(passages.vocabulary, [row])[0]
        holders = (len(bodies) + BACKGROUND + 1) / exp(rarity) - BACKGROUND * commonness(term)
        assert (len(bodies) + 1) / holders == pytest.approx(exp(oracle.idf[term]), rel=1e-4)


@given(texts)
def test_idf_is_never_negative(bodies: list[list[str]]) -> None:
    """A term that stands in half of the sections, or in all, still counts."""
    passages = passages_of(bodies_only(bodies))
    assert (idf(passages.vocabulary, range(len(known(passages)))) > 0).all()


@pytest.mark.parametrize("sections", [1, 2, 3])
def test_few_sections(sections: int) -> None:
    """Files of one to three sections, where BM25 is at its weakest, find their terms."""
    passages = passages_of(bodies_only([["alpha"]] * sections))
    assert all(score > 0 for score in scores(passages, 0))


@given(texts, texts)
def test_joining_is_counting_together(first: list[list[str]], second: list[list[str]]) -> None:
    joined = passages_of(bodies_only(first), bodies_only(second))
    whole = passages_of(bodies_only(first + second))
    assert known(joined) == known(whole)
    for row, _ in known(joined):
        assert scores(joined, row) == scores(whole, row)


def test_fields_weigh_differently() -> None:
    """A word in the heading says more than one in the body, and that more than one in the path."""
    passages = passages_of(
        [(["alpha"], [], ["beta"]), ([], ["alpha"], ["beta"]), ([], [], ["alpha", "beta"])]
    )
    heading, path, body = scores(passages, 0)
    assert heading > body > path > 0


def test_a_common_folder_says_nothing() -> None:
    """Words in every section's path, such as those of the root folder, change no score."""
    here, plain = (
        passages_of([(["alpha"], path, ["gamma"]), (["beta"], path, ["gamma", "delta"])])
        for path in (["docs"], [])
    )
    rows = {term: row for row, term in known(here)}
    for row, term in known(plain):
        assert scores(here, rows[term]) == scores(plain, row)
    assert scores(here, rows["docs"]) == [0, 0]


VARIANTS = cases("npl_index/ranking/postings")["variants"]


@pytest.mark.parametrize(("term", "expected"), VARIANTS.values(), ids=VARIANTS)
def test_variants(term: str, expected: list[str]) -> None:
    """A query's word matches its abbreviations, its parts and its correct spelling."""
    passages = passages_of(bodies_only([["environ", "kube", "ray", "directive", "123456", "ending"]]))
    shares = {passages.vocabulary.texts([row])[0]: share for row, share in passages.vocabulary.variants(term)}
    assert set(expected) <= set(shares) if expected else not shares
    assert all(0 < share <= 1 for share in shares.values())
    assert all((share == 1) == (name == term) for name, share in shares.items())
