"""Agents are chosen by conditions on their fields."""

import pytest

from npl_index.errors import InvalidRequestError
from npl_index.items.agents import field_condition, has_field, in_category, search_expression
from tests.conftest import cases


@pytest.mark.parametrize(
    ("condition", "holds"),
    [("model:opus", True), ("model:OPUS", True), ("model:opu", False), ("note:a:b", True), ("gone:", False)],
)
def test_fields(condition: str, holds: bool) -> None:
    """A condition compares the whole value in any case; only its first colon divides."""
    assert has_field({"model": "Opus", "note": "a:b"}, field_condition(condition)) is holds


@pytest.mark.parametrize(("categories", "holds"), cases("npl_index/items/agents")["categories"])
def test_categories(categories: object, holds: bool) -> None:
    """A condition matches one category of a list, or a part of a text."""
    assert in_category({} if categories is None else {"categories": categories}, "soil") is holds


def test_what_cannot_be_read() -> None:
    """The error repeats the condition as it was written."""
    with pytest.raises(InvalidRequestError, match=r"field:value \(got: model\)"):
        field_condition("model")
    with pytest.raises(InvalidRequestError, match="Invalid regex pattern"):
        search_expression("(")
    assert search_expression("mole").search("MOLEHILL")
