"""Links of a document, and its anchors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from unicodedata import category
from urllib.parse import unquote

from npl_index.markdown.headings import visible_text
from npl_index.markdown.sections import Section

MAX_TARGET = 500
"""Maximum characters of a target; a longer one is not the address of a document."""

_IN_SLUG = frozenset(("Nd", "Nl", "Pc"))
_PICTURE = re.compile(r"!\[[^\[\]]*\](?:\([^()]*\)|\[[^\[\]]*\])?|<img\b[^<>]*>", re.IGNORECASE)
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)[^`]+\1(?!`)")
_DEFINITION = re.compile(r" {0,3}\[[^\[\]]+\]: *(\S+)")
_ID = re.compile(r"\b(?:id|name) ?= ?(?:\"([^\"<>\n]{1,200})\"|'([^'<>\n]{1,200})'|([^\s\"'<>=`]{1,200}))")
_OWN_ID = re.compile(
    r"\{[^{}#\n]{0,200}#([^\s{}]{1,200})[^{}\n]{0,200}\}|^\(([^()\n]{1,200})\)=$", re.MULTILINE
)
_NOTHING = "\ue000"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


@dataclass(frozen=True, slots=True)
class Reference:
    """A link to a place of this or another document.

    :param line: its line, from 0.
    :param path: path of the document, without percent encoding; empty for the same document.
    :param anchor: anchor of the place, without ``#``; empty for the document.
    """

    line: int
    path: str
    anchor: str


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
        base = one = slug(name if without == heading.heading else visible_text(without, {}))
        while one in taken:
            taken[base] += 1
            one = f"{base}-{taken[base]}"
        taken[one] = 0
        result.append(one)
    return result


def own_anchors(source: str) -> Iterator[str]:
    """Yield the explicit anchors of a document: in HTML, in attribute lists (``{#id}``), or MyST's labels."""
    for expression in (_ID, _OWN_ID):
        for match in expression.finditer(source):
            yield match[match.lastindex or 0]


def references(source: str, *, nested: bool = False) -> Iterator[Reference]:
    """Yield the links to documents and places in them, without those to other addresses and those in code.

    :param nested: fences of equal length nest, as in NPL.
    """
    if "](" not in source and "]:" not in source:
        return
    for number, line in _outside_fences(source, nested):
        if "](" in line or "]:" in line:
            bare = _CODE_SPAN.sub(" ", line) if "`" in line else line
            for target in _targets(bare):
                if target and not _SCHEME.match(target):
                    path, _, anchor = target.partition("#")
                    yield Reference(number, unquote(path.partition("?")[0]), unquote(anchor))


def _outside_fences(source: str, nested: bool) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text outside of fences, with their numbers."""
    fences: list[str] = []
    for number, line in enumerate(source.split("\n")):
        text = line.lstrip(" \t>*+-")
        if text[:3] not in ("```", "~~~"):
            if not fences:
                yield number, line
            continue
        info = text.lstrip(text[0])
        marks = text[: len(text) - len(info)]
        if fences and not info.strip() and marks.startswith(fences[-1]):
            fences.pop()
        elif (not fences or nested) and not (text[0] == "`" and "`" in info):
            fences.append(marks)


def _targets(line: str) -> Iterator[str]:
    """Yield the targets of a line's links, as written."""
    defined = _DEFINITION.match(line)
    if defined and not defined[0].lstrip().startswith("[^"):
        yield defined[1].strip("<>")
        return
    at = line.find("](")
    while at >= 0:
        yield _target(line[at + 2 : at + 2 + MAX_TARGET].lstrip())
        at = line.find("](", at + 2)


def _target(text: str) -> str:
    """Return the target at the beginning of a text; ``""`` without one."""
    if text.startswith("<"):
        return text[1 : text.find(">")] if ">" in text else ""
    depth = 0
    for at, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        if depth < 0 or character in " \t":
            return text[:at] if ")" in text[at:] else ""
    return ""
