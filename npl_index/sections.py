"""Markdown text to a tree of sections.

A section is a heading and what follows it up to the next heading of the same or
a higher level. Positions are half-open and zero-based, as markdown-it's
``Token.map``.
"""

from __future__ import annotations

from dataclasses import dataclass

from npl_index.traits import Traits


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
    :param lines: the text's lines without line ends, byte order mark removed.
    :param front_matter: YAML front matter without its ``---`` lines, or ``""``.
    :param dialect: ``"commonmark"`` or ``"npl"`` (fences of equal length nest), whichever was used.
    :param title: index of the one leading heading of level 1 that is the document's title, else ``None``.
    """

    name: str
    sections: tuple[Section, ...]
    lines: tuple[str, ...]
    front_matter: str
    dialect: str
    title: int | None

    def text(self, span: Span) -> str:
        """Give the lines of a span, each ended by ``\\n``, blank lines at the end removed."""
        raise NotImplementedError

    def ancestors(self, index: int) -> tuple[int, ...]:
        """Give the indices from node 0 down to the parent of ``index``."""
        raise NotImplementedError

    def subtree(self, index: int) -> range:
        """Give the indices of a section and all its descendants (they are contiguous)."""
        raise NotImplementedError


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
    raise NotImplementedError
