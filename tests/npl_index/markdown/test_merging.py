"""Two edits of one file, merged by section."""

from __future__ import annotations

import random
from functools import partial

import pytest

from npl_index.markdown.merging import merge_sections
from npl_index.markdown.sections import parse_sections

BASE = "# Guide\n\nIntro.\n\n## A\n\nOne.\n\n## B\n\nTwo.\n\n### Deep\n\nThree.\n\n## C\n\nFour.\n"

parse = partial(parse_sections, name="guide")


def merged(ours: str, theirs: str, base: str = BASE) -> str | None:
    found = [
        merge_sections(base.encode(), *map(str.encode, pair), parse)
        for pair in ((ours, theirs), (theirs, ours))
    ]
    assert (found[0] is None) == (found[1] is None)
    return None if found[0] is None else found[0].decode()


MERGED: dict[str, tuple[str, str, str]] = {
    "two sections": (
        BASE.replace("One", "1"),
        BASE.replace("Four", "4"),
        BASE.replace("One", "1").replace("Four", "4"),
    ),
    "neighbours": (
        BASE.replace("One", "1"),
        BASE.replace("Two", "2"),
        BASE.replace("One", "1").replace("Two", "2"),
    ),
    "a section and its subsection": (
        BASE.replace("## B\n\nTwo", "## Beta\n\n2"),
        BASE.replace("Three", "3"),
        BASE.replace("## B\n\nTwo", "## Beta\n\n2").replace("Three", "3"),
    ),
    "an edit of the last section and a new one behind it": (
        BASE.replace("Four", "4"),
        f"{BASE}\n## D\n\nFive.\n",
        BASE.replace("Four", "4") + "\n## D\n\nFive.\n",
    ),
    "the same edit": (BASE.replace("One", "1"), BASE.replace("One", "1"), BASE.replace("One", "1")),
    "a deleted section": (
        BASE.replace("## A\n\nOne.\n\n", ""),
        BASE.replace("Four", "4"),
        BASE.replace("## A\n\nOne.\n\n", "").replace("Four", "4"),
    ),
    "front matter": (
        f"---\ntitle: x\n---\n{BASE}",
        BASE.replace("Four", "4"),
        f"---\ntitle: x\n---\n{BASE}".replace("Four", "4"),
    ),
}


@pytest.mark.parametrize("case", MERGED)
def test_edits_of_other_sections_are_joined(case: str) -> None:
    """From either side; the end of the file is that of our own."""
    ours, theirs, expected = MERGED[case]
    assert merged(ours, theirs) == expected


CONFLICTS: dict[str, tuple[str, str]] = {
    "one section": (BASE.replace("One", "1"), BASE.replace("One", "I")),
    "edited and deleted": (BASE.replace("One", "1"), BASE.replace("## A\n\nOne.\n\n", "")),
    "two new sections in one place": (f"{BASE}\n## D\n\nFive.\n", f"{BASE}\n## E\n\nSix.\n"),
    "an open fence": (BASE.replace("One.", "```\nOne."), BASE.replace("Four", "4")),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_edits_of_one_section_are_not(case: str) -> None:
    """Nor what would swallow the other side's sections."""
    assert merged(*CONFLICTS[case]) is None


def test_line_ends_stay() -> None:
    """Those of Windows as well, and a missing one at the end."""
    base = BASE.replace("\n", "\r\n").removesuffix("\r\n")
    ours, theirs = base.replace("One", "1"), base + "\r\n\r\n## D\r\n\r\nFive."
    assert merged(ours, theirs, base) == base.replace("One", "1") + "\r\n\r\n## D\r\n\r\nFive."


def test_no_edit_is_lost() -> None:
    """Of many random edits each section has the words of whoever changed it; else there is no result."""
    chance, joined = random.Random(7), 0
    for _ in range(200):
        texts = [f"## S{number}\n\nWord {number}.\n\n" for number in range(6)]
        sides = [{chance.randrange(6): f"{name}{chance.random()}" for _ in range(2)} for name in "ab"]
        base, ours, theirs = (
            "".join(text.replace("Word", side.get(number, "Word")) for number, text in enumerate(texts))
            for side in ({}, *sides)
        )
        found = merge_sections(base.encode(), ours.encode(), theirs.encode(), parse)
        both = sides[0].keys() & sides[1].keys()
        assert (found is None) or not both
        if found is not None:
            joined += 1
            assert all(word in found.decode() for side in sides for word in side.values())
    assert joined > 50
