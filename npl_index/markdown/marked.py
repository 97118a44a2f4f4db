"""A generated block between two marks in a user's file; all other bytes stay unchanged."""

from __future__ import annotations

import re

from npl_index.errors import InvalidRequestError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.front_matter import with_line_feeds

_MARK = re.compile(rb"(?:^|(?<=\A\xef\xbb\xbf))<!-- (/?)npl map -->(?=[ \t]*\r?$)", re.MULTILINE)


def with_map(data: bytes, text: str) -> bytes:
    """Return a file's bytes with a map in its block; a file without one gets it at the end.

    Marks in a block of code are an example.

    The block has the file's line ends, and at the end of a file without a last line end it has none.

    :param text: lines without marks, with a line feed at the end.
    :raises InvalidRequestError: the marks do not form exactly one pair.
    :raises UnicodeDecodeError: the file is not UTF-8.
    """
    shown = read_blocks(with_line_feeds(data.decode("utf-8-sig"))).lines_without_code()
    ending = b"\r\n" if b"\r\n" in data else b"\n"
    block = f"<!-- npl map -->\n{text}<!-- /npl map -->".encode().replace(b"\n", ending)
    marks = [mark for mark in _MARK.finditer(data) if shown[data.count(b"\n", 0, mark.start())]]
    if [mark[1] for mark in marks] == [b"", b"/"]:
        return data[: marks[0].start()] + block + data[marks[1].end() :]
    if marks:
        problem = f"it has {len(marks)} map marks instead of one pair"
        raise InvalidRequestError(problem, hint="leave one <!-- npl map --> with <!-- /npl map --> below it")
    last = ending if not data or data.endswith(b"\n") else b""
    return data + (data and (ending if last else 2 * ending)) + block + last
