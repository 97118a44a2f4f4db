"""What is set aside before sections are cut: front matter, ``npl-instructions`` headers and separators."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from npl_index.markdown.leaves import NPL_HEADER

SEPARATOR = "* * *"

_MAX_FRONT_MATTER = 1 << 20
_OPENING = re.compile(r"---[ \t]*(?:\n|\Z)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
# Lines a YAML mapping may hold at column 0 besides indented ones: a key, an item, a comment, a bracket.
_KEY = re.compile(
    r"""(?:"[^"\n]*"[ \t]*|'[^'\n]*'[ \t]*|(?:[^\s\-?:#,\[\]{}&*!|>'"%@`]|[-?](?=\S))[^\n]*?):(?:\s|\Z)"""
)
_OTHER_LINE = re.compile(r"[ \t]|-(?:[ \t]|\Z)|#|[\[\]{}]|\Z")
_FIELD = re.compile(r"^[ \t]+(name|version)[ \t]*:(.*)$", re.MULTILINE)
_QUOTED = re.compile(r"""(["'])(.*?)\1""")
_COMMENT = re.compile(r"(?:^|\s)#")


@dataclass(frozen=True, slots=True)
class Segment:
    """Lines that share one version.

    :param start: first line of the text, the header before it left out.
    :param stop: line after the last.
    :param name: name in the ``npl-instructions`` header, ``None`` without one.
    :param version: version text in the header exactly as written, without quotes.
    """

    start: int
    stop: int
    name: str | None = None
    version: str | None = None


def front_matter(source: str) -> tuple[int, str]:
    """Find YAML front matter: ``---`` on the first line to the next ``---`` or ``...`` line.

    What lies between must look like a mapping (a ``key:`` line, and at column 0 nothing a mapping cannot
    hold) or be blank, and have at most a million characters; otherwise the first line is a thematic break
    and what follows is the document's.

    :returns: number of lines to leave out, and the text between the two lines.
    """
    opening = _OPENING.match(source)
    closing = _CLOSING.search(source, opening.end()) if opening else None
    if opening is None or closing is None or closing.start() > _MAX_FRONT_MATTER:
        return 0, ""
    body = source[opening.end() : closing.start()]
    if body.strip():
        lines = body.split("\n")
        keys = [_KEY.match(line) is not None for line in lines]
        if not any(keys) or not all(
            key or _OTHER_LINE.match(line) for key, line in zip(keys, lines, strict=True)
        ):
            return 0, ""
    return source.count("\n", 0, closing.end()) + (not closing[0].endswith("\n")), body


def segments(
    tokens: Sequence[Token], source: str, line_starts: array[int], first: int, front: str
) -> list[Segment]:
    """Divide a document at its ``npl-instructions`` headers.

    One header before all text gives its name and version to the document. Otherwise each header begins a
    versioned section, which runs to the next line ``* * *`` outside containers and code, to the next
    header, or to the end of the file; text behind such a line is a segment without a version.

    :param tokens: the document's blocks.
    :param first: first line after the front matter.
    :param front: the front matter, which may itself hold the header.
    :returns: the first segment is the document's own.
    """
    count = len(line_starts) - 1
    headers = [token for token in tokens if token.type == "npl_header"]
    if not headers:
        in_front = NPL_HEADER.match(front + "---") if front else None
        return [Segment(first, count, *name_and_version(in_front[1] if in_front else ""))]
    begin, end = _lines(headers[0])
    before = source[line_starts[first] : line_starts[begin]]
    if len(headers) == 1 and not before.replace(SEPARATOR, "").strip():
        return [Segment(end, count, *name_and_version(headers[0].content))]
    breaks = [
        line
        for line, _ in (_lines(token) for token in tokens if token.type == "hr" and not token.level)
        if source[line_starts[line] : line_starts[line + 1]].rstrip() == SEPARATOR
    ]
    return _cut(headers, breaks, source, line_starts, first)


def _cut(
    headers: Sequence[Token], breaks: Sequence[int], source: str, line_starts: array[int], first: int
) -> list[Segment]:
    """Cut at several headers and the separators around them."""

    def blank(start: int, stop: int) -> bool:
        return not source[line_starts[start] : line_starts[stop]].strip()

    result: list[Segment] = []
    start, fields = first, ""
    for header in (*headers, None):
        stop, after = _lines(header) if header else (len(line_starts) - 1,) * 2
        if header:
            before = bisect_left(breaks, stop) - 1
            if before >= 0 and breaks[before] >= start and blank(breaks[before] + 1, stop):
                stop = breaks[before]
        after_start = bisect_left(breaks, start)
        end = min(breaks[after_start], stop) if result and after_start < len(breaks) else stop
        result.append(Segment(start, end, *name_and_version(fields)))
        if end < stop and not blank(end + 1, stop):
            result.append(Segment(end + 1, stop))
        start, fields = after, header.content if header else ""
    return result


def _lines(token: Token) -> tuple[int, int]:
    begin, end = token.map or (0, 0)
    return begin, end


def name_and_version(fields: str) -> tuple[str | None, str | None]:
    """Read the two known keys of a header, as text: YAML would make the version 1.10 the number 1.1."""
    values = {key: _scalar(value.strip()) for key, value in _FIELD.findall(fields)}
    return values.get("name"), values.get("version")


def _scalar(value: str) -> str | None:
    """Return a value without quotes or comment, ``None`` if nothing is left."""
    quoted = _QUOTED.match(value)
    return (quoted[2] if quoted else _COMMENT.split(value, maxsplit=1)[0].rstrip()) or None
