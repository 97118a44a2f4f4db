"""Labels of examples, and filters over traits."""

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import InvalidRequestError
from npl_index.markdown.traits import FLAGS, TraitFilter, Traits, count_words, is_example
from npl_index.selectors.filters import SectionFilter
from tests.conftest import cases

NOTHING = Traits()
FULL = Traits(**dict.fromkeys(FLAGS, True), word_count=100)


@pytest.mark.parametrize(
    "info",
    cases("npl_index/markdown/traits")["these_labels_mark_an_example"],
)
def test_these_labels_mark_an_example(info: str) -> None:
    """Only the first word of a label counts, with its parts between hyphens."""
    assert is_example(info)


@pytest.mark.parametrize(
    "info",
    ["", "exampled", "counterexample", "python example", "text", "sample", "py # example", "text|example"],
)
def test_these_labels_do_not(info: str) -> None:
    assert not is_example(info)


@pytest.mark.parametrize(
    ("text", "words"), cases("npl_index/markdown/traits")["words_are_counted_in_scripts_without_spaces_too"]
)
def test_words_are_counted_in_scripts_without_spaces_too(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.mark.parametrize(
    ("conditions", "traits", "level", "holds"),
    [
        (None, NOTHING, 0, True),
        ({}, FULL, 6, True),
        ({"has_code": True}, FULL, 1, True),
        ({"has_code": True}, NOTHING, 1, False),
        ({"has_code": False}, FULL, 1, False),
        ({"has_code": False}, NOTHING, 1, True),
        ({"has_code": None}, NOTHING, 1, True),
        ({"has_tables": True, "has_examples": True, "has_definitions": True}, FULL, 1, True),
        ({"has_tables": True, "has_definitions": False}, FULL, 1, False),
        ({"min_word_count": 100}, FULL, 1, True),
        ({"min_word_count": 101}, FULL, 1, False),
        ({"max_word_count": 100}, FULL, 1, True),
        ({"max_word_count": 99}, FULL, 1, False),
        ({"min_word_count": 0, "max_word_count": 0}, NOTHING, 1, True),
        ({"heading_level": 2}, FULL, 2, True),
        ({"heading_level": 2}, FULL, 3, False),
        ({"has-table": True, "has_example": True, "has-definition-list": True}, FULL, 1, True),
        ({"HAS_CODE ": True}, NOTHING, 1, False),
        (MappingProxyType({"has-code": True}), FULL, 1, True),
    ],
)
def test_all_given_conditions_must_hold(
    conditions: dict[str, object], traits: Traits, level: int, holds: bool
) -> None:
    assert SectionFilter.parse(conditions).traits.matches(traits, level) is holds


@pytest.mark.parametrize(
    ("conditions", "parts"),
    [
        ({"has_code": 1}, ["'has_code'", "true or false", "not 1"]),
        ({"has_code": "true"}, ["'has_code'", "true or false", "'true'"]),
        ({"min_word_count": True}, ["'min_word_count'", "whole number of 0 or more", "not true"]),
        ({"min_word_count": 1.5}, ["'min_word_count'", "not 1.5"]),
        ({"min_word_count": "5"}, ["'min_word_count'", "not '5'"]),
        ({"max_word_count": -1}, ["'max_word_count'", "not -1"]),
        ({"max_word_count": 10**5000}, ["'max_word_count'", "a number of that size"]),
        ({"heading_level": 0}, ["'heading_level'", "from 1 to 6", "not 0"]),
        ({"heading_level": 7}, ["'heading_level'", "from 1 to 6", "not 7"]),
        ({"min_word_count": 5, "max_word_count": 4}, ["min_word_count 5", "max_word_count 4"]),
        (["has_code"], ["object of conditions", "a list"]),
        ("has_code", ["object of conditions", "'has_code'"]),
    ],
)
def test_an_unusable_filter_is_refused_with_its_reason(
    conditions: dict[str, object], parts: list[str]
) -> None:
    """The message names the key, what is wrong, near keys, and a filter that works."""
    with pytest.raises(InvalidRequestError) as caught:
        SectionFilter.parse(conditions)  # type: ignore[arg-type]
    assert caught.value.parameter == "filter"
    for part in parts:
        assert part in caught.value.message
    assert caught.value.hint is not None
    works = json.loads(caught.value.hint.removeprefix("write for example "))
    assert SectionFilter.parse(works).traits == TraitFilter(has_code=True, min_word_count=50)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
keys = st.sampled_from(
    ["has_code", "has-table", "min_word_count", "max-word-count", "heading_level"]
) | st.text(max_size=20)


@given(st.dictionaries(keys, json_values, max_size=3))
def test_any_object_is_a_filter_or_refused(conditions: dict[str, object]) -> None:
    try:
        parsed = SectionFilter.parse(conditions).traits
    except InvalidRequestError as error:
        message = str(error)
    else:
        message = ""
        assert isinstance(parsed.matches(FULL, 1), bool)
    assert len(message) < 600
