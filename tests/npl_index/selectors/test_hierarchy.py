"""The section tree as selectors see it."""

from __future__ import annotations

import pytest

from npl_index.markdown.sections import parse_sections
from npl_index.selectors.hierarchy import Hierarchy

GUIDE = b"""\
Before.

# Title

## A

### B

## A

#### C
"""

PARTS = b"""\
# Project

npl-instructions:
   name: one
   version: 1.5.0
---

# One

## A

* * *

npl-instructions:
   name: two
---

## A
"""


def hierarchy(data: bytes) -> Hierarchy:
    return Hierarchy(parse_sections(data, "guide"))


@pytest.mark.parametrize(("index", "children"), [(0, (1, 2, 4)), (1, (2, 4)), (2, (3,)), (3, ()), (4, (5,))])
def test_children(index: int, children: tuple[int, ...]) -> None:
    """The sections below a document's title are its own and the document's direct children."""
    assert hierarchy(GUIDE).children(index) == children


@pytest.mark.parametrize(("index", "parent"), [(0, None), (1, 0), (2, 0), (3, 2), (4, 0), (5, 4)])
def test_parent(index: int, parent: int | None) -> None:
    """The parent of a section below the title is the document."""
    assert hierarchy(GUIDE).parent(index) == parent


@pytest.mark.parametrize(
    ("head", "depth", "reached"),
    [
        (0, None, [0, 1, 2, 3, 4, 5]),
        (0, 0, [0]),
        (0, 1, [0, 1, 2, 4]),
        (0, 2, [0, 1, 2, 3, 4, 5]),
        (1, 1, [1, 2, 4]),
        (2, 1, [2, 3]),
        (5, 9, [5]),
    ],
)
def test_reach(head: int, depth: int | None, reached: list[int]) -> None:
    """Depth counts direct children from the section that is asked for."""
    assert list(hierarchy(GUIDE).reach(head, depth)) == reached


def test_numbers() -> None:
    """Equal headings of one parent are numbered in document order, all others are alone."""
    assert [hierarchy(GUIDE).number(index) for index in range(6)] == [
        (1, 1),
        (1, 1),
        (1, 2),
        (1, 1),
        (2, 2),
        (1, 1),
    ]


def test_parts() -> None:
    """Versioned sections are parts of a document; each may have a title of its own."""
    parts = hierarchy(PARTS)
    one, two = parts.parts
    assert [parts.tree.sections[part].name for part in (one, two)] == ["one", "two"]
    assert parts.children(one) == (one + 1, one + 2)
    assert set(parts.titles) == {one + 1}
    assert [parts.version(index) for index in (0, one, one + 2, two)] == [None, "1.5.0", "1.5.0", "0.0.0"]
