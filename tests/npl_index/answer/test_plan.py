"""An answer is the longest prefix of its steps: a larger budget only adds."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.plan import SHORT_REST
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import Answered, write
from npl_index.answer.units import AnswerUnit, selector
from npl_index.choices import DEFAULT_BUDGET
from tests.conftest import cases
from tests.npl_index.conftest import document_set

FORMS = [Json(), Markdown()]
BUDGETS = (80, 120, 150, 200, 260, 340, 450, 600, 700, 900, 1_300, 2_000, 3_000, 5_000, 9_000)


def body(words: int, kind: str = "water") -> str:
    return "".join(f"The {kind} of line {line} is clean.\n\n" for line in range(-(-words // 7)))


def sections(*words: int) -> DocumentSet:
    """Make sections of one document with the given numbers of words."""
    texts = (f"## Bed {number}\n\n{body(count)}" for number, count in enumerate(words))
    return document_set({"garden.md": f"# Garden\n\n{''.join(texts)}"})


def answer(on: DocumentSet, form: Form, budget: int | None, **asked: Any) -> Answered:
    return write(TailorRequest.parse(token_budget=budget, **asked), on, form)


def numbers(units: Sequence[AnswerUnit]) -> set[int]:
    return {place[1] for unit in units for place in unit.places}


FOLDER = {
    f"{name}.md": f"# {name}\n\n"
    + "".join(
        f"## Part {part} of {name}\n\n{body(size, kind)}" for part, size in enumerate((20, 90, 400, 1_500))
    )
    for name, kind in (("bread", "milk"), ("soup", "water"), ("cake", "oil"))
}
ASKED: list[dict[str, Any]] = cases("npl_index/answer/plan")["asked"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("asked", ASKED)
def test_a_larger_budget_loses_no_line(form: Form, asked: dict[str, Any]) -> None:
    on, before = document_set(FOLDER), set[str]()
    for budget in BUDGETS:
        written = answer(on, form, budget, **asked)
        assert on.counter.upper_bound(on.counter.count(written.text)) <= budget
        assert written.value.request_more or not written.value.truncated
        lines = set(written.value.content.split("\n")) - {"…"}
        assert before <= lines, budget
        before = lines
    assert len(before) > 5 or "zanzibar" in str(asked)


@settings(deadline=None)
@given(
    words=st.lists(st.integers(1, 300), min_size=1, max_size=12),
    budget=st.one_of(st.none(), st.integers(1, 2_000)),
    form=st.sampled_from(FORMS),
)
def test_nothing_is_lost(words: list[int], budget: int | None, form: Form) -> None:
    """The text and what is left out are the selected text."""
    on = sections(*words)
    plan = answer(on, form, budget, selectors=["garden"]).plan
    assert numbers(plan.kept) | numbers(plan.left_out) >= set(range(2, 2 + len(words)))
    assert bool(plan.pointers) >= bool(plan.left_out)
    assert budget or not plan.left_out


@pytest.mark.parametrize("asked", [{}, {"selectors": ["pumps"]}])
@pytest.mark.parametrize("form", FORMS)
def test_both_remaining_parts_of_a_cut_section_are_named(form: Form, asked: dict[str, Any]) -> None:
    lines = [f"The {'valve' if number == 6 else 'hose'} of part {number} is closed." for number in range(12)]
    on = document_set({"pumps.md": "\n\n".join(["# Pumps", *lines])})
    for budget in range(20, 200, 2):
        written = answer(on, form, budget, context="valve", **asked)
        rests = {selector(written.plan.documents, rest) for rest in written.plan.left_out if rest.cut}
        assert rests <= set(written.value.request_more), budget


@pytest.mark.parametrize("form", FORMS)
def test_the_sections_after_a_cut_one_are_named(form: Form) -> None:
    on = sections(80, 80, 80)
    for budget in range(20, 200, 4):
        written = answer(on, form, budget, selectors=["garden"])
        assert not written.plan.kept or "## Bed 2" in " ".join(written.value.request_more), budget


@pytest.mark.parametrize("form", FORMS)
def test_a_selected_section_comes_before_others_as_far_as_the_budget_reaches(form: Form) -> None:
    """With a budget, sections that answer the question follow; without one they do not."""
    texts = {
        "a.md": f"# A\n\n## Pumps\n\n{body(70)}",
        "b.md": "# B\n\n## Oil\n\nThe oil of the motor is changed in May.\n",
    }
    on, asked = document_set(texts), {"context": "oil of the motor", "selectors": ["## Pumps"]}
    for budget, titles in ((110 if form is FORMS[1] else 150, ["Pumps"]), (500, ["Pumps", "Oil"])):
        rows = answer(on, form, budget, **asked).value.sections
        assert [row.title for row in rows] == titles
        assert rows[0].token_count > (10 if budget < 200 else 90)
    default = write(TailorRequest.parse(default_budget=DEFAULT_BUDGET, **asked), on, form).value
    assert [row.title for row in default.sections] == ["Pumps"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("budget", [None, 300, 800])
def test_an_ambiguous_selector_brings_the_sections_for_the_question_first(
    form: Form, budget: int | None
) -> None:
    parts = "".join(
        f"## Service {number}\n\n### Example\n\n{body(150, f'reply{number}')}" for number in range(9)
    )
    request = TailorRequest.parse(
        "reply7 of service 7", selectors=["### Example"], token_budget=budget, default_budget=DEFAULT_BUDGET
    )
    written = write(request, document_set({"api.md": f"# Services\n\n{parts}"}), form)
    assert "reply7" in written.plan.kept[0].parts[0].text


@pytest.mark.parametrize("line", range(0, 200, 11))
def test_a_short_rest_joins_its_piece(line: int) -> None:
    """Its name would cost as much as its text."""
    lines = [
        f"The {'valve' if number == line else 'hose'} of part {number} is closed." for number in range(60)
    ]
    on = document_set({"pumps.md": "\n\n".join(["# Pumps", *lines])})
    plan = answer(on, Markdown(), DEFAULT_BUDGET, context="is the valve of a part closed").plan
    assert plan.kept
    assert all(rest.tokens > SHORT_REST for rest in plan.left_out)
