"""What one step of a selector means."""

from __future__ import annotations

import pytest

from npl_index.markdown.sections import parse_sections
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.names import Place

TREES = (
    parse_sections(b"# Alpha\n## Setup\n### Linux\n## *Usage*\n", "alpha"),
    parse_sections(b"## Setup\n## usage\n### Setup\n", "beta"),
)
EVERYTHING = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize(
    ("step", "context", "pool"),
    [
        ("> *", [(0, 0), (1, 0)], [(0, 2), (0, 4), (1, 1), (1, 2)]),
        ("> # *", [(0, 0), (1, 0)], [(0, 1)]),
        ("> *", [(0, 1)], [(0, 2), (0, 4)]),
        ("> ## *", [(0, 0), (0, 1)], [(0, 2), (0, 4)]),
        ("> *", [(0, 3)], []),
        ("// *", [(0, 0), (0, 1), (1, 2)], [(0, 1), (0, 2), (0, 3), (0, 4), (1, 3)]),
        ("### *", [(0, 0), (1, 0)], [(0, 3), (1, 3)]),
        ("*", [(0, 0), (1, 0)], [(0, 0), (1, 0)]),
        ("beta", [(0, 0), (1, 0)], [(1, 0)]),
        ("Setup", [(0, 0), (1, 0)], [(0, 0), (0, 2), (1, 0), (1, 1), (1, 3)]),
    ],
)
def test_pool(step: str, context: list[Place], pool: list[Place]) -> None:
    """A step chooses among children, descendants or all that may have its name, once and in order."""
    assert Scope(TREES, [(), ()]).pool(compile_selector(step).steps[0], context) == pool


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("Setup", [(0, 2), (1, 1), (1, 3)]),
        ("SETUP", [(0, 2), (1, 1), (1, 3)]),
        ("Usage", [(0, 4)]),
        ("*Usage*", [(0, 4)]),
        ("usage", [(1, 2)]),
        ("USAGE", [(0, 4), (1, 2)]),
        ("Lin", [(0, 3)]),
        ("Set", [(0, 2), (1, 1), (1, 3)]),
        ("alpha", [(0, 0)]),
        ("Alpha", [(0, 1)]),
        ("ALPHA", [(0, 0)]),
        ("Alp", [(0, 0)]),
        ("al/alpha.md", [(0, 0)]),
        ("al/alpha", [(0, 0)]),
        ("nothing", []),
        ("", []),
        (None, EVERYTHING),
    ],
)
def test_named(name: str | None, named: list[Place]) -> None:
    """The strictest comparison that finds any decides, and documents come before headings."""
    scope = Scope(TREES, [("al/alpha.md",), ()])
    assert scope.named(EVERYTHING, name) == named


def test_a_beginning_of_several_names_means_none() -> None:
    """A name that begins several different ones names no section."""
    scope = Scope([parse_sections(b"## Set up Linux\n## Set up macOS\n", "guide")], [()])
    assert scope.named([(0, 1), (0, 2)], "Set up") == []
    assert scope.beginning([(0, 1), (0, 2)], "Set up") == [(0, 1), (0, 2)]


def test_documents_come_before_their_parts_and_parts_before_headings() -> None:
    """Where a name fits several kinds loosely, it means the document, else the versioned section."""
    part = "npl-instructions:\n   name: {}\n---\n## {}\n"
    data = "\n* * *\n\n".join(part.format(name, name) for name in ("guide", "rules"))
    scope = Scope([parse_sections(data.encode(), "guide")], [()])
    pool = scope.everything([0])
    assert [scope.section(node).name for node in pool] == ["guide", "guide", "guide", "rules", "rules"]
    assert scope.named(pool, "GUIDE") == [(0, 0)]
    assert scope.named(pool[1:], "GUIDE") == [(0, 1)]
    assert scope.named(pool[2:], "GUIDE") == [(0, 2)]
