"""Path patterns: matches and refusals."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import InvalidRequestError
from npl_index.library.patterns import PathPattern, has_magic
from tests.conftest import cases


def matches(pattern: str, path: str) -> bool:
    return PathPattern.compile(pattern.split("/"), parameter="file").matches(path.split("/"))


@pytest.mark.parametrize(("pattern", "path", "expected"), cases("npl_index/library/patterns"))
def test_what_matches(pattern: str, path: str, expected: bool) -> None:
    """Stars, question marks and sets stay in one segment; two stars span any number of folders."""
    assert matches(pattern, path) is expected


NAMES = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
PATTERNS = st.lists(st.text("ab.*?", min_size=1, max_size=3), min_size=1, max_size=4).filter(
    lambda parts: not {".", "..", "**"} & set(parts)
)


@given(PATTERNS, st.lists(NAMES, min_size=1, max_size=4))
def test_agrees_with_pathlib(parts: list[str], names: list[str]) -> None:
    """Without two stars a pattern matches what pathlib's absolute patterns match."""
    pattern, path = "/" + "/".join(parts), "/" + "/".join(names)
    assert matches("/".join(parts), "/".join(names)) is PurePosixPath(path).match(pattern)


@given(
    st.lists(st.sampled_from(["a", "b*", "*", "**"]), min_size=1, max_size=4),
    st.lists(NAMES, min_size=1, max_size=4),
)
def test_no_folder_with_a_match_is_left_out(parts: list[str], names: list[str]) -> None:
    """Every folder on the way to a match may hold one."""
    pattern = PathPattern.compile(parts, parameter="file")
    if pattern.matches(names):
        assert all(pattern.may_hold(names[:end]) for end in range(1, len(names)))


@pytest.mark.parametrize("pattern", ["/".join("a" * 70), "*a" * 70])
def test_costly_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        PathPattern.compile(pattern.split("/"), parameter="items")
    assert raised.value.parameter == "items"


@pytest.mark.parametrize(
    ("text", "expected"), [("a*", True), ("a?", True), ("[a", True), ("a.b{c}", False), ("❓", False)]
)
def test_has_magic(text: str, expected: bool) -> None:
    """Star, question mark and opening bracket are wildcards; nothing else is."""
    assert has_magic(text) is expected
