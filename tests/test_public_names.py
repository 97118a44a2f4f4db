"""The public surface of the library."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import npl_index

SOURCE = Path(npl_index.__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", npl_index.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    """It can be imported from the package and says what it is."""
    found = getattr(npl_index, name)
    assert inspect.getdoc(found)
    assert found.__module__.startswith("npl_index.")


def test_the_names_for_type_checkers_are_those_for_programs() -> None:
    """The two lists of the package say the same."""
    (block,) = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.If)]
    listed = {
        (alias.name, node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(name for name, _ in listed) == npl_index.__all__
    assert all(getattr(npl_index, name).__module__ == module for name, module in listed)


def test_a_name_that_is_not_public_is_refused() -> None:
    """A slip of the pen gives the usual error."""
    with pytest.raises(AttributeError, match="no attribute 'tailored'"):
        npl_index.tailored  # noqa: B018
