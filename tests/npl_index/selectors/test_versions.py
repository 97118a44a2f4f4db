"""Versions are ordered."""

from itertools import pairwise

import pytest

from npl_index.selectors.versions import VersionTest, version_key
from tests.conftest import cases

# The chain given as example in https://semver.org, item 11, with releases around it.
ASCENDING = cases("npl_index/selectors/versions")["ascending"]


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(ASCENDING)))
def test_precedence(lower: str, higher: str) -> None:
    """Versions sort by the precedence that semver.org defines."""
    low, high = version_key(lower), version_key(higher)
    assert low is not None
    assert high is not None
    assert low < high


@pytest.mark.parametrize(("left", "right"), cases("npl_index/selectors/versions")["equal"])
def test_equal(left: str, right: str) -> None:
    """Missing numbers are 0; a leading v, blanks around and build data do not count."""
    assert version_key(left) == version_key(right) is not None


@pytest.mark.parametrize(
    "text", ["", "v", "latest", "1.", ".1", "1..2", "1.x", "1.0-", "1.0-a..b", "1 2", "٣.١", "1" * 5_000]
)
def test_no_version(text: str) -> None:
    """Other texts have no key, at any length."""
    assert version_key(text) is None


@pytest.mark.parametrize(
    ("operator", "holding"),
    [("=", "e"), ("==", "e"), ("!=", "lg"), (">", "g"), (">=", "eg"), ("<", "l"), ("<=", "le")],
)
def test_operators(operator: str, holding: str) -> None:
    key = version_key("1.2.0")
    assert key is not None
    versions = {"l": "1.1.9", "e": "1.2", "g": "1.10"}
    assert {name for name, text in versions.items() if VersionTest(operator, key).holds(text)} == set(holding)


@pytest.mark.parametrize("version", [None, "", "latest"])
@pytest.mark.parametrize("operator", ["=", "!=", ">=", "<"])
def test_no_version_fulfils_nothing(operator: str, version: str | None) -> None:
    """A comparison with what is no version never holds, not even an inequality."""
    key = version_key("0.0.0")
    assert key is not None
    assert not VersionTest(operator, key).holds(version)
