"""``npl-instructions`` headers and separators, and the segments of a document between them."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from typing import NamedTuple

from markdown_it.token import Token

from npl_index.markdown.front_matter import values

match_npl_header = re.compile(
    r"npl-instructions:[ \t]*\n((?:[ \t]+[^\s:#][^:\n]*:.*\n){1,64})---.*(?:\n|\Z)"
).match
"""Matches an ``npl-instructions`` header at an offset; group 1 holds its indented ``key: value`` lines."""

_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)

SEPARATOR = "* * *"
BETWEEN = f"\n\n{SEPARATOR}\n\n"


class Segment(NamedTuple):
    """Lines that share one version.

    :param start: first line of the text after the header.
    :param stop: line after the last one.
    :param name: name in the ``npl-instructions`` header, ``None`` without one.
    :param version: version in the header as written, without quotes.
    """

    start: int
    stop: int
    name: str | None = None
    version: str | None = None


def segments(tokens: list[Token], source: str, starts: array[int], first: int, front: str) -> list[Segment]:
    """Divide a document at its ``npl-instructions`` headers.

    A single header before all text names the document and its version. Otherwise each header begins a
    versioned section, which ends at the next line ``* * *`` outside containers and code, at the next
    header, or at the end of the file; text after such a line is a segment without a version.

    :param tokens: the document's blocks.
    :param first: first line after the front matter.
    :param front: the front matter, which may contain the header.
    :returns: the first segment is the document's own.
    """
    count = len(starts) - 1
    headers = [token for token in tokens if token.type == "npl_header"]
    if not headers:
        in_front = match_npl_header(front + "---") if front else None
        return [Segment(first, count, *name_and_version(in_front[1] if in_front else ""))]
    begin, end = _line_range(headers[0])
    before = source[starts[first] : starts[begin]]
    if len(headers) == 1 and not before.replace(SEPARATOR, "").strip():
        return [Segment(end, count, *name_and_version(headers[0].content))]
    rules = (_line_range(token)[0] for token in tokens if token.type == "hr" and not token.level)
    breaks = [at for at in rules if source[starts[at] : starts[at + 1]].rstrip() == SEPARATOR]

    def blank(start: int, stop: int) -> bool:
        return not source[starts[start] : starts[stop]].strip()

    result: list[Segment] = []
    start, fields = first, ""
    for header in (*headers, None):
        stop, after = _line_range(header) if header else (count, count)
        if header:
            last = bisect_left(breaks, stop) - 1
            if last >= 0 and breaks[last] >= start and blank(breaks[last] + 1, stop):
                stop = breaks[last]
        after_start = bisect_left(breaks, start)
        end = min(breaks[after_start], stop) if result and after_start < len(breaks) else stop
        result.append(Segment(start, end, *name_and_version(fields)))
        if end < stop and not blank(end + 1, stop):
            result.append(Segment(end + 1, stop))
        start, fields = after, header.content if header else ""
    return result


def _line_range(token: Token) -> tuple[int, int]:
    begin, end = token.map or (0, 0)
    return begin, end


def name_and_version(header: str) -> tuple[str | None, str | None]:
    """Return the name and the version in an ``npl-instructions`` header, as text.

    :param header: its indented ``key: value`` lines.
    """
    fields = values("---\n" + _INDENTATION.sub("", header))
    texts = {name: value for name, value in fields.items() if value and isinstance(value, str)}
    return texts.get("name"), texts.get("version")
