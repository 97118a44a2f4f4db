"""Words are located in sections as a slow reference does."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from npl_index.ranking.bm25f import Concept
from npl_index.ranking.positions import best_windows, pair_counts
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
    """The window has the greatest weight of different words among all of its width, in any order."""
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
    sections = np.arange(len(bodies))[::-1]
    for asked in ([], WORDS):  # a lookup of more words serves as well
        postings.find([row_of(postings, word) for word in asked])
        found = best_windows(postings, concepts_of(postings, wanted), sections, width)
        assert found.tolist() == expected[::-1]


@given(headings=TEXTS, bodies=TEXTS)
def test_pairs_stand_side_by_side(headings: list[list[str]], bodies: list[list[str]]) -> None:
    """A pair counts as often as its words follow each other, in order, within a section."""
    size = min(len(headings), len(bodies))
    headings, bodies = [*headings[:size], []], [*bodies[:size], WORDS]
    postings = postings_of(headings[:size], bodies[:size])
    pairs = [("ash", "oak"), ("oak", "ash"), ("elm", "elm"), ("fir", "holly")]
    rows = [(row_of(postings, first), row_of(postings, other)) for first, other in pairs]
    for asked in ([], WORDS):
        postings.find([row_of(postings, word) for word in asked])
        expected = [
            (number, at, list(pairwise(heading)).count(pair), list(pairwise(body)).count(pair))
            for number, pair in enumerate(pairs)
            for at, (heading, body) in enumerate(zip(headings, bodies, strict=True))
            if pair in (*pairwise(heading), *pairwise(body))
        ]
        assert (
            list(zip(*(column.tolist() for column in pair_counts(postings, rows)), strict=True)) == expected
        )
