"""Markdown text to a tree of sections.

A section is a heading and what follows it up to the next heading of the same or
a higher level. Positions are half-open and zero-based, as markdown-it's
``Token.map``.
"""

from __future__ import annotations

import io
import re
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token

from npl_index.blocks import parse_blocks
from npl_index.blockstate import Deadline
from npl_index.errors import DocumentTimeoutError, DocumentTooLargeError, UnreadableDocumentError
from npl_index.traits import Traits, is_example

MAX_SECTIONS = 20_000

_INLINE = MarkdownIt("commonmark")
_MARKUP = re.compile(r"[\\`*_\[\]<&!]")
_SPACES = re.compile(r"\s+")
_FRONT_MATTER = re.compile(r"---[ \t]*\n((?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_YAML_LINE = re.compile(r"[ \t]|#|- |-$|[\[\]{}]|[^\s:#][^:\n]*:(?:\s|$)|$")


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range ``[start, stop)``, zero-based."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Section:
    """One node of the tree.

    Node 0 is the document itself (level 0); its own text is what stands before the first heading.
    A file that holds several versioned NPL sections has one more node of level 0 for each, a child of
    node 0. All other nodes are headings.

    :param index: position in ``SectionTree.sections``, which is document order.
    :param level: 0 for the document and for versioned sections, else 1 to 6.
    :param heading: source of the heading's text: no ``#`` marks, inline markup as written, one line.
    :param name: the heading as a reader sees it: markup, escapes and entities resolved. For level 0 the
        document's or versioned section's name.
    :param version: version text of the ``npl-instructions`` header that applies at a node of level 0,
        else ``None``; other nodes inherit theirs from the nearest ancestor of level 0.
    :param heading_lines: the heading's own lines (empty at the start for level 0).
    :param own: lines up to the next heading of any level, the heading included, front matter and
        ``npl-instructions`` headers and separators left out.
    :param whole: lines including all descendants.
    :param own_bytes: the same as ``own`` in bytes of the file as it is on disk.
    :param whole_bytes: the same as ``whole`` in bytes.
    :param parent: index of the parent, ``None`` for node 0.
    :param children: indices of the children, in order.
    :param own_traits: of ``own``.
    :param whole_traits: of ``whole``.
    """

    index: int
    level: int
    heading: str
    name: str
    version: str | None
    heading_lines: Span
    own: Span
    whole: Span
    own_bytes: Span
    whole_bytes: Span
    parent: int | None
    children: tuple[int, ...]
    own_traits: Traits
    whole_traits: Traits


@dataclass(frozen=True, slots=True)
class SectionTree:
    """The sections of one document, in document order.

    :param name: the document's name, as selectors write it (file stem or item name).
    :param sections: node 0 is the document.
    :param source: the text with ``\\n`` line ends, byte order mark removed.
    :param line_starts: offset in ``source`` of each line's first character, and ``len(source)``.
    :param front_matter: YAML front matter without its ``---`` lines, or ``""``.
    :param dialect: ``"commonmark"`` or ``"npl"`` (fences of equal length nest), whichever was used.
    :param title: index of the one leading heading of level 1 that is the document's title, else ``None``.
    """

    name: str
    sections: tuple[Section, ...]
    source: str
    line_starts: array[int]
    front_matter: str
    dialect: str
    title: int | None

    @property
    def line_count(self) -> int:
        """Number of lines; the empty string after a final line end is none."""
        return len(self.line_starts) - 1

    def line(self, number: int) -> str:
        """Give one line, zero-based, without its line end."""
        return self.source[self.line_starts[number] : self.line_starts[number + 1]].removesuffix("\n")

    def text(self, span: Span) -> str:
        """Give the lines of a span, each ended by ``\\n``, blank lines at the end removed."""
        text = self.source[self.line_starts[span.start] : self.line_starts[span.stop]].rstrip()
        return text and text + "\n"

    def ancestors(self, index: int) -> tuple[int, ...]:
        """Give the indices from node 0 down to the parent of ``index``."""
        path: list[int] = []
        parent = self.sections[index].parent
        while parent is not None:
            path.append(parent)
            parent = self.sections[parent].parent
        return tuple(reversed(path))

    def subtree(self, index: int) -> range:
        """Give the indices of a section and all its descendants (they are contiguous)."""
        last = index
        while self.sections[last].children:
            last = self.sections[last].children[-1]
        return range(index, last + 1)


def parse_sections(data: bytes, name: str, *, npl: bool = False, deadline: float | None = None) -> SectionTree:
    """Parse a Markdown file.

    :param data: the file's bytes as on disk.
    :param name: the document's name for selectors.
    :param npl: the file comes from a root declared as NPL, so fences may nest.
    :param deadline: value of ``time.monotonic()`` after which parsing gives up.
    :raises UnreadableDocumentError: not UTF-8 or binary (holds NUL).
    :raises DocumentTooLargeError: more sections than ``MAX_SECTIONS``.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    if deadline is not None and time.monotonic() > deadline:
        raise DocumentTimeoutError(f"reading {name} took too long")
    text = _decode(data, name)
    starts = array("I", accumulate(map(len, io.StringIO(text, newline="\n")), initial=0))
    bom = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    byte_starts = array("I", accumulate(map(len, data.splitlines(keepends=True)), initial=0))
    byte_starts[0] = bom
    front = _front_matter(text)
    first = text.count("\n", 0, len(front[0])) if front else 0
    tokens = parse_blocks(text, starts, first, nesting=False, deadline=Deadline(name, deadline)).tokens
    heads = [(t, t.content) for t in tokens if t.type == "heading_open" and t.level == 0]
    if len(heads) >= MAX_SECTIONS:
        raise DocumentTooLargeError(f"{name} has more than {MAX_SECTIONS} sections")
    count = len(starts) - 1
    bounds = [first, *(head.map[0] for head, _ in heads), count]
    own_traits = _traits(tokens, text, starts, bounds)
    levels = [0, *(int(head.tag[1]) for head, _ in heads)]
    parents, children, stops = _nest(levels)
    whole_traits = list(own_traits)
    for i in range(len(levels) - 1, 0, -1):
        whole_traits[parents[i]] += whole_traits[i]
    sections = []
    for i, level in enumerate(levels):
        own = Span(bounds[i], bounds[i + 1])
        whole = Span(bounds[i], bounds[stops[i]])
        content = heads[i - 1][1] if i else ""
        heading_lines = Span(*heads[i - 1][0].map) if i else Span(first, first)
        sections.append(
            Section(
                i,
                level,
                _SPACES.sub(" ", content).strip(),
                _visible(content) if i else name,
                None,
                heading_lines,
                own,
                whole,
                Span(byte_starts[own.start], byte_starts[own.stop]),
                Span(byte_starts[whole.start], byte_starts[whole.stop]),
                parents[i] if i else None,
                tuple(children[i]),
                own_traits[i],
                whole_traits[i],
            )
        )
    title = 1 if levels[1:2] == [1] and levels.count(1) == 1 else None
    return SectionTree(name, tuple(sections), text, starts, front[1] if front else "", "commonmark", title)


def _decode(data: bytes, name: str) -> str:
    if b"\0" in data:
        raise UnreadableDocumentError(f"{name} is binary: byte {data.index(0)} is NUL")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableDocumentError(f"{name} is not UTF-8: byte {error.start} cannot be read") from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff")


def _front_matter(text: str) -> tuple[str, str] | None:
    match = _FRONT_MATTER.match(text)
    if match and all(_YAML_LINE.match(line) for line in match[1].split("\n")):
        return match[0], match[1]
    return None


def _nest(levels: list[int]) -> tuple[list[int], list[list[int]], list[int]]:
    parents = [0] * len(levels)
    children: list[list[int]] = [[] for _ in levels]
    stops = [len(levels)] * len(levels)
    path = [0]
    for i, level in enumerate(levels[1:], 1):
        while levels[path[-1]] >= level:
            stops[path.pop()] = i
        parents[i] = path[-1]
        children[path[-1]].append(i)
        path.append(i)
    return parents, children, stops


def _traits(tokens: list[Token], text: str, starts: array[int], bounds: list[int]) -> list[Traits]:
    result = [
        Traits(word_count=len(text[starts[a] : starts[b]].split())) for a, b in zip(bounds, bounds[1:], strict=False)
    ]
    i = 0
    for token in tokens:
        while token.map and i + 2 < len(bounds) and token.map[0] >= bounds[i + 1]:
            i += 1
        if token.type == "fence":
            result[i] = replace(result[i], has_code=True, has_examples=result[i].has_examples or is_example(token.info))
        elif token.type == "code_block":
            result[i] = replace(result[i], has_code=True)
        elif token.type == "table_open":
            result[i] = replace(result[i], has_tables=True)
        elif token.type == "dl_open":
            result[i] = replace(result[i], has_definitions=True)
    return result


def _visible(content: str) -> str:
    if not _MARKUP.search(content):
        return _SPACES.sub(" ", content).strip()
    return _SPACES.sub(" ", "".join(_pieces(_INLINE.parseInline(content)[0].children or []))).strip()


def _pieces(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("text", "code_inline"):
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type == "image":
            yield from _pieces(token.children or [])
