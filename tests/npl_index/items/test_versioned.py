"""Versioned sections inside one file."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.items.loading import version_of
from npl_index.items.versioned import VersionedSection, append, compare, renew, versioned_sections
from tests.conftest import cases


def section(name: str, version: str | None = "1.0.0", body: str = "Text.") -> str:
    line = f"   version: {version}\n" if version is not None else ""
    return f"npl-instructions:\n   name: {name}\n{line}---\n\n{body}"


def sources(*texts: str) -> dict[str, VersionedSection]:
    return {
        name: replace(section, location=f"{name}.md")
        for text in texts
        for name, section in versioned_sections(text).items()
    }


@pytest.mark.parametrize(("text", "versions"), cases("npl_index/items/versioned")["names_and_versions"])
def test_names_and_versions(text: str, versions: dict[str, str]) -> None:
    """They are read without quotes and comments; a header without a name or inside a fence does not count."""
    assert {name: section.version for name, section in versioned_sections(text).items()} == versions


def test_a_section_ends_at_a_separator_outside_of_fences() -> None:
    """A separator that a fence shows belongs to the text, one before a header never does."""
    body = "```\n* * *\n```\nmore"
    text = f"{section('a', body=body)}\n\n* * *\n\nnot in it\n"
    assert versioned_sections(text)["a"].text.endswith("more")
    nested = f"{section('a', body='````')}\n\n* * *\n\n{section('b')}"
    assert versioned_sections(nested)["a"].text.endswith("````")
    assert set(versioned_sections(nested)) == {"a", "b"}


@pytest.mark.parametrize(
    "line", ["\n", "```\n", "* * *\n", "npl-instructions:\n", "npl-instructions:\n a: b\n"]
)
def test_long_texts_take_proportional_time(line: str) -> None:
    assert versioned_sections(line * 100_000) == {}


def test_every_status() -> None:
    there = versioned_sections("\n\n* * *\n\n".join(map(section, "abcd", ("1.2", "1.9", "2.0", "1.0"))))
    wanted = sources(*map(section, "abce", ("1.2.0", "1.10", "1.99", "1.0")))
    rows = {row.name: row.status for row in compare(wanted, there)}
    assert rows == {"a": "current", "b": "outdated", "c": "newer", "d": "extra", "e": "missing"}


def test_renewing_changes_nothing_else() -> None:
    """The text around a section stays, and a second run changes nothing."""
    text = f"Top\n\n* * *\n* * *\n\n{section('a')}\n\n* * *\n\n{section('b')}\n\n* * *\nBottom\n"
    fresh = sources(section("a", "2.0", "New."), section("b", "2.0", "New b."))
    once = renew(text, fresh, ["b", "a", "gone"])
    assert once.text == text.replace(section("a"), section("a", "2.0", "New.")).replace(
        section("b"), section("b", "2.0", "New b.")
    )
    assert [(change.name, change.before, change.after) for change in once.changes] == [
        ("a", "1.0.0", "2.0"),
        ("b", "1.0.0", "2.0"),
    ]
    assert once.unknown == ("gone",)
    assert renew(once.text, fresh, ["a", "b"]).text == once.text


def test_what_is_not_there_is_added_and_what_has_no_source_stays() -> None:
    """New sections come last, after a separator."""
    added = renew(f"{section('old')}\n", sources(section("a")), ["a", "old"])
    assert added.text == f"{section('old')}\n\n* * *\n\n{section('a')}"
    assert added.lost == ("old",)


def test_separators_are_not_doubled() -> None:
    """A prompt that brings its own gets no second one; nothing stands before the first in an empty file."""
    assert append("", ["* * *\nA\n\n* * *\n", "B\n"]) == "A\n\n* * *\n\nB"
    assert append("Top\n", []) == "Top\n"


@pytest.mark.parametrize(("text", "version"), cases("npl_index/items/versioned")["versions"], ids=range(13))
def test_versions(text: str, version: str | None) -> None:
    """The version is that of the header at the start, else of the front matter, as written."""
    assert version_of(text) == version


@given(st.text(st.sampled_from("\n -:*npl-instructions version1.0'\"#a")))
def test_a_version_is_text_or_none(text: str) -> None:
    version = version_of(f"npl-instructions:\n  {text}\n---\n")
    assert version is None or version
