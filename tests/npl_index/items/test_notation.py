"""NPL's notations are counted in a text."""

import pytest

from npl_index.items.notation import analyse
from tests.conftest import cases


@pytest.mark.parametrize(("text", "usages"), cases("notation"))
def test_what_counts_as_what(text: str, usages: dict[str, list[str]]) -> None:
    """Each notation is counted alone, and where notations overlap."""
    assert {usage.name: list(usage.matches) for usage in analyse(text, 9)} == usages


def test_counts_go_on_where_matches_stop() -> None:
    """The count is complete; only the first few matches are kept."""
    (usage,) = analyse("∪" * 50, 3)
    assert (usage.count, len(usage.matches), usage.category) == (50, 3, "logic_operators")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "start", ["<", "<<a", "⟪a:", "⟪", "{", "(note: ", "{{if ", "[...", "∑(", "`{~l|", "a", "⌜"]
)
def test_what_never_ends_is_read_to_the_end(start: str) -> None:
    """A cost that grows with the square of the length would take hours here."""
    assert analyse(start * 400_000, 3) is not None
