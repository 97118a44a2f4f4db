"""Pointers: the sections to read next, one line each."""

from __future__ import annotations

from bisect import bisect_right

from npl_index.answer.assembling import selector
from npl_index.answer.document_set import AnswerUnit, DocumentSet, SectionPart
from npl_index.answer.finding import Occurrence, find_all
from npl_index.answer.values import Pointer

MAX_LINE = 80
"""Maximum characters of a shown line: about twenty tokens."""

_BEFORE = MAX_LINE // 4


def pointer(documents: DocumentSet, unit: AnswerUnit) -> Pointer:
    """Return the pointer to a unit, without a line."""
    number = len(unit.parts) if unit.ranges else None
    return documents.once(
        ("named", unit), lambda: Pointer(selector(documents, unit), unit.tokens, sections=number)
    )


def matching_line(documents: DocumentSet, part: SectionPart) -> tuple[int, str] | None:
    """Return the line below a part's heading with most terms of the question.

    :returns: its number, from 0, and its shortened text; ``None`` without a matching line.
    """
    tree = documents.tree(part.document)
    starts = tree.line_starts
    body = max(part.lines.start, tree.sections[part.section].heading_lines.stop)
    found = find_all(tree.source, starts[body], starts[part.lines.stop], documents.wanted)
    lines: dict[int, dict[int, Occurrence]] = {}
    for one in found:
        lines.setdefault(bisect_right(starts, one.at) - 1, {}).setdefault(one.term, one)
    if not lines:
        return None
    line, held = max(lines.items(), key=lambda item: sum(one.worth for one in item[1].values()))
    text = tree.line(line)
    first = min(one.at for one in held.values()) - starts[line]
    return line, _around(text.rstrip(), first)


def _around(text: str, at: int) -> str:
    """Return the characters of a text around an offset, cut between words."""
    begin = max(0, min(at - _BEFORE, len(text) - MAX_LINE))
    if begin:
        begin = text.find(" ", begin, at) + 1 or begin
    end = begin + MAX_LINE
    if end < len(text):
        space = text.rfind(" ", at, end)
        end = space if space > at else end
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"
