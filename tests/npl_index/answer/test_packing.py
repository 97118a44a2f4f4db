"""Promises of :mod:`npl_index.answer.packing`, for sections of known lengths."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npl_index.answer.document_set import AnswerUnit, DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.ledger import Ledger
from npl_index.answer.packing import Packing
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import find, write
from npl_index.answer.units import selector
from npl_index.ranking.scoring import DEFAULT_WEIGHTS
from tests.npl_index.conftest import document_set

WORD = "water "
FORMS = [Json(), Markdown()]


def sections(*words: int) -> DocumentSet:
    """Make sections of one document with the given numbers of words, four a line."""
    texts = (f"## Bed {number}\n\n{_body(count)}\n" for number, count in enumerate(words))
    return document_set({"garden.md": "\n".join(texts)})


def _body(words: int) -> str:
    lines = [WORD * 4] * (words // 4) + [WORD * (words % 4)]
    return "".join(f"{line.strip()}.\n\n" for line in lines if line)


def packed(
    on: DocumentSet,
    token_budget: int | None,
    form: Form,
    whole: int | None = None,
    units: Sequence[AnswerUnit] | None = None,
) -> Packing:
    """Pack all sections, the first one best."""
    asked = TailorRequest.parse(context="nothing like it")
    numbers = range(1, len(on.tree(0).sections))
    units = units or [AnswerUnit((on.part((0, number)),), 1 - number / 100) for number in numbers]
    candidates = replace(
        find(asked, on, DEFAULT_WEIGHTS), units=units, whole=whole, piece=whole or 0, best=frozenset({(0, 1)})
    )
    frame = write(asked, on, form).value
    return Packing(candidates, Ledger(form.on(on), token_budget), frame, ()).pack()


def numbers(units: Sequence[AnswerUnit]) -> list[int]:
    return [place[1] for unit in units for place in unit.places]


@pytest.mark.parametrize("form", FORMS)
def test_a_better_unit_is_cut_before_a_lesser_one_is_kept(form: Form) -> None:
    answer = packed(sections(20, 800, 4), 500, form)
    assert numbers(answer.kept)[:2] == [1, 2]
    assert answer.kept[1].cut
    assert numbers(answer.rests) == [2]


@pytest.mark.parametrize("form", FORMS)
def test_a_long_text_is_cut_to_what_one_may_have(form: Form) -> None:
    answer = packed(sections(600, 20), 700, form, whole=100)
    assert numbers(answer.kept) == [1, 2]
    assert 50 < answer.kept[0].tokens <= 100


@pytest.mark.parametrize("selectors", [(), ("pumps",)])
@pytest.mark.parametrize("form", FORMS)
def test_both_remaining_parts_of_a_cut_section_are_named(form: Form, selectors: Sequence[str]) -> None:
    lines = [f"The {'valve' if number == 6 else 'hose'} of part {number} is closed." for number in range(12)]
    on = document_set({"pumps.md": "\n\n".join(["# Pumps", *lines])})
    for token_budget in range(20, 200, 2):
        request = TailorRequest.parse("valve", selectors=selectors, token_budget=token_budget)
        answer = write(request, on, form)
        rests = {selector(answer.packed.documents, rest) for rest in answer.packed.rests}
        assert rests <= set(answer.value.request_more), token_budget


@pytest.mark.parametrize("form", FORMS)
def test_the_sections_after_a_cut_one_are_named(form: Form) -> None:
    on = sections(80, 80, 80)
    for token_budget in range(20, 200, 4):
        request = TailorRequest.parse(selectors=["garden"], token_budget=token_budget)
        answer = write(request, on, form)
        names = answer.value.request_more
        assert not answer.packed.kept or "## Bed 2" in " ".join(names), token_budget


@pytest.mark.parametrize("form", FORMS)
def test_sections_that_do_not_fit_together_are_tried_one_by_one(form: Form) -> None:
    """A section with its subsections is one unit only as long as it fits."""
    on = document_set({"garden.md": f"# Beds\n\n{_body(40)}## One\n\n{_body(40)}## Two\n\n{_body(600)}"})
    family = [AnswerUnit(tuple(on.part((0, number), chosen=True) for number in (1, 2, 3)), 1.0)]
    assert packed(on, 3_000, form, units=family).kept == family
    answer = packed(on, 500, form, units=family)
    assert numbers(answer.kept)[:2] == [1, 2]
    assert all(len(unit.parts) == 1 for unit in answer.kept)


@settings(deadline=None)
@given(
    words=st.lists(st.integers(1, 300), min_size=1, max_size=12),
    token_budget=st.one_of(st.none(), st.integers(1, 2_000)),
    form=st.sampled_from(FORMS),
)
def test_nothing_is_lost(words: list[int], token_budget: int | None, form: Form) -> None:
    """Kept, omitted and remaining parts together are the wanted text."""
    on = sections(*words)
    answer = packed(on, token_budget, form)
    assert {*numbers(answer.kept), *numbers(answer.dropped)} == set(range(1, len(words) + 1))
    assert not set(numbers(answer.kept)) & set(numbers(answer.dropped))
    assert token_budget is not None or not answer.truncated
    assert bool(answer.pointers) >= answer.truncated
    better = [unit for unit in answer.dropped if answer.kept and unit.score > answer.kept[-1].score]
    assert len(better) <= len(answer.pointers)
    scores = [unit.score for unit in answer.kept]
    assert scores == sorted(scores, reverse=True)
