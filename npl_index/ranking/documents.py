"""Documents with their sections, and the sections as bytes.

An answer reads only the files that it shows: the sections of the others are restored from bytes, which takes
a fraction of the time of parsing. Each section is built at its first use, and the file is read if its text is
needed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from npl_index.cached import cached_property
from npl_index.library.documents import Document
from npl_index.library.lazy import LazySequence
from npl_index.markdown.front_matter import decoded
from npl_index.markdown.sections import DocumentText, Section, SectionTree, Span
from npl_index.markdown.traits import Traits
from npl_index.selectors.filters import NO_TRAITS, TraitFilter
from npl_index.selectors.writing import steps_of

_SECTION_BYTES = 2_400
_TREE = attrgetter("name", "front_matter", "dialect", "title", "doubtful_fences")
_SECTION = attrgetter(*(part.name for part in fields(Section)[1:]))  # without the index
_SPAN = attrgetter("start", "stop")
_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_SPAN).encode


@dataclass(frozen=True)
class ParsedDocument:
    """One document and its sections.

    :param document: the document; one from the index has no bytes, and its text is read at its first use.
    :param known_steps: the stored :attr:`steps`, if there are any.
    """

    document: Document
    tree: SectionTree
    known_steps: tuple[str, ...] | None = field(default=None, kw_only=True, compare=False)

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """The part of each section's selector after the document's name."""
        return self.known_steps or steps_of(self.tree)

    def step(self, section: int) -> str:
        """Return the part of a section's selector after the document's name; ``""`` for the document."""
        return self.steps[section] if section else ""

    @property
    def nbytes(self) -> int:
        """Estimated bytes of memory."""
        whole = self.tree.sections[0]
        # The bytes and the text, of at most four bytes a character, and the starts of lines.
        texts = 8_000 + 5 * whole.whole_bytes.stop + 8 * whole.whole.stop
        return texts + _SECTION_BYTES * len(self.tree.sections)


def dump_sections(parsed: ParsedDocument) -> bytes:
    """Return a document's sections and their selectors as bytes, for :func:`restore_sections`."""
    # A line for each section: an answer needs few of them.
    record = ((*_TREE(parsed.tree), parsed.steps), *map(_SECTION, parsed.tree.sections))
    return zlib.compress("\n".join(map(_LINE, record)).encode(), 1)


def restore_sections(
    packed: bytes, describe: Callable[[str], Document], read: Callable[[], bytes]
) -> ParsedDocument:
    """Return the document from which :func:`dump_sections` made these bytes.

    :param describe: returns the document with a name, possibly without its bytes.
    :param read: returns the bytes when the text is needed.
    """
    head, *rows = zlib.decompress(packed).decode().split("\n")
    name, front, dialect, title, doubtful, steps = json.loads(head)
    text = DocumentText(lambda: decoded(read(), name))

    @cache
    def section(number: int) -> Section:
        level, heading, shown, version, *spans, parent, children, traits, whole_traits = json.loads(
            rows[number]
        )
        lines = (Span(*pair) for pair in spans)
        rest: Any = (*lines, parent, tuple(children), Traits(*traits), Traits(*whole_traits))
        return Section(number, level, heading, shown, version, *rest)

    sections = LazySequence(len(rows), section)
    tree = SectionTree(name, sections, text, front, dialect, title, tuple(doubtful))
    return ParsedDocument(describe(name), tree, known_steps=tuple(steps))


class Summary(NamedTuple):
    """Numbers of a document.

    :param headings: number of headings.
    :param matching: number of headings that meet some conditions.
    :param tokens: tokens of the document, ``None`` if they are not counted yet.
    :param doubtful: first lines of fences without a proper end.
    """

    headings: int
    matching: int
    tokens: int | None
    doubtful: Sequence[int]

    @classmethod
    def of(
        cls,
        sections: Iterable[tuple[Traits, int]],
        tokens: int | None,
        doubtful: Sequence[int],
        conditions: TraitFilter,
    ) -> Summary:
        """Return the numbers of a document.

        :param sections: traits and level of each section as a whole.
        """
        headings = [section for section in sections if section[1]]
        free = conditions == NO_TRAITS
        matching = sum(free or conditions.matches(*section) for section in headings)
        return cls(len(headings), matching, tokens, doubtful)


def summarized(packed: bytes, tokens: int | None, conditions: TraitFilter) -> Summary:
    """Return the numbers of the document from which :func:`dump_sections` made these bytes.

    :param tokens: its tokens, if they are known.
    """
    head, *rows = zlib.decompress(packed).decode().split("\n")
    *_, doubtful, _ = json.loads(head)
    sections = [(Traits(*row[-1]), row[0]) for row in map(json.loads, rows)]
    return Summary.of(sections, tokens, doubtful, conditions)
