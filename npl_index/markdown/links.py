"""Links of a document, and its anchors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple
from unicodedata import category
from urllib.parse import unquote

from markdown_it.common.utils import normalizeReference, unescapeAll

from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.headings import visible_text
from npl_index.markdown.prose import without_spans
from npl_index.markdown.sections import Section
from npl_index.markdown.state import BlockState

MAX_TARGET = 500
"""Maximum characters of a target; a longer one is not the address of a document."""

MAX_DEFINING = 16
"""Maximum parts of documents with kept definitions: many passages of a document use those of one part."""

_IN_SLUG = frozenset(("Nd", "Nl", "Pc"))
_PICTURE = re.compile(r"!\[[^\[\]]*\](?:\([^()]*\)|\[[^\[\]]*\])?|<img\b[^<>]*>", re.IGNORECASE)
_DEFINED = re.compile(r"^ {0,3}\[((?:[^\[\]\\\n]|\\.){1,200})\]:", re.MULTILINE)
_NOTE = re.compile(r"^ {0,3}\[\^[^\[\]\n]{1,200}\]:(?=[ \t])", re.MULTILINE)
_USE = re.compile(r"\[((?:[^\[\]\\\n]|\\.){1,200})\](?![(:])")
_WIKI = re.compile(r"\[\[([^\[\]|#\0]*)(?:#([^\[\]|\0]*))?(?:[|\0][^\[\]]*)?\]\](?![(\[:])")
_ESCAPE = re.compile(r"\\[!-/:-@\[-`{-~]")
_ID = re.compile(r"\b(?:id|name) ?= ?(?:\"([^\"<>\n]{1,200})\"|'([^'<>\n]{1,200})'|([^\s\"'<>=`]{1,200}))")
_OWN_ID = re.compile(
    r"\{[^{}#\n]{0,200}#([^\s{}]{1,200})(?:[ \t][^{}\n]{0,200})?\}|^\(([^()\n]{1,200})\)=$", re.MULTILINE
)
_LINK_MARKS = ("](", "]:", "[[")
_OPENING = re.compile(r"\]\(")
_TARGET = re.compile(  # with two levels of parentheses, before a title or the end of the link
    r"[ \t]*(?![ \t])(?:(<[^>]*>)|(?!<)((?:[^ \t()]|\((?:[^ \t()]|\([^ \t()]*\))*\))*)"
    r"(?:[ \t]*\)|[ \t]+[\"'(].*\)))"
)
_NOTHING = "\ue000"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


class Reference(NamedTuple):
    """A link to a place of this or another document.

    :param line: its line, from 0.
    :param path: path of the document, without percent encoding; empty for the same document.
    :param anchor: anchor of the place, without ``#``; empty for the document.
    :param wiki: it is written ``[[path#heading|words]]``: the path may be the mere name of a document.
    """

    line: int
    path: str
    anchor: str
    wiki: bool = False


def slug(text: str) -> str:
    """Return GitHub's anchor of a heading's visible text: its letters, marks, digits and hyphens."""
    return "".join(
        "-" if character == " " else character
        for character in text.lower()
        if character in "- " or category(character)[0] in "LM" or category(character) in _IN_SLUG
    )


def slugs(headings: Iterable[Section]) -> list[str]:
    """Return the anchors of headings in document order, with numbers after repeated names."""
    taken: dict[str, int] = {}
    result = []
    for heading in headings:
        name, without = heading.name, _PICTURE.sub(_NOTHING, heading.heading)
        # The words of a picture do not count; what stands in its place keeps the blanks around it.
        base = anchor = slug(name if without == heading.heading else visible_text(without, {}))
        while anchor in taken:
            taken[base] += 1
            anchor = f"{base}-{taken[base]}"
        taken[anchor] = 0
        result.append(anchor)
    return result


def own_anchors(source: str) -> Iterator[str]:
    """Yield the explicit anchors of a document: in HTML, in attribute lists (``{#id}``), or MyST's labels."""
    for expression in (_ID, _OWN_ID):
        for match in expression.finditer(source):
            yield match[match.lastindex or 0]


def references(source: str, *, nested: bool = False) -> Iterator[Reference]:
    """Yield the links to documents and places in them, without those to other addresses.

    Code and comments contain no links.

    :param nested: fences of equal length nest, as in NPL.
    """
    if not any(mark in source for mark in _LINK_MARKS):
        return
    blocks, links = _blocks(source, nested), list[Reference]()
    targets = [
        (definition["map"][0], definition["href"])
        for label, definition in blocks.env.get("references", {}).items()
        if not label.startswith("^")
    ]
    for number, line in _without_comments(blocks):
        if any(mark in line for mark in _LINK_MARKS):
            masked = _ESCAPE.sub("\0\0", line) if "\\" in line else line
            for wiki in _WIKI.finditer(masked):
                heading = (wiki[2] or "").rpartition("#")[2].strip()
                anchor = "" if heading.startswith("^") else slug(heading)  # ^ names a paragraph
                links.append(Reference(number, wiki[1].strip(), anchor, wiki=True))
            targets += ((number, target) for target in _targets(line, masked))
    for number, target in targets:
        if target and not _SCHEME.match(target):
            path, _, anchor = target.partition("#")
            links.append(Reference(number, unquote(path.partition("?")[0]), unquote(anchor)))
    yield from sorted(links, key=attrgetter("line"))


def definitions_for(text: str, parts: Iterable[str], *, nested: bool = False) -> list[str]:
    """Return the lines of a document that define the links and footnotes of a text.

    :param text: a part of the document.
    :param parts: the texts of its sections.
    """
    used = {normalizeReference(use[1]) for use in _USE.finditer(text)}
    defining = [part for part in parts if _defined(part) & used] if used else []
    if not defining:
        return []
    shown = "\n".join(line for _, line in _without_comments(_blocks(text, nested)))
    used = {normalizeReference(use[1]) for use in _USE.finditer(shown)}
    definitions: dict[str, str] = {}
    for label, line in chain.from_iterable(_definitions(part, nested) for part in defining):
        definitions.setdefault(label, line)
    return [line for label, line in definitions.items() if label in used]


@lru_cache(MAX_DEFINING)
def _definitions(part: str, nested: bool) -> list[tuple[str, str]]:
    """Return the labels of the definitions in a part of a document, with their lines."""
    found = map(_DEFINED.match, read_blocks(part, npl=nested).lines_without_code())
    return [(normalizeReference(line[1]), line.string.strip()) for line in found if line]


def _defined(part: str) -> set[str]:
    return {normalizeReference(line[1]) for line in _DEFINED.finditer(part)} if "]:" in part else set()


def _blocks(source: str, nested: bool) -> BlockState:
    """Parse the blocks of a text; a footnote is an item, since its text is indented as an item's."""
    return read_blocks(_NOTE.sub("-", source), npl=nested)


def _without_comments(blocks: BlockState) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines without code and comments; a comment may have several lines."""
    inside = False
    for number, line in enumerate(blocks.lines_without_code()):
        text = line if inside else without_spans(line)
        shown = ""
        while text:
            before, mark, text = text.partition("-->" if inside else "<!--")
            shown += "" if inside else before
            inside ^= bool(mark)
        yield number, shown


def _targets(line: str, masked: str) -> Iterator[str]:
    r"""Yield the targets of a line's links, without escapes and entities.

    :param masked: the line with each escape as ``\0\0``.
    """
    first, written = masked.find("["), line.find("[")
    for begin in (opening.end() for opening in _OPENING.finditer(masked)):
        # The words of a link may begin in an earlier line, but not with an escaped bracket.
        if 0 <= first < begin - 2 or not 0 <= written < begin - 2:
            target = _TARGET.match(masked, begin, begin + MAX_TARGET)
            if target:
                shown = unescapeAll(line[slice(*target.span(target.lastindex or 0))])
                yield shown.removeprefix("<").removesuffix(">")
