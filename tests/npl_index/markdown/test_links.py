"""Which links a document has, and what can be linked to in it."""

from __future__ import annotations

import pytest

from npl_index.markdown.links import own_anchors, references, slugs
from npl_index.markdown.sections import parse_sections


def found(text: str, *, nested: bool = False) -> list[tuple[int, str, str]]:
    return [(one.line, one.path, one.anchor) for one in references(text, nested=nested)]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[a](b.md) and [c](d/e.md#f)[g](#h)", [(0, "b.md", ""), (0, "d/e.md", "f"), (0, "", "h")]),
        (
            '![a](b.png "t") [c](<d e.md>) [f](g(h).md)',
            [(0, "b.png", ""), (0, "d e.md", ""), (0, "g(h).md", "")],
        ),
        ("[a](b%20c.md?d=e#f%20g)", [(0, "b c.md", "f g")]),
        ("x\n\n[a]: b.md 'c'\n[d]: <e.md#f>", [(2, "b.md", ""), (3, "e.md", "f")]),
        ("[^a]: no [b](c.md)", [(0, "c.md", "")]),
        ("[a](http://b/c.md) [d](mailto:e@f) [g](//h/i.md) [j](javascript:k)", []),
        ("`[a](b.md)` ``[c](d.md)`` [e](f.md)", [(0, "f.md", "")]),
        ("```\n[a](b.md)\n```\n[c](d.md)", [(3, "d.md", "")]),
        ("- ~~~x\n  [a](b.md)\n  ~~~\n[c](d.md)", [(3, "d.md", "")]),
        ("````\n```\n[a](b.md)\n````\n[c](d.md)", [(4, "d.md", "")]),
        ("[a]( [b](c [d](", []),
        ("[a]()", []),
        ("no links", []),
        (
            "<!-- [a](b.md) --> [c](d.md) <!-- [e](f.md)\n[g](h.md) --> [i](j.md)",
            [(0, "d.md", ""), (1, "j.md", "")],
        ),
        ("`<!--` [a](b.md)", [(0, "b.md", "")]),
        ("Text:\n\n    [a](b.md)\n\n\t[c](d.md)\n\n[e](f.md)", [(6, "f.md", "")]),
        ("Text\n    [a](b.md)", [(1, "b.md", "")]),
        ("- item\n\n    [a](b.md)\n\n      [c](d.md)", [(2, "b.md", "")]),
        ("- item\n  - deeper\n\n    [a](b.md)\n\n        [c](d.md)", [(3, "b.md", "")]),
        ("10. item\n\n    [a](b.md)\n\nText.\n\n    [c](d.md)", [(2, "b.md", "")]),
        ("[^1]: Note.\n\n    [a](b.md)", [(2, "b.md", "")]),
        (r"\[a](b.md) [c\](d.md) \\[e](f.md)", [(0, "f.md", "")]),
        (
            r"[a](b\_c.md) [d](e&amp;f.md) [g](<h \> i.md>)",
            [(0, "b_c.md", ""), (0, "e&f.md", ""), (0, "h > i.md", "")],
        ),
        ("words\n[of\ntwo lines](a.md)", [(2, "a.md", "")]),
        ("[a](b c.md) [d](e.md 'f') [g]( <h.md> )", [(0, "e.md", ""), (0, "h.md", "")]),
        ("[a]: <b c.md>\n[d]: e\\_f.md 'T'\n[g]: not a definition", [(0, "b c.md", ""), (1, "e_f.md", "")]),
        (
            "[[a]] [[b/c|words]] ![[d#Some Heading]] [[e]](f.md) `[[g]]`",
            [(0, "a", ""), (0, "b/c", ""), (0, "d", "some-heading"), (0, "f.md", "")],
        ),
        ("| [[a\\|words]] |", [(0, "a", "")]),
    ],
)
def test_links(text: str, links: list[tuple[int, str, str]]) -> None:
    assert found(text) == links


def test_fences_of_equal_length_nest_where_they_are_said_to() -> None:
    text = "```a\n```b\n[c](d.md)\n```\n[e](f.md)\n```\n[g](h.md)"
    assert found(text, nested=True) == [(6, "h.md", "")]
    assert [line for line, *_ in found(text)] == [4]


def test_anchors_are_those_of_github() -> None:
    anchors = [
        ("Hello, World!", "hello-world"),
        ("a b", "a-b"),
        ("A_b-c", "a_b-c"),
        ("a b", "a-b-1"),
        ("a b-1", "a-b-1-1"),
        ("堆肥 と", "堆肥-と"),
        ("C++ & more", "c--more"),
        ("", ""),
        ("", "-1"),
        ("स्थापना", "स्थापना"),
        ("การติดตั้ง", "การติดตั้ง"),
        ("நிறுவல்", "நிறுவல்"),
        ("ထည့်သွင်းခြင်း", "ထည့်သွင်းခြင်း"),
        ("ইনস্টলেশন নির্দেশিকা", "ইনস্টলেশন-নির্দেশিকা"),
        ("⚙️ Setup", "️-setup"),
        ("10 m² of 🎯 felt", "10-m-of--felt"),
        ("![logo](a.png) Lamp", "-lamp"),
        ("[![Build](b.svg)](c) Wick", "-wick"),
        ("`code` *and* [link](x.md)", "code-and-link"),
    ]
    tree = parse_sections("".join(f"# {heading}\n" for heading, _ in anchors).encode(), "x")
    assert slugs(tree.sections[1:]) == [anchor for _, anchor in anchors]


def test_a_document_may_name_its_places() -> None:
    text = (
        "<a name='x'></a> <b id=\"y\"> <i id=z>\n\n# Install {#setup}\n\n# Use {: .wide #use }\n\n"
        "[`field`][f]{#field-plain} {/* #mdx */}\n\n(label)=\n# Label\n"
    )
    assert set(own_anchors(text)) == {"x", "y", "z", "setup", "use", "field-plain", "mdx", "label"}
