"""Sections of a document as bytes, so that an answer reads only the files that it shows.

Restoring them takes a fraction of the time of parsing. Each section is built at its first use, and the file
is read if its text is needed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from functools import cache
from operator import attrgetter

from npl_index.library.documents import Document
from npl_index.library.lazy import LazySequence
from npl_index.markdown.sections import DocumentText, Section, SectionTree, Span, decoded
from npl_index.markdown.traits import Traits
from npl_index.ranking.indexing import ParsedDocument

_TREE = attrgetter("name", "front_matter", "dialect", "title", "doubtful_fences")
_PLAIN = attrgetter("level", "heading", "name", "version")
_SPANS = attrgetter("heading_lines", "own", "whole", "own_bytes", "whole_bytes")
_RELATED = attrgetter("parent", "children", "own_traits", "whole_traits")


def dump_sections(parsed: ParsedDocument) -> bytes:
    """Return a document's sections and their selectors as bytes, for :func:`restore_sections`."""
    rows = [
        (*_PLAIN(section), *((span.start, span.stop) for span in _SPANS(section)), *_RELATED(section))
        for section in parsed.tree.sections
    ]
    record = (*_TREE(parsed.tree), rows, parsed.steps)
    return zlib.compress(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def restore_sections(
    packed: bytes, known: Callable[[str], Document], read: Callable[[], bytes]
) -> ParsedDocument:
    """Return the document of which :func:`dump_sections` made these bytes.

    :param known: returns the document with a name, possibly without its bytes.
    :param read: returns the bytes when the text is needed.
    """
    name, front, dialect, title, doubtful, rows, steps = json.loads(zlib.decompress(packed))
    text = DocumentText(lambda: decoded(read(), name))

    @cache
    def section(number: int) -> Section:
        level, heading, shown, version, *spans, parent, children, traits, whole_traits = rows[number]
        related = parent, tuple(children), Traits(*traits), Traits(*whole_traits)
        head, own, whole, own_bytes, whole_bytes = (Span(*pair) for pair in spans)
        lines = head, own, whole, own_bytes, whole_bytes
        return Section(number, level, heading, shown, version, *lines, *related)

    sections = LazySequence(len(rows), section)
    tree = SectionTree(name, sections, text, front, dialect, title, tuple(doubtful))
    return ParsedDocument(known(name), tree, known_steps=tuple(steps))
