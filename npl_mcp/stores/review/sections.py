"""Comments on sections: the lines that a section has in the revision that is reviewed."""

from __future__ import annotations

import time
from pathlib import PurePath

from npl_index.errors import InvalidRequestError, SectionNotFoundError
from npl_index.markdown.sections import parse_sections
from npl_index.selectors.grammar import Selector
from npl_index.selectors.selection import select
from npl_mcp.stores.review.annotation import FORMS, Lines

SECONDS = 10.0
"""How long a file may take to parse, as in a set of documents."""


def section_lines(content: bytes, filename: str, selector: Selector) -> Lines:
    """Return the lines of the section that a selector means, without blank ones at its end.

    :raises SectionNotFoundError: it means none; names selectors that mean something.
    :raises InvalidRequestError: it means several.
    :raises DocumentError: the file is no text, or cannot be parsed.
    """
    tree = parse_sections(content, PurePath(filename).stem, deadline=time.monotonic() + SECONDS)
    try:
        matches = select([tree], selector)
    except SectionNotFoundError as error:
        # What looks like no heading was meant as one of the other forms.
        raise SectionNotFoundError(error.message, near=error.near, hint=error.hint or FORMS) from None
    if len(matches) > 1:
        names = ", ".join(repr(tree.sections[match.head].name) for match in matches[:3])
        raise InvalidRequestError(
            f"{selector.text!r} selects {len(matches)} sections: {names}",
            parameter="location",
            hint="name the section above as well, e.g. 'guide > ## Usage'",
        )
    match = matches[0]
    if match.lines is not None:
        return Lines(match.lines.start + 1, match.lines.stop)
    own = [tree.sections[index].own for index in match.sections]
    first, last = own[0].start, own[-1].stop
    while last > first + 1 and not tree.line(last - 1).strip():
        last -= 1
    return Lines(first + 1, max(last, first + 1))
