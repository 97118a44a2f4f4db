"""A cut text stands between the marks that say what it is."""

import pytest

from npl_index.answer.forms import Json
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.markdown.sections import Span
from tests.conftest import cases
from tests.npl_index.conftest import document_set

LONG = {
    "TEXT": "Words that fill a line of text without a meaning of their own.\n\n" * 30,
    "QUOTED": "> Words that fill a line of a quote without a meaning.\n>\n" * 40,
    "ROWS": "option | Words of a row.\n" * 150,
    "CODE": "Words --fill 1234567890\n" * 200,
}


def piece(text: str) -> list[str]:
    """Return the lines of the piece of a section around "siphon", below the heading."""
    documents = document_set({"x.md": f"# T\n\n{LONG['TEXT']}{text}\n{LONG['TEXT']}"})
    answer = write(TailorRequest.parse("siphon", default_budget=700), documents, Json()).value
    (row,) = answer.sections
    again = write(TailorRequest.parse(selectors=[row.selector]), documents, Json()).value.content
    assert answer.content == again
    return answer.content.strip().splitlines()[2:]


CASES = cases("npl_index/answer/frames")


@pytest.mark.parametrize("name", CASES)
def test_the_marks_around_a_text_are_shown(name: str) -> None:
    """Pairs of all kinds, and the first lines that label what follows them; a selector brings them again."""
    text, above, below = CASES[name].values()
    for sign, lines in LONG.items():
        text = text.replace(sign, lines)
    shown = [line for line in piece(text) if line.strip(" >") and "Words" not in line]
    at = next(number for number, line in enumerate(shown) if "siphon" in line)
    assert (shown[:at], shown[at + 1 :]) == (above, below)


def test_a_text_that_announces_missing_lines_has_a_mark() -> None:
    part = document_set({"x.md": "# T\n\nFirst.\n\nRun this:\n\n    siphon\n"}).part((0, 1))
    assert part.narrowed(Span(2, 5)).text.endswith("Run this:\n…\n")
    assert "…" not in part.narrowed(Span(2, 3)).text + part.text
