"""The worked examples in the docstrings of the ranking."""

import doctest
from types import ModuleType

import pytest

from npl_index.ranking import bm25f, scoring


@pytest.mark.parametrize("module", [bm25f, scoring], ids=lambda module: module.__name__)
def test_the_worked_example_is_right(module: ModuleType) -> None:
    """The docstring shows the computed numbers."""
    result = doctest.testmod(module)
    assert result.attempted > 5
    assert result.failed == 0
