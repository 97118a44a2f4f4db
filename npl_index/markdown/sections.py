"""Parse Markdown into a tree of sections.

A section is a heading and the text below it, up to the next heading of the same or a higher level. Positions
are half-open and zero-based, like markdown-it's ``Token.map``.
"""

from __future__ import annotations

import re
from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from heapq import merge
from operator import or_

from markdown_it.token import Token

from npl_index.cached import cached_property
from npl_index.deadline import Deadline
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.front_matter import decoded, find_front_matter, texts_of
from npl_index.markdown.headings import MAX_HEADING, one_line, visible_text
from npl_index.markdown.preambles import Segment, segments
from npl_index.markdown.prose import without_spans
from npl_index.markdown.state import BlockState, check_count, find_lines
from npl_index.markdown.traits import FLAGS, TRAIT_OF_BLOCK, Traits, bits_of, count_words, is_example

_NPL_MARK = re.compile(r"⌜[^⌜⌝\n]+⌝")
# A text whose words are counted together, since they take memory, and the rest of its last word.
_PIECE = re.compile(rf"(?s:.{{1,{1 << 20}}})\S*")
_TITLE_FIELDS = ("title", "linkTitle", "sidebar_label")


DIGEST_LENGTH = 8
"""Hexadecimal digits of a digest; two different texts share a digest with a chance of 1 to four billion."""


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range ``[start, stop)``, zero-based."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Section:
    """A node of the tree.

    Node 0 is the document (level 0); its own text is the text before the first heading. In a file with
    several versioned NPL sections, each of them, and text between them that belongs to none, is a further
    node of level 0 and a child of node 0 (:func:`~npl_index.markdown.preambles.segments`). All other nodes
    are headings.

    :param index: position in ``SectionTree.sections``, which is document order.
    :param level: 0 for the document and for versioned sections, else 1 to 6.
    :param heading: source of the heading's text: no ``#`` marks, inline markup as written, one line. For
        node 0 the title in the front matter, as written.
    :param name: the heading as a reader sees it: markup, escapes and entities resolved. For level 0 the
        document's or versioned section's name.
    :param version: version text of the ``npl-instructions`` header that applies at a node of level 0,
        else ``None``; other nodes inherit theirs from the nearest ancestor of level 0.
    :param heading_lines: the heading's own lines (empty at the start for level 0).
    :param own: lines up to the next heading of any level, heading included; without front matter,
        ``npl-instructions`` headers and separators.
    :param whole: lines with all descendants.
    :param own_bytes: ``own`` as bytes of the file on disk.
    :param whole_bytes: ``whole`` as bytes of the file on disk.
    :param parent: index of the parent, ``None`` for node 0.
    :param children: indices of the children, in order.
    :param own_traits: traits of ``own``.
    :param whole_traits: traits of ``whole``.
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

    @property
    def title(self) -> str:
        """The title for readers: the section's name, or the title in the document's front matter."""
        return self.name if self.level else self.heading or self.name

    @property
    def kind(self) -> int:
        """The bits for the level and the traits of the own text."""
        return self.level | bits_of(name for name in FLAGS if getattr(self.own_traits, name))


class DocumentText:
    r"""The text of a document, read at its first use.

    :param read: returns the text with ``\n`` line ends, without a byte order mark.
    """

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read

    @cached_property
    def source(self) -> str:
        """The text."""
        return self._read()

    @cached_property
    def starts(self) -> array[int]:
        """Offset of each line's first character, and the length of the text."""
        return find_lines(self.source)


@dataclass(frozen=True, slots=True)
class SectionTree:
    """The sections of one document, in document order.

    :param name: the document's name in selectors (file stem or item name).
    :param sections: node 0 is the document.
    :param lines: the text.
    :param front_matter: YAML front matter without its ``---`` lines, or ``""``.
    :param dialect: rules for fences: ``"commonmark"`` or ``"npl"``.
    :param title: index of the single leading heading of level 1 that is the document's title, else ``None``.
    :param doubtful_fences: first lines of fences without a proper end.
    """

    name: str
    sections: Sequence[Section]
    lines: DocumentText = field(repr=False)
    front_matter: str
    dialect: str
    title: int | None
    doubtful_fences: tuple[int, ...] = ()

    @property
    def source(self) -> str:
        """The text."""
        return self.lines.source

    @property
    def line_starts(self) -> array[int]:
        """Offset of each line's first character, and the length of the text."""
        return self.lines.starts

    def line(self, number: int) -> str:
        """Return a line, zero-based, without its line end."""
        return self.source[self.line_starts[number] : self.line_starts[number + 1]].removesuffix("\n")

    def text(self, span: Span) -> str:
        r"""Return the lines of a span, each ended by ``\n``, blank lines at the end removed."""
        text = self.source[self.line_starts[span.start] : self.line_starts[span.stop]]
        last = len(text.rstrip())
        stop = text.find("\n", last)
        return text[: stop + 1] if stop >= 0 and last else text[:last] and text + "\n"

    def ancestors(self, index: int) -> tuple[int, ...]:
        """Return the indices from node 0 down to the parent of ``index``."""
        parent = self.sections[index].parent
        return () if parent is None else (*self.ancestors(parent), parent)

    def subtree(self, index: int) -> range:
        """Return the indices of a section and all its descendants (they are contiguous)."""
        if not index:
            return range(len(self.sections))
        last = index
        while self.sections[last].children:
            last = self.sections[last].children[-1]
        return range(index, last + 1)


def parse_sections(
    data: bytes, name: str, *, npl: bool = False, deadline: float | None = None
) -> SectionTree:
    """Parse a Markdown file.

    :param data: the file's bytes as on disk.
    :param name: the document's name for selectors.
    :param npl: the file comes from a root declared as NPL, so fences are read as NPL writes them.
    :param deadline: value of ``time.monotonic()`` after which parsing ends in an error.
    :raises UnreadableDocumentError: not UTF-8 or binary (holds NUL).
    :raises DocumentTooLargeError: more lines, sections or other blocks than it may have.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    clock = Deadline(name, deadline)
    clock.check()
    source = decoded(data, name)
    lines = DocumentText(lambda: source)
    check_count(name, len(lines.starts) - 1, "lines")
    first, front = find_front_matter(source)
    blocks, dialect = _blocks_by_dialect(lines, first, npl, clock)
    openings = _openings(blocks, segments(blocks.tokens, source, lines.starts, first, front), name, clock)
    openings[0].heading = title_in(front)
    sections = _sections(openings, lines, byte_starts(data, lines), clock)
    doubtful = tuple(sorted(set(blocks.doubtful_fences)))
    return SectionTree(name, sections, lines, front, dialect, _find_title(sections), doubtful)


def digest_of(data: bytes) -> str:
    """Return the digest of a file's or a section's bytes, which identifies the text that a caller has read.

    Line ends and surrounding empty lines do not count. So a section's text and its bytes have the same
    digest, which stays the same when a neighbouring section changes.
    """
    text = data.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n").strip(b"\n")
    return blake2b(text, digest_size=16).hexdigest()[:DIGEST_LENGTH]


def section_digest(tree: SectionTree, index: int, *, whole: bool) -> str:
    """Return the digest of the text that an edit of a section replaces.

    :param index: index of the section; the document counts as its title.
    :param whole: include the subsections.
    """
    section = tree.sections[index or tree.title or 0]
    lines = section.whole if whole else section.own
    text = tree.source[tree.line_starts[lines.start] : tree.line_starts[lines.stop]]
    return digest_of(text.encode("utf-8", "surrogatepass"))


def _find_title(sections: Sequence[Section]) -> int | None:
    """Return the index of a document's title: the only heading of level 1, if it comes first."""
    tops = [section.index for section in sections if section.level == 1]
    return 1 if tops == [1] and sections[1].parent == 0 else None


def title_in(front: str) -> str:
    """Return the title in a document's front matter, ``""`` without one."""
    return next(iter(texts_of(front, _TITLE_FIELDS)), "")[:MAX_HEADING]


def nest(levels: Sequence[int]) -> tuple[list[int], list[list[int]], list[int]]:
    """Return each section's parent (0 for node 0), children, and last descendant or itself."""
    parents = [0] * len(levels)
    children: list[list[int]] = [[] for _ in levels]
    lasts = list(range(len(levels)))
    path = [0]
    for index, level in enumerate(levels[1:], 1):
        while len(path) > 1 and levels[path[-1]] >= level:
            path.pop()
        parents[index] = path[-1]
        children[path[-1]].append(index)
        path.append(index)
    for index in range(len(levels) - 1, 0, -1):
        lasts[parents[index]] = max(lasts[parents[index]], lasts[index])
    return parents, children, lasts


def byte_starts(data: bytes, lines: DocumentText) -> array[int]:
    """Return the byte at which each line begins in the file, and the file's length."""
    mark = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
    if not mark and len(data) == len(lines.source):
        return lines.starts
    starts = find_lines(data.decode("latin-1"), newline="")
    starts[0] = mark
    return starts


def _blocks_by_dialect(lines: DocumentText, first: int, npl: bool, clock: Deadline) -> tuple[BlockState, str]:
    """Parse the blocks with the fence rules that fit.

    If the NPL reading ends inside a fence, an author forgot a marker, and CommonMark loses less text. If
    CommonMark loses text that the NPL reading shows, the document is NPL without saying so.
    """
    source, nested = lines.source, None
    read = partial(read_blocks, source, starts=lines.starts, first=first, deadline=clock)
    if npl or "npl-instructions:" in source or "⌜" in source:
        nested = read(npl=True)
        if not nested.open_fence and (npl or _shows_npl(nested)):
            return nested, "npl"
        if not nested.npl_fences:
            return nested, "commonmark"
    plain = read()
    if plain.open_fence or plain.cut_fence:
        nested = nested or read(npl=True)
        if not nested.open_fence and (plain.open_fence or _hides_headings(plain, nested)):
            return nested, "npl"
    return plain, "commonmark"


def _hides_headings(plain: BlockState, nested: BlockState) -> bool:
    """Return whether code of the plain reading contains a heading of the nested reading."""
    lines = plain.lines_without_code()
    headings = (token for token in nested.tokens if token.type == "heading_open" and not token.level)
    return any(not lines[heading.map[0]].strip() for heading in headings if heading.map)


def _shows_npl(blocks: BlockState) -> bool:
    """Return whether there is an ``npl-instructions`` header, or a mark like ``⌜name⌝`` outside code."""
    if any(token.type == "npl_header" for token in blocks.tokens):
        return True
    marked = (line for line in blocks.lines_without_code() if "⌜" in line)
    return any(_NPL_MARK.search(without_spans(line)) for line in marked)


@dataclass(slots=True)
class _Opening:
    """A section during parsing; ``traits`` names the traits of its own text."""

    level: int
    start: int
    heading_stop: int
    stop: int
    heading: str
    name: str
    version: str | None = None
    traits: set[str] = field(default_factory=set)


def _openings(blocks: BlockState, parts: Sequence[Segment], name: str, clock: Deadline) -> list[_Opening]:
    """List the sections in document order, with the traits of their own text."""
    references = blocks.env.get("references", {})
    result: list[_Opening] = []
    tokens: Sequence[Segment | Token] = blocks.tokens
    for block in merge(parts, tokens, key=_first_line):
        if isinstance(block, Segment):
            shown = one_line(block.name or name)
            result.append(_Opening(0, block.start, block.start, block.stop, "", shown, block.version))
        elif block.type == "heading_open" and not block.level:
            clock.check()
            start, stop = block.map or (0, 0)
            end, result[-1].stop = result[-1].stop, start
            heading, shown = one_line(block.content), visible_text(block.content, references)
            result.append(_Opening(int(block.tag[1]), start, stop, end, heading, shown))
        elif block.type == "fence":
            result[-1].traits |= {"has_code", "has_examples"} if is_example(block.info) else {"has_code"}
        elif block.type in TRAIT_OF_BLOCK:
            result[-1].traits.add(TRAIT_OF_BLOCK[block.type])
    check_count(name, len(result), "sections")
    return result


def _first_line(block: Segment | Token) -> int:
    return block.start if isinstance(block, Segment) else (block.map or [0])[0]


def _sections(
    openings: Sequence[_Opening], text: DocumentText, byte_starts: array[int], clock: Deadline
) -> tuple[Section, ...]:
    """Return the sections with their places in the tree."""
    parents, children, lasts = nest([opening.level for opening in openings])
    own_traits = []
    for opening in openings:
        clock.check()
        pieces = _PIECE.finditer(text.source, text.starts[opening.start], text.starts[opening.stop])
        words = sum(count_words(piece[0]) for piece in pieces)
        own_traits.append(Traits._make([*(name in opening.traits for name in Traits._fields[:-1]), words]))
    whole_traits = own_traits.copy()
    for index in range(len(openings) - 1, 0, -1):
        (*above, count), (*below, words) = whole_traits[parents[index]], whole_traits[index]
        whole_traits[parents[index]] = Traits._make([*map(or_, above, below), count + words])

    def in_bytes(span: Span) -> Span:
        return Span(byte_starts[span.start], byte_starts[span.stop])

    result = []
    for index, opening in enumerate(openings):
        own, whole = Span(opening.start, opening.stop), Span(opening.start, openings[lasts[index]].stop)
        named = opening.level, opening.heading, opening.name, opening.version
        lines = Span(opening.start, opening.heading_stop), own, whole, in_bytes(own), in_bytes(whole)
        related = parents[index] if index else None, tuple(children[index])
        result.append(Section(index, *named, *lines, *related, own_traits[index], whole_traits[index]))
    return tuple(result)
