"""Counting and weighing, against rank-bm25."""

from __future__ import annotations

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from npl_index.ranking.analysis import commonness
from npl_index.ranking.bm25f import BACKGROUND, FIELD_NORMS, FIELD_WEIGHTS, K1, WeightedPostings, weigh
from npl_index.ranking.postings import Counts, count

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "⌜", "数", "zeta-eta"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=6)


def bodies_only(bodies: list[list[str]]) -> Counts:
    """Count sections that have bodies but neither headings nor paths."""
    empty: list[list[str]] = [[] for _ in bodies]
    return count(empty, empty, bodies)


def scores(postings: WeightedPostings, term: str) -> list[float]:
    """Score each section for one term, as the module's docstring says."""
    result = [0.0] * postings.size
    row = postings.row_of.get(term)
    if row is not None:
        for at in range(postings.starts[row], postings.starts[row + 1]):
            mass = float(postings.masses[at])
            result[int(postings.ids[at])] = float(postings.idf[row]) * mass / (mass + K1)
    return result


@given(texts)
def test_scores_are_those_of_rank_bm25(bodies: list[list[str]]) -> None:
    """With bodies alone a term's score is BM25's, up to the constant factor k1 + 1."""
    postings = weigh([bodies_only(bodies)])
    if not any(bodies):
        assert list(postings.terms) == []
        return
    oracle = BM25Plus(bodies, k1=K1, b=FIELD_NORMS[2], delta=0)
    oracle.idf = {term: float(postings.idf[row]) for term, row in postings.row_of.items()}
    for term in postings.terms:
        expected = oracle.get_scores([term]) / (K1 + 1) * FIELD_WEIGHTS[2]
        assert scores(postings, term) == pytest.approx(list(expected), rel=1e-5)


@given(texts)
def test_idf_is_that_of_rank_bm25_with_background(bodies: list[list[str]]) -> None:
    """Taking the background sections away leaves exactly the library's idf."""
    postings = weigh([bodies_only(bodies)])
    oracle = BM25Plus(bodies if any(bodies) else [["none"]])
    for term, row in postings.row_of.items():
        holders = (len(bodies) + BACKGROUND + 1) / exp(postings.idf[row]) - BACKGROUND * commonness(term)
        assert (len(bodies) + 1) / holders == pytest.approx(exp(oracle.idf[term]), rel=1e-4)


@given(texts)
def test_idf_is_never_negative(bodies: list[list[str]]) -> None:
    """A term that stands in half of the sections, or in all, still counts."""
    assert all(idf > 0 for idf in weigh([bodies_only(bodies)]).idf)


@pytest.mark.parametrize("sections", [1, 2, 3])
def test_few_sections(sections: int) -> None:
    """Files of one to three sections, where BM25 is at its weakest, find their terms."""
    postings = weigh([bodies_only([["alpha"]] * sections)])
    assert all(score > 0 for score in scores(postings, "alpha"))


@given(texts, texts)
def test_merging_is_counting_together(first: list[list[str]], second: list[list[str]]) -> None:
    """Two documents merged have the statistics of one document with all their sections."""
    merged, whole = weigh([bodies_only(first), bodies_only(second)]), weigh([bodies_only(first + second)])
    assert list(merged.terms) == list(whole.terms)
    for term in merged.terms:
        assert scores(merged, term) == pytest.approx(scores(whole, term), rel=1e-6)


def test_fields_weigh_differently() -> None:
    """A word in the heading says more than one in the body, and that more than one in the path."""
    postings = weigh(
        [count([["alpha"], [], []], [[], ["alpha"], []], [["beta"], ["beta"], ["alpha", "beta"]])]
    )
    heading, path, body = scores(postings, "alpha")
    assert heading > body > path > 0


def test_name_postings_tell_headings_from_paths() -> None:
    """What a heading is made of is known; words of its path are no part of it."""
    postings = weigh([count([["alpha"], []], [["beta"], []], [["gamma"], ["gamma"]])])
    shares = {
        term: [float(share) for share in postings.heading_shares[begin:end]]
        for term, begin, end in zip(postings.terms, postings.starts, postings.starts[1:], strict=False)
    }
    assert shares == {"alpha": [1.0], "beta": [0.0], "gamma": [0.0, 0.0]}


def test_a_common_folder_says_nothing() -> None:
    """Words that stand in every section's path, as those of the root folder do, change no score."""
    headings, bodies = [["alpha"], ["beta"]], [["gamma"], ["gamma", "delta"]]
    here = weigh([count(headings, [["docs"], ["docs"]], bodies)])
    plain = weigh([count(headings, [[], []], bodies)])
    for term in plain.terms:
        assert scores(here, term) == scores(plain, term)
    assert scores(here, "docs") == [0, 0]


VARIANTS = {
    "itself": ("environ", {"environ": 1.0}),
    "begins with it": ("env", {"environ"}),
    "it begins with": ("kuberay", {"kube"}),
    "it ends with": ("kuberay", {"ray"}),
    "misspelt": ("direcitve", {"directive"}),
    "letter left out": ("drective", {"directive"}),
    "nothing near": ("xylophone", set()),
    "number": ("12345", set()),
    "too short": ("en", set()),
}


@pytest.mark.parametrize(("term", "expected"), VARIANTS.values(), ids=VARIANTS)
def test_variants(term: str, expected: set[str]) -> None:
    """A query's word finds its abbreviations, its parts and its correct spelling."""
    postings = weigh([bodies_only([["environ", "kube", "ray", "directive", "123456", "ending"]])])
    found = {postings.terms[row]: share for row, share in postings.variants(term)}
    assert set(expected) <= set(found) if expected else not found
    assert all(0 < share <= 1 for share in found.values())
    assert all((share == 1) == (name == term) for name, share in found.items())
