"""An audit explains an answer section by section and changes nothing."""

import pytest

from npl_index.answer.auditing import BELOW, CUT, KNOWN, NO_ROOM, TAKEN, Audit, audit
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from tests.npl_index.conftest import document_set

FORMS: dict[str, Form] = {"json": Json(), "markdown": Markdown()}
LONG = "\n\n".join(f"Pump number {n} has a valve that is oiled in week {n}." for n in range(40))
TEXTS = {
    "harbour/boats.md": "# Boats\n\n## Sails\n\nSails are dried.\n\n## Hull\n\nThe hull is scraped.\n",
    "harbour/pumps.md": f"First.\n\n# Pumps\n\n## Oiling a pump\n\n{LONG}\n\n## Pump rooms\n\nDry.\n",
    "house/pump.md": "# House\n\n## Pump\n\nThe pump of the house is old.\n\n## Roof\n\nThe roof is new.\n",
    "index.md": "# Index\n\n## Of all\n\nWhere the pump, the hull and the roof are spoken of.\n",
}


@pytest.fixture(scope="module")
def documents() -> DocumentSet:
    return document_set(TEXTS)


def audited(documents: DocumentSet, form: str = "json", section: str | None = None, **given: object) -> Audit:
    request = TailorRequest.parse(**given)  # type: ignore[arg-type]
    return audit(request, section, documents, FORMS[form])


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("budget", [None, 120, 200, 300, 500, 900, 3000])
def test_states_are_those_of_the_answer(documents: DocumentSet, form: str, budget: int | None) -> None:
    """The states agree with the text of the answer, and the audit has the same text."""
    given = {"context": "oil the pump", "token_budget": budget}
    report = audited(documents, form, **given)
    answer = write(TailorRequest.parse(**given), documents, FORMS[form])  # type: ignore[arg-type]
    assert report.text == answer.text
    assert report.tokens == documents.counter.count(answer.text)
    sent = [row for row in report.matches if row.state in (TAKEN, CUT)]
    assert sum(row.taken_tokens or 0 for row in sent) == sum(
        section.token_count for section in answer.value.sections
    )
    assert {(row.file, row.title) for row in sent} == {
        (section.file, section.title) for section in answer.value.sections
    }
    assert all(row.taken_tokens == row.tokens for row in sent if row.state == TAKEN)
    assert all(row.taken_tokens is None for row in report.matches if row.state in (NO_ROOM, BELOW))
    assert bool(report.states.get(NO_ROOM, 0) + report.states.get(CUT, 0)) <= answer.value.truncated
    assert sum(report.states.values()) == len(report.matches)


def test_ranks_and_scores_are_those_that_are_explained(documents: DocumentSet) -> None:
    request = TailorRequest.parse(context="oil the pump", topics=["pump rooms"], explain=True)
    explained = write(request, documents, Json()).value.ranking
    report = audited(documents, context="oil the pump", topics=["pump rooms"])
    assert explained is not None
    ranked = sorted((row for row in report.matches if row.rank), key=lambda row: row.rank or 0)
    assert [(row.file, row.title, row.score) for row in ranked] == [
        (hit.file, hit.title, hit.score) for hit in explained
    ]


def test_what_selectors_ask_for_and_what_is_known(documents: DocumentSet) -> None:
    report = audited(
        documents, selectors=["boats > ## Hull"], exclude=["pumps > ## Oiling a pump"], context="oil the pump"
    )
    states = {row.title: (row.state, row.chosen) for row in report.matches}
    assert states["Hull"] == (TAKEN, True)
    assert states["Oiling a pump"] == (KNOWN, None)


def test_a_section_and_a_part_that_was_taken_of_it(documents: DocumentSet) -> None:
    section, context = "pumps > ## Oiling a pump", "oil the pump in week 31"
    report = audited(documents, "markdown", section, context=context, token_budget=300)
    opened = report.opened
    assert opened is not None
    assert opened.state == CUT
    assert (opened.text or "").count("Pump number") == 40
    (piece,) = opened.pieces or ()
    assert piece.text.removeprefix("## Oiling a pump\n\n") in report.text
    assert "week 31" in piece.text
    assert opened.start_line <= piece.start_line < piece.end_line <= opened.end_line


def test_matches_say_what_they_have_of_the_question(documents: DocumentSet) -> None:
    """Matches come best first, with headings, found and missing words, and the text or one line of it."""
    report = audited(documents, context="oil the zircon pump", token_budget=200)
    assert [row.rank for row in report.matches] == sorted(row.rank or 0 for row in report.matches)
    first = report.matches[0]
    assert (first.title, first.path) == ("Oiling a pump", ("Pumps",))
    assert first.held is not None
    assert {"oil", "pump"} == set(first.held)
    assert first.missing == ("zircon",)
    assert report.absent == ("zircon",)
    for row in report.matches:
        pieces = row.pieces or ()
        assert bool(pieces) == bool(row.taken_tokens)
        assert all(piece.text in report.text.replace("\\n", "\n") for piece in pieces)
        assert (row.line is None) or not pieces
    assert any(row.line for row in report.matches)
