"""Labels of examples, and filters over traits."""

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import InvalidRequestError
from npl_index.markdown.traits import FLAGS, Traits, count_words, is_example
from npl_index.selectors.filters import SectionFilter, TraitFilter
from tests.conftest import cases

FULL = Traits(**dict.fromkeys(FLAGS, True), word_count=100)


@pytest.mark.parametrize("info", cases("npl_index/markdown/traits")["these_labels_mark_an_example"])
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
    ("conditions", "full", "level", "holds"),
    cases("npl_index/markdown/traits")["all_given_conditions_must_hold"],
)
def test_all_given_conditions_must_hold(
    conditions: dict[str, object] | None, full: bool, level: int, holds: bool
) -> None:
    """``full``: the section has all traits and 100 words, else none."""
    given = None if conditions is None else MappingProxyType(conditions)
    assert SectionFilter.parse(given).traits.matches(FULL if full else Traits(), level) is holds


@pytest.mark.parametrize(
    ("conditions", "parts"),
    cases("npl_index/markdown/traits")["an_unusable_filter_is_refused_with_its_reason"],
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
