"""Words are located in sections as a slow reference does."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.ranking import positions
from npl_index.ranking.bm25f import Concept
from npl_index.ranking.positions import QueryTerms, best_windows, pair_counts, read_positions
from npl_index.ranking.postings import Postings
from tests.npl_index.ranking.counted import counted

WORDS = ["ash", "birch", "cedar", "elm", "fir", "holly", "oak"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=30), min_size=1, max_size=6)


def postings_of(headings: Sequence[list[str]], bodies: Sequence[list[str]]) -> Postings:
    """Index sections without paths; the last one holds every word, so that all are known."""
    _, sections = counted(
        [(heading, [], body) for heading, body in zip([*headings, []], [*bodies, WORDS], strict=True)]
    )
    return Postings(sections)


def row_of(_: Postings, word: str) -> int:
    """Return the row of a word: all are known."""
    return WORDS.index(word)


def concepts_of(postings: Postings, words: Sequence[str]) -> list[Concept]:
    """Make concepts of single words with different weights."""
    return [Concept(1.0 + place, ((row_of(postings, word), 1.0),)) for place, word in enumerate(words)]


@given(bodies=TEXTS, width=st.integers(1, 6))
def test_the_best_window(bodies: list[list[str]], width: int) -> None:
    """The window has the greatest weight of different words among all of its width."""
    postings = postings_of([[] for _ in bodies], bodies)
    wanted = ["ash", "oak", "elm"]
    weight = {word: 1.0 + place for place, word in enumerate(wanted)}
    expected = [
        max(
            (
                sum(weight[word] for word in set(body[begin : begin + width]) if word in weight)
                for begin in range(len(body))
            ),
            default=0.0,
        )
        for body in bodies
    ]
    other = row_of(postings, "fir")  # stands in a pair only, and weighs nothing
    for pairs in ([], [(other, row_of(postings, "ash"))]):
        sought = QueryTerms.of(concepts_of(postings, wanted), pairs)
        texts = read_positions(postings, np.arange(len(bodies)), sought)
        assert best_windows(texts, width).tolist() == expected


@given(headings=TEXTS, bodies=TEXTS)
def test_pairs_stand_side_by_side(headings: list[list[str]], bodies: list[list[str]]) -> None:
    """A pair counts as often as its words follow each other, in order, within a section."""
    size = min(len(headings), len(bodies))
    headings, bodies = headings[:size], bodies[:size]
    postings = postings_of(headings, bodies)
    pairs = [("ash", "oak"), ("oak", "ash"), ("elm", "elm"), ("fir", "holly")]
    rows = [(row_of(postings, first), row_of(postings, other)) for first, other in pairs]
    for concepts in ([], concepts_of(postings, ["cedar", "oak"])):
        texts = read_positions(postings, np.arange(size), QueryTerms.of(concepts, rows))
        for counts, sections in zip(pair_counts(texts), (headings, bodies), strict=True):
            expected = [[list(pairwise(section)).count(pair) for section in sections] for pair in pairs]
            assert counts.tolist() == expected


def test_reading_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of words read is bounded for any length, but the first section is always read."""
    bodies = [["oak"] * 50, ["elm"] * 60, ["fir"] * 10]
    postings = postings_of([[], [], []], bodies)
    for most, expected in ((10, [0]), (60, [0]), (110, [0, 1]), (1_000, [0, 1, 2])):
        monkeypatch.setattr(positions, "MAX_READ", most)
        texts = read_positions(
            postings, np.arange(3), QueryTerms.of(concepts_of(postings, ["oak", "elm", "fir"]))
        )
        assert texts.numbers.tolist() == expected
        assert len(texts.places) <= most
