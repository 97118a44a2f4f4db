"""Predicates in brackets."""

import re
from typing import Any

import pytest

from npl_index.errors import SelectorSyntaxError
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.predicates import KNOWN_PREDICATES, LIKELY, Conditions
from npl_index.selectors.versions import VersionTest, version_key
from tests.conftest import cases


def conditions(text: str) -> Conditions:
    return compile_selector(f"* {text}").steps[0].conditions


@pytest.mark.parametrize(("text", "expected"), cases("npl_index/selectors/predicates")["meaning"])
def test_meaning(text: str, expected: dict[str, Any]) -> None:
    """Each trait goes by its singular, its plural and the name of the field that reports it. A version may
    have a leading v, fewer numbers, and quotes. Blanks and case do not matter.
    """
    wanted = {name: tuple(value) if isinstance(value, list) else value for name, value in expected.items()}
    wanted["versions"] = tuple(
        VersionTest(sign, version_key(version)) for sign, version in expected.get("versions", ())
    )
    assert conditions(text) == Conditions(**wanted)


@pytest.mark.parametrize("value", ["", "3", "0-3", "4-3", "3-", "-3", "3-4-5", "a-b", "٣-٤", "1-9999999999"])
def test_lines_that_cannot_be(value: str) -> None:
    with pytest.raises(SelectorSyntaxError, match="expected = and two line numbers"):
        conditions(f"[lines={value}]")


def test_the_known_predicates_are_known() -> None:
    """Every predicate that messages name can be read, and is known."""
    for text in KNOWN_PREDICATES.split(", "):
        assert not conditions(text).unknown
        assert re.match(LIKELY, text, re.IGNORECASE)


@pytest.mark.parametrize(
    "text", ["[draft]", "[1.2.0]", "[0]", "[index.d.ts]", "[]", "[ ] todo", "[version]", "[2 of 3]"]
)
def test_brackets_of_headings(text: str) -> None:
    assert not re.match(LIKELY, text, re.IGNORECASE)
