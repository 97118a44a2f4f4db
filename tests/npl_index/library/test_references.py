"""Near names are proposed for a wrong one."""

import pytest

from npl_index.library.references import near_names
from tests.conftest import cases

OPERATIONS = ("list", "get", "update", "replace", "append", "prepend", "delete")


@pytest.mark.parametrize(("wanted", "meant"), cases("npl_index/library/references")["a_slip_is_corrected"])
def test_a_slip_is_corrected(wanted: str, meant: str) -> None:
    assert near_names(wanted, OPERATIONS, limit=1) == (meant,)
    assert near_names(wanted, OPERATIONS, 1, parts=True) == (meant,)


@pytest.mark.parametrize(
    ("wanted", "meant"),
    cases("npl_index/library/references")["words_that_are_like_a_parameter_by_chance_lead_nowhere"],
)
def test_words_that_are_like_a_parameter_by_chance_lead_nowhere(wanted: str, meant: list[str]) -> None:
    """Only a slip, a part, or a longer form of the name leads to it."""
    names = ("path", "file", "filename", "selectors", "token_budget", "item")
    assert list(near_names(wanted, names, parts=True)) == meant
