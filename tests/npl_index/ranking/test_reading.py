"""Reading sections word by word, compared with doing it slowly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.ranking import reading
from npl_index.ranking.bm25f import Concept, WeightedPostings, weigh
from npl_index.ranking.postings import count
from npl_index.ranking.reading import best_windows, counts_of, held, only, read

WORDS = ["ash", "birch", "cedar", "elm", "fir", "holly", "oak"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=30), min_size=1, max_size=6)


def postings_of(headings: Sequence[list[str]], bodies: Sequence[list[str]]) -> WeightedPostings:
    """Index sections without paths; the last one holds every word, so that all are known."""
    none: list[list[str]] = [[] for _ in range(len(bodies) + 1)]
    return weigh([count([*headings, []], none, [*bodies, WORDS])])


def concepts_of(postings: WeightedPostings, words: Sequence[str]) -> list[Concept]:
    """Make concepts of single words with different weights."""
    return [Concept(1.0 + place, ((postings.row_of[word], 1.0),)) for place, word in enumerate(words)]


@given(bodies=TEXTS, width=st.integers(1, 6))
def test_the_best_window(bodies: list[list[str]], width: int) -> None:
    """It is that of all stretches of the width whose different words weigh most."""
    postings = postings_of([[] for _ in bodies], bodies)
    wanted = ["ash", "oak", "elm"]
    texts = read(postings, np.arange(len(bodies)))
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
    concepts = concepts_of(postings, wanted)
    for some in (texts, only(texts, [postings.row_of[word] for word in wanted])):
        assert best_windows(some.bodies, concepts, width).tolist() == expected


@given(headings=TEXTS, bodies=TEXTS)
def test_pairs_stand_side_by_side(headings: list[list[str]], bodies: list[list[str]]) -> None:
    """A pair counts as often as its words follow each other, in order, within a section."""
    size = min(len(headings), len(bodies))
    headings, bodies = headings[:size], bodies[:size]
    postings = postings_of(headings, bodies)
    pairs = [("ash", "oak"), ("oak", "ash"), ("elm", "elm"), ("fir", "holly")]
    rows = [(postings.row_of[one], postings.row_of[other]) for one, other in pairs]
    texts = read(postings, np.arange(size))
    few = only(texts, sorted({row for pair in rows for row in pair}))
    for words, sections in (
        (texts.headings, headings),
        (texts.bodies, bodies),
        (few.headings, headings),
        (few.bodies, bodies),
    ):
        expected = [[list(pairwise(section)).count(pair) for section in sections] for pair in pairs]
        assert counts_of(words, rows).tolist() == expected


@given(headings=TEXTS, bodies=TEXTS)
def test_what_a_section_holds(headings: list[list[str]], bodies: list[list[str]]) -> None:
    """A concept has the share of the best of its words that stands in heading or body."""
    size = min(len(headings), len(bodies))
    postings = postings_of(headings[:size], bodies[:size])
    rows = postings.row_of
    concepts = [
        Concept(2.0, ((rows["oak"], 1.0), (rows["ash"], 0.25), (rows["elm"], 0.5))),
        Concept(1.0, ((rows["fir"], 1.0),)),
    ]
    texts = read(postings, np.arange(size))
    shares = held(texts, concepts)
    few = only(texts, [row for concept in concepts for row, _ in concept.variants])
    assert held(few, concepts).tolist() == shares.tolist()
    for place in range(size):
        words = {*headings[place], *bodies[place]}
        best = max(
            share
            for word, share in (("oak", 1.0), ("ash", 0.25), ("elm", 0.5), ("", 0.0))
            if not word or word in words
        )
        assert shares[:, place].tolist() == [best, float("fir" in words)]


def test_reading_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long sections are, no more than so many words are read, but always of the first section."""
    bodies = [["oak"] * 50, ["elm"] * 60, ["fir"] * 10]
    postings = postings_of([[], [], []], bodies)
    for most, expected in ((10, [0]), (60, [0]), (110, [0, 1]), (1_000, [0, 1, 2])):
        monkeypatch.setattr(reading, "MAX_READ", most)
        texts = read(postings, np.arange(3))
        assert texts.numbers.tolist() == expected
        assert len(texts.bodies.rows) <= most
