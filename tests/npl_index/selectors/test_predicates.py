"""Predicates in brackets."""

import re
from typing import Any

import pytest

from npl_index.errors import SelectorSyntaxError
from npl_index.markdown.traits import Traits
from npl_index.selectors.predicates import KNOWN_PREDICATES, LIKELY, Conditions, read_predicate
from npl_index.selectors.versions import VersionTest, version_key
from tests.conftest import cases


@pytest.mark.parametrize(
    ("spellings", "trait"),
    [
        ("has-code has_code HAS-CODE Has_Code", "has_code"),
        ("has-table has-tables has_tables", "has_tables"),
        ("has-example has-examples has_examples", "has_examples"),
        ("has-definition has-definitions has-definition-list has_definition_lists", "has_definitions"),
    ],
)
def test_traits(spellings: str, trait: str) -> None:
    """Each trait goes by its singular, its plural and the name of the field that reports it."""
    for spelling in spellings.split():
        assert read_predicate(f"[{spelling}]", 0, Conditions()) == (
            Conditions(traits=(trait,)),
            len(spelling) + 2,
        )
        assert hasattr(Traits(), trait)


@pytest.mark.parametrize(("text", "expected"), cases("npl_index/selectors/predicates")["meaning"])
def test_meaning(text: str, expected: dict[str, Any]) -> None:
    """Numbers, depths and unknown predicates are distinguished; blanks and case do not matter."""
    wanted = {name: tuple(value) if isinstance(value, list) else value for name, value in expected.items()}
    assert read_predicate(text, 0, Conditions()) == (Conditions(**wanted), len(text))


@pytest.mark.parametrize("value", ["1.2.0", "v1.2", '"1.2"', "'1.2.0+build'", " 1.2.0 "])
def test_versions(value: str) -> None:
    """A version may have a leading v, fewer numbers, and quotes."""
    key = version_key("1.2.0")
    assert key is not None
    conditions, _ = read_predicate(f"[version>={value}]", 0, Conditions())
    assert conditions.versions == (VersionTest(">=", key),)


def test_conditions_add_up() -> None:
    """A predicate is added to those read before, and is read from its place in the text."""
    text = "A [has-code][has-table] [2]"
    first, behind = read_predicate(text, 2, Conditions())
    second, behind = read_predicate(text, behind, first)
    assert read_predicate(text, behind + 1, second) == (
        Conditions(traits=("has_code", "has_tables"), ordinal=2),
        len(text),
    )


@pytest.mark.parametrize("value", ["", "3", "0-3", "4-3", "3-", "-3", "3-4-5", "a-b", "٣-٤", "1-9999999999"])
def test_lines_that_cannot_be(value: str) -> None:
    with pytest.raises(SelectorSyntaxError, match="expected = and two line numbers"):
        read_predicate(f"[lines={value}]", 0, Conditions())


def test_the_known_predicates_are_known() -> None:
    """Every predicate that messages name can be read, and is known."""
    for text in KNOWN_PREDICATES.split(", "):
        conditions, _ = read_predicate(text, 0, Conditions())
        assert not conditions.unknown
        assert re.match(LIKELY, text, re.IGNORECASE)


@pytest.mark.parametrize(
    "text", ["[draft]", "[1.2.0]", "[0]", "[index.d.ts]", "[]", "[ ] todo", "[version]", "[2 of 3]"]
)
def test_brackets_of_headings(text: str) -> None:
    assert not re.match(LIKELY, text, re.IGNORECASE)
