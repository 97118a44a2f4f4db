"""Parse Markdown into a tree of sections.

A section is a heading and what follows it up to the next heading of the same or
a higher level. Positions are half-open and zero-based, as markdown-it's
``Token.map``.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple, Protocol

from markdown_it.token import Token

from npl_index.errors import UnreadableDocumentError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.front_matter import find_front_matter, texts_of
from npl_index.markdown.headings import MAX_HEADING, one_line, visible_text
from npl_index.markdown.newlines import with_line_feeds
from npl_index.markdown.preambles import Segment, segments
from npl_index.markdown.state import (
    MAX_LINES,
    MAX_SECTIONS,
    BlockState,
    Deadline,
    check_count,
    find_lines,
    in_turns,
)
from npl_index.markdown.traits import Traits, is_example

_EXAMPLES, _TABLES, _CODE, _DEFINITIONS = 1, 2, 4, 8
_KINDS = {"code_block": _CODE, "table_open": _TABLES, "dl_open": _DEFINITIONS}
_NPL_MARK = re.compile(r"⌜[^⌜⌝\n]+⌝")
_LINE_END = re.compile(rb"\r\n?|\n|(?<=[^\r\n])\Z")
_SPACE = re.compile(r"\s")
_PIECE = 1 << 20
_TITLES = ("title", "linkTitle", "sidebar_label")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)[^`]+\1(?!`)")


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
    node 0, and so for text behind one that belongs to none (:func:`~npl_index.markdown.preambles.segments`).
    All other nodes are headings.

    :param index: position in ``SectionTree.sections``, which is document order.
    :param level: 0 for the document and for versioned sections, else 1 to 6.
    :param heading: source of the heading's text: no ``#`` marks, inline markup as written, one line. For
        node 0 the title in the front matter, as written.
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

    @property
    def title(self) -> str:
        """The title for readers: the section's name, or the title in the document's front matter."""
        return self.name if self.level else self.heading or self.name


class Lines(Protocol):
    """The text of a document."""

    @property
    def source(self) -> str:
        r"""The text with ``\n`` line ends, byte order mark removed."""

    @property
    def starts(self) -> array[int]:
        """Offset of each line's first character, and the length of the text."""


class KnownLines(NamedTuple):
    """A text that was read; see :class:`Lines`."""

    source: str
    starts: array[int]


@dataclass(frozen=True, slots=True)
class SectionTree:
    """The sections of one document, in document order.

    :param name: the document's name, as selectors write it (file stem or item name).
    :param sections: node 0 is the document.
    :param lines: the text.
    :param front_matter: YAML front matter without its ``---`` lines, or ``""``.
    :param dialect: ``"commonmark"`` or ``"npl"`` (how fences are read), whichever was used.
    :param title: index of the one leading heading of level 1 that is the document's title, else ``None``.
    :param doubtful_fences: first lines of fences that are not closed where they should be.
    """

    name: str
    sections: Sequence[Section]
    lines: Lines = field(repr=False)
    front_matter: str
    dialect: str
    title: int | None
    doubtful_fences: tuple[int, ...] = ()

    @property
    def source(self) -> str:
        """The text; see :class:`Lines`."""
        return self.lines.source

    @property
    def line_starts(self) -> array[int]:
        """Where its lines start; see :class:`Lines`."""
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
        path: list[int] = []
        parent = self.sections[index].parent
        while parent is not None:
            path.append(parent)
            parent = self.sections[parent].parent
        return tuple(reversed(path))

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
    starts = find_lines(source)
    check_count(name, len(starts) - 1, MAX_LINES, "lines")
    first, front = find_front_matter(source)
    blocks, dialect = _read(source, starts, first, npl, clock)
    parts = segments(blocks.tokens, source, starts, first, front)
    openings = _openings(blocks, parts, name, clock)
    openings[0].heading = title_in(front)
    sections = _sections(openings, source, starts, _byte_starts(data, source, starts), clock)
    doubtful = tuple(sorted(set(blocks.doubtful_fences)))
    lines = KnownLines(source, starts)
    return SectionTree(name, sections, lines, front, dialect, find_title(sections), doubtful)


def find_title(sections: Sequence[Section]) -> int | None:
    """Return the index of a document's title: the only heading of level 1, if it comes first."""
    ones = [section.index for section in sections if section.level == 1]
    return 1 if ones == [1] and sections[1].parent == 0 else None


def title_in(front: str) -> str:
    """Return the title in a document's front matter, ``""`` without one."""
    return next(iter(texts_of(front, _TITLES)), "")[:MAX_HEADING]


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


def decoded(data: bytes, name: str) -> str:
    r"""Return the text of a document with ``\n`` line ends and without a byte order mark.

    :param name: of the document, for the message.
    :raises UnreadableDocumentError: it is not UTF-8, or binary (holds NUL).
    """
    nul = data.find(0)
    if nul >= 0:
        raise UnreadableDocumentError(f"{name} is binary, not Markdown: it holds NUL at byte {nul}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableDocumentError(
            f"{name} is not UTF-8 at byte {error.start}: {error.reason}", hint="save it as UTF-8"
        ) from error
    return with_line_feeds(text).removeprefix("\ufeff")


def _byte_starts(data: bytes, source: str, starts: array[int]) -> array[int]:
    """Return the byte at which each line begins in the file, and the file's length."""
    mark = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
    if not mark and len(data) == len(source):
        return starts
    offsets = in_turns(found.end() for found in _LINE_END.finditer(data))
    offsets.insert(0, mark)
    return offsets


def _read(source: str, starts: array[int], first: int, npl: bool, clock: Deadline) -> tuple[BlockState, str]:
    """Find the blocks by the dialect of fences that fits.

    Where the NPL reading leaves a fence open at the end, an author forgot a marker; CommonMark then loses
    less. Where CommonMark loses text that the NPL reading shows, the author wrote NPL without saying so.
    """
    written = None
    if npl or "npl-instructions:" in source or "⌜" in source:
        written = read_blocks(source, starts, first, npl=True, deadline=clock)
        if not written.open_fence and (npl or _shows_npl(written.tokens, source, starts)):
            return written, "npl"
        if not written.npl_fences:
            return written, "commonmark"
    plain = read_blocks(source, starts, first, npl=False, deadline=clock)
    if plain.open_fence or plain.cut_fence:
        written = written or read_blocks(source, starts, first, npl=True, deadline=clock)
        if not written.open_fence and (plain.open_fence or _hides_headings(plain.tokens, written.tokens)):
            return written, "npl"
    return plain, "commonmark"


def _hides_headings(plain: Sequence[Token], written: Sequence[Token]) -> bool:
    """Return whether one reading has a heading of the document inside a fence of the other."""
    fences = [token.map for token in plain if token.type == "fence" and token.map]
    for token in written:
        if token.type == "heading_open" and not token.level and token.map:
            before = bisect_right(fences, token.map[0], key=itemgetter(0)) - 1
            if before >= 0 and token.map[0] < fences[before][1]:
                return True
    return False


def _shows_npl(tokens: Sequence[Token], source: str, starts: array[int]) -> bool:
    """Return whether there is an ``npl-instructions`` header, or a mark like ``⌜name⌝`` outside code."""
    if any(token.type == "npl_header" for token in tokens):
        return True
    code = [token.map for token in tokens if token.type in ("fence", "code_block") and token.map]
    mark = _NPL_MARK.search(source)
    while mark:
        line = bisect_right(starts, mark.start()) - 1
        block = bisect_right(code, line, key=itemgetter(0)) - 1
        stop = starts[line + 1]
        if block >= 0 and line < code[block][1]:
            stop = starts[min(code[block][1], len(starts) - 1)]
        elif _NPL_MARK.search(_CODE_SPAN.sub("", source[starts[line] : stop])):
            return True
        mark = _NPL_MARK.search(source, stop)
    return False


@dataclass(slots=True)
class _Opening:
    """A section while it is being read; ``kinds`` are the flags of ``_KINDS`` found in its own text."""

    level: int
    start: int
    heading_stop: int
    stop: int
    heading: str
    name: str
    version: str | None = None
    kinds: int = 0


def _openings(blocks: BlockState, parts: Sequence[Segment], name: str, clock: Deadline) -> list[_Opening]:
    """List the sections in document order, with what their own text holds."""
    references = blocks.env.get("references", {})
    result: list[_Opening] = []
    reached = 0
    for token in blocks.tokens:
        start, stop = token.map or (0, 0)
        while reached < len(parts) and parts[reached].start <= start:
            result.append(_part_opening(parts[reached], name))
            reached += 1
        if token.type == "heading_open" and not token.level:
            clock.check()
            result[-1].stop = start
            heading, shown = one_line(token.content), visible_text(token.content, references)
            result.append(_Opening(int(token.tag[1]), start, stop, parts[reached - 1].stop, heading, shown))
        elif token.type == "fence":
            result[-1].kinds |= _EXAMPLES | _CODE if is_example(token.info) else _CODE
        elif token.type in _KINDS:
            result[-1].kinds |= _KINDS[token.type]
    result.extend(_part_opening(part, name) for part in parts[reached:])
    check_count(name, len(result), MAX_SECTIONS, "sections")
    return result


def _part_opening(part: Segment, name: str) -> _Opening:
    return _Opening(0, part.start, part.start, part.stop, "", one_line(part.name or name), part.version)


def _sections(
    openings: Sequence[_Opening], source: str, starts: array[int], byte_starts: array[int], clock: Deadline
) -> tuple[Section, ...]:
    """Make the tree of the openings."""
    parents, children, lasts = nest([opening.level for opening in openings])
    words = []
    for opening in openings:
        clock.check()
        words.append(_count_words(source, starts[opening.start], starts[opening.stop]))
    whole_words, whole_kinds = words.copy(), [opening.kinds for opening in openings]
    for index in range(len(openings) - 1, 0, -1):
        whole_words[parents[index]] += whole_words[index]
        whole_kinds[parents[index]] |= whole_kinds[index]
    result = []
    for index, opening in enumerate(openings):
        last = openings[lasts[index]]
        own = Span(opening.start, opening.stop)
        own_bytes = Span(byte_starts[own.start], byte_starts[own.stop])
        own_traits = _traits(opening.kinds, words[index])
        alone = last is opening
        result.append(
            Section(
                index,
                opening.level,
                opening.heading,
                opening.name,
                opening.version,
                Span(opening.start, opening.heading_stop),
                own,
                own if alone else Span(own.start, last.stop),
                own_bytes,
                own_bytes if alone else Span(own_bytes.start, byte_starts[last.stop]),
                parents[index] if index else None,
                tuple(children[index]),
                own_traits,
                own_traits if alone else _traits(whole_kinds[index], whole_words[index]),
            )
        )
    return tuple(result)


def _count_words(source: str, start: int, stop: int) -> int:
    """Count the words, piece by piece: the words of a piece take memory."""
    count = 0
    while start < stop:
        space = _SPACE.search(source, start + _PIECE, stop) if stop - start > _PIECE else None
        end = space.start() if space else stop
        count += len(source[start:end].split())
        start = end
    return count


def _traits(kinds: int, word_count: int) -> Traits:
    return Traits(
        kinds & _EXAMPLES > 0, kinds & _TABLES > 0, kinds & _CODE > 0, kinds & _DEFINITIONS > 0, word_count
    )
