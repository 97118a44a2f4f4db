"""Names as they are written and as they are compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.selectors.labels import (
    CONTROL,
    NAME_LENGTH,
    fold,
    fold_document,
    heading_label,
    label,
    without_controls,
)
from tests.conftest import cases


@pytest.mark.parametrize(("text", "expected"), cases("npl_index/selectors/labels")["label"])
def test_label(text: str, expected: str) -> None:
    """A label is one line with single blanks; control characters are blanks, invisible letters stay."""
    assert label(text) == expected


@given(st.text())
def test_labels_are_stable(text: str) -> None:
    """A label's label is itself, also when it was cut, and holds no control character."""
    assert label(label(text)) == label(text)
    assert heading_label(heading_label(text)) == heading_label(text)
    assert len(heading_label(text)) <= NAME_LENGTH
    assert not CONTROL.search(label(text))


def test_heading_label_is_cut_between_words() -> None:
    """A cut right behind a word leaves no blank at the end."""
    assert heading_label("a" * (NAME_LENGTH - 1) + " b") == "a" * (NAME_LENGTH - 1)


@pytest.mark.parametrize(("left", "right"), cases("npl_index/selectors/labels")["same"])
def test_same(left: str, right: str) -> None:
    assert fold(left) == fold(right) != ""


@pytest.mark.parametrize(("left", "right"), cases("npl_index/selectors/labels")["different"])
def test_different(left: str, right: str) -> None:
    """Signs of programming languages, vowel signs, and symbols that stand alone do count."""
    assert fold(left) != fold(right)


@given(st.text(max_size=40))
def test_fold_is_stable(text: str) -> None:
    """The loose form of a loose form is itself, and blanks around do not count."""
    assert fold(f" {text}\n") == fold(text)
    assert fold(fold(text)) == fold(text)


def test_fold_document() -> None:
    """A document has the same folded name with its ending and without."""
    assert fold_document("core/prompts/NPL-Conventions.md") == fold_document("core/prompts/npl-conventions")


@given(st.text())
def test_without_controls_keeps_offsets(text: str) -> None:
    assert len(without_controls(text)) == len(text)
    assert not CONTROL.search(without_controls(text))
