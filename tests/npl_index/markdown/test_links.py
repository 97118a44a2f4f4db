"""Links of a document, and the targets of links in it."""

import pytest

from npl_index.markdown.links import own_anchors, references, slugs
from npl_index.markdown.sections import parse_sections
from tests.conftest import cases


def links_of(text: str, *, nested: bool = False) -> list[list[int | str]]:
    return [[link.line, link.path, link.anchor] for link in references(text, nested=nested)]


@pytest.mark.parametrize(("text", "links"), cases("links"))
def test_links(text: str, links: list[list[int | str]]) -> None:
    assert links_of(text) == links


def test_fences_of_equal_length_nest_where_they_are_said_to() -> None:
    text = "```a\n```b\n[c](d.md)\n```\n[e](f.md)\n```\n[g](h.md)"
    assert links_of(text, nested=True) == [[6, "h.md", ""]]
    assert [line for line, *_ in links_of(text)] == [4]


def test_anchors_are_those_of_github() -> None:
    anchors = cases("npl_index/markdown/links")["anchors"]
    tree = parse_sections("".join(f"# {heading}\n" for heading, _ in anchors).encode(), "x")
    assert slugs(tree.sections[1:]) == [anchor for _, anchor in anchors]


def test_a_document_may_name_its_places() -> None:
    text = (
        "<a name='x'></a> <b id=\"y\"> <i id=z>\n\n# Install {#setup}\n\n# Use {: .wide #use }\n\n"
        "[`field`][f]{#field-plain} {/* #mdx */}\n\n(label)=\n# Label\n"
    )
    assert set(own_anchors(text)) == {"x", "y", "z", "setup", "use", "field-plain", "mdx", "label"}
