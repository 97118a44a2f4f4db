"""Visible text of headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

_INLINE = MarkdownIt("commonmark")
_INLINE.parseInline("")  # compiles the rules, which is not safe to do in two threads at once

MAX_HEADING = 1_024
"""Characters of a heading that count in names, selectors and outlines. Hostile inline markup takes about 10
microseconds per character, and the words of a heading count in each of its subsections as well."""

_MARKUP = re.compile(r"[\\`*_\[<&\n]")
_CODE_ONLY = re.compile(r"[^\\`*_\[<&\n]*(?:`[^`\n]+`(?!`)[^\\`*_\[<&\n]*)+")
_CODE = re.compile(r"`(?: (?=[^`]*[^ `])([^`]*) |([^`]*))`")
_ANCHOR = re.compile(r"\{(?::?\s*#[^\s{}][^{}]*|/\*[^{}]*\*/)\}\s*")
_COMMENT = re.compile(r"<!--((?:(?!<!--).)*?)-->")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def without_anchor(heading: str) -> str:
    """Return a heading without its anchor, such as ``{#install}`` or ``{/* #install */}``, which is for
    generators of pages.
    """
    start = heading.rfind("{")
    before = heading[: max(0, start)].rstrip()
    return before if before and _ANCHOR.fullmatch(heading, start) else heading


def one_line(source: str) -> str:
    """Return the beginning of a heading's inline source on one line; setext headings may have more lines."""
    source = source[:MAX_HEADING]
    return source if "\n" not in source else " ".join(line.strip() for line in source.split("\n"))


def visible_text(source: str, references: Mapping[str, Any]) -> str:
    """Return a heading's text without its markup and its anchor, white space folded.

    A heading without other text is named by its comments, which generators of pages replace.
    Emphasis, code, links, images (their description), HTML tags, escapes and entities are resolved. The first
    :data:`MAX_HEADING` characters count.

    :param source: the heading's inline source.
    :param references: the document's link definitions by label, as in markdown-it's ``env``.
    """
    source = without_anchor(source[:MAX_HEADING])
    if _MARKUP.search(source) is None:
        return " ".join(source.split())
    if _CODE_ONLY.fullmatch(source):
        return " ".join(_CODE.sub(r"\1\2", source).split())
    tokens = _INLINE.parseInline(source, {"references": references})[0].children or []
    shown = "".join(_texts(tokens)).split()
    return " ".join(shown or " ".join(_COMMENT.findall(source)).split())


def _texts(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("text", "code_inline"):
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type == "image":
            yield from _texts(token.children or [])
        elif token.type == "html_inline" and _LINE_BREAK.fullmatch(token.content):
            yield " "
