"""Comments on parts of a file: the syntax of locations, and texts with all comments as footnotes."""

from __future__ import annotations

import io
import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

from npl_index.deadline import Deadline
from npl_index.errors import DocumentError, InvalidRequestError, SectionNotFoundError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.front_matter import find_front_matter, with_line_feeds
from npl_index.markdown.sections import parse_sections
from npl_index.selectors.grammar import Selector, compile_selector
from npl_index.selectors.selection import select
from npl_mcp.stores.artifact.files import as_text
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import damaged

FORMS = "write line:<n>, line:<first>-<last>, @x:<n>,y:<n> or a selector"
PLACEHOLDER = "[Add overall review here]"
"""Text in a reviewer's file without an overall comment."""

MAX_PIXEL = 999_999_999
"""Maximum column and row of a spot."""

SECONDS = 10.0
"""Maximum seconds to parse a file, the same as for documents."""

_LINES = re.compile(r"line:([0-9]{1,9})(?:-([0-9]{1,9}))?")
_SPOT = re.compile(r"@x:([0-9]{1,9}),y:([0-9]{1,9})")
# The bracket may be missing: a search that restarts at each of many open marks would take quadratic time.
_FOOTNOTE = re.compile(r"\[\^([^\]\s]+)(\]?)")
_UNFIT = re.compile(r"[^\w-]+")
_HEADING = "# Review Comments\n\n"


class Location(NamedTuple):
    """Lines of a text, counted from 1, inclusive; or a pixel of a picture, from its upper left corner."""

    first: int | None = None
    last: int | None = None
    x: int | None = None
    y: int | None = None

    def __str__(self) -> str:
        if self.first is None:
            return f"@x:{self.x},y:{self.y}"
        return f"line:{self.first}" if self.first == self.last else f"line:{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a review.

    :param id: id of the comment.
    :param location: ``line:<n>``, ``line:<first>-<last>`` or ``@x:<n>,y:<n>``.
    :param comment: text of the comment.
    :param persona: author.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param selector: selector of the commented section, if the comment has one.
    """

    id: int
    location: str
    comment: str
    persona: str
    created_at: str
    selector: str | None = None

    @property
    def place(self) -> Location:
        """The place of :attr:`location`.

        :raises DatabaseError: the stored location is damaged.
        """
        try:
            return parse_location(self.location)
        except (InvalidRequestError, AttributeError, TypeError):
            raise damaged(f"review_comment {self.id}, column location is not a valid place") from None


def parse_location(text: str) -> Location:
    """Parse a location.

    :raises InvalidRequestError: the location has an unknown form, or its end precedes its beginning.
    """
    clean = checks.line(text, "location")
    lines, spot = _LINES.fullmatch(clean), _SPOT.fullmatch(clean)
    if spot is not None:
        return Location(x=int(spot[1]), y=int(spot[2]))
    if lines is None:
        raise checks.invalid("location", f"is {clean[:64]!r}", FORMS)
    first, last = int(lines[1]), int(lines[2] or lines[1])
    if first < 1 or last < first:
        problem = "lines are counted from 1" if first < 1 else "the last line precedes the first"
        raise checks.invalid("location", f"is {clean!r}: {problem}", FORMS)
    return Location(first, last)


def parse_place(text: str) -> Location | Selector:
    """Parse a location or a selector; the beginnings of the two differ.

    :raises SelectorSyntaxError: the selector cannot be parsed.
    :raises InvalidRequestError: the location cannot be parsed.
    """
    if text.lstrip().startswith(("line:", "@x:")):
        return parse_location(text)
    return compile_selector(checks.line(text, "location"))


def locate(place: Location | Selector, content: bytes, filename: str) -> tuple[str, str | None]:
    """Look up a place in a file.

    :returns: the location, and the selector of the section there if the caller named one.
    :raises InvalidRequestError: the file has no such lines, or several sections match.
    :raises SectionNotFoundError: the selector selects nothing.
    """
    text = as_text(content)
    if text is None and (isinstance(place, Selector) or place.x is None):
        problem = "the file is not text and has no lines"
        raise InvalidRequestError(problem, parameter="location", hint="write @x:<n>,y:<n>")
    if isinstance(place, Selector):
        return str(_section_lines(content, filename, place)), place.text
    if place.last is None and text is not None and not filename.lower().endswith(".svg"):
        problem = "the file is text and has no pixels"
        hint = "review_add_comment takes line:<n> or a selector"
        raise InvalidRequestError(problem, parameter="location", hint=hint)
    if place.last is not None and place.last > (count := count_lines(text or "")):
        problem = f"location is {place}, and the file has {count} lines"
        raise InvalidRequestError(problem, parameter="location", hint=FORMS)
    return str(place), None


def _section_lines(content: bytes, filename: str, selector: Selector) -> Location:
    """Return the lines of the selected section, without trailing blank lines.

    :raises SectionNotFoundError: no section matches; the message suggests selectors.
    :raises InvalidRequestError: several sections match.
    :raises DocumentError: the file is not text, or cannot be parsed.
    """
    tree = parse_sections(content, PurePath(filename).stem, deadline=time.monotonic() + SECONDS)
    try:
        matches = select([tree], selector)
    except SectionNotFoundError as error:
        # Text unlike a heading was meant as a location.
        hint = error.hint if error.near else FORMS
        raise SectionNotFoundError(error.message, near=error.near, hint=hint) from None
    if len(matches) > 1:
        names = ", ".join(repr(tree.sections[match.head].name) for match in matches[:3])
        problem = f"{selector.text!r} selects {len(matches)} sections: {names}"
        hint = "name the section above as well, e.g. 'guide > ## Usage'"
        raise InvalidRequestError(problem, parameter="location", hint=hint)
    match = matches[0]
    if match.lines is not None:
        return Location(match.lines.start + 1, match.lines.stop)
    own = [tree.sections[index].own for index in match.sections]
    first, last = own[0].start, own[-1].stop
    while last > first + 1 and not tree.line(last - 1).strip():
        last -= 1
    return Location(first + 1, max(last, first + 1))


def split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text with their line ends; building a list at once would block other threads."""
    return (line for line in io.StringIO(text, newline=""))


def count_lines(text: str) -> int:
    """Return the number of lines of a text; any line end counts, and the last line needs none."""
    return text.count("\n") + text.count("\r") - text.count("\r\n") + (text[-1:] not in ("", "\n", "\r"))


Footnotes = Sequence[tuple[str, Comment]]
"""Comments in the order of their numbers, each after the label of its footnote."""


def labels(comments: Sequence[Comment], text: str = "") -> Footnotes:
    """Label each comment: by its persona and a number, counted in the order of the places.

    :param text: the annotated text; labels of its own footnotes are not reused.
    """
    # One match at a time: building a list at once would block other threads.
    taken = {note[1] for note in _FOOTNOTE.finditer(text) if note[2]}
    footnotes = []
    number = 0
    for comment in sorted(comments, key=_order):
        name = _UNFIT.sub("-", comment.persona).strip("-") or "reviewer"
        number += 1
        while f"{name}-{number}" in taken:
            number += 1
        footnotes.append((f"{name}-{number}", comment))
    return footnotes


def annotate(text: str | None, footnotes: Footnotes, *, markdown: bool = True) -> str:
    """Return a text with a marker at each commented line, and the comments at its end.

    A range is marked at its last line. All original characters are kept, including line ends. In Markdown a
    marker stands at the end of a line of a paragraph or a heading; in other blocks it would change them, and
    it is a paragraph of its own behind the block.

    :param text: ``None`` for a file without lines: the copy has only the comments, with their places.
    :param markdown: whether the text is Markdown.
    """
    if text is None:
        listed = (_note(label, comment, f"{comment.location}: ") for label, comment in footnotes)
        return _HEADING + "".join(listed)
    places = {last for _, comment in footnotes if (last := comment.place.last) is not None}
    stops: Mapping[int, int] = {}
    with suppress(DocumentError):  # a text beyond the limits of documents has markers in all its lines
        stops = _stops(text, places) if markdown and places else stops
    marks, apart = defaultdict[int, str](str), defaultdict[int, str](str)
    notes: list[str] = []
    for label, comment in footnotes:
        first, last, *_ = comment.place
        if last is not None:
            where = f"line {last}: " if last in stops else ""
            where = where if first == last else f"lines {first}-{last}: "
            (apart if last in stops else marks)[stops.get(last, last)] += f"[^{label}]"
            notes.append(_note(label, comment, where))
    if not notes:
        return text
    lines: list[str] = []
    newline = ""
    for number, line in enumerate(split_lines(text), 1):
        words = line.rstrip("\r\n")
        end = line[len(words) :]
        newline = newline or end or "\n"
        lines += (words, marks.get(number, ""), end)
        if number in apart:
            lines += ("" if end else newline, newline, apart[number], newline, newline)
    gap = "" if lines[-1] else "\n"
    footer = f"{gap}\n\n---\n\n{_HEADING}{''.join(notes)}"
    return "".join(lines) + footer.replace("\n", newline)


def _stops(text: str, lines: Collection[int]) -> Mapping[int, int]:
    """Return the last line of the block around each line that takes no marker; lines count from 1."""
    source = with_line_feeds(text).removeprefix("\ufeff")
    first, _ = find_front_matter(source)
    stops = {line: max(line, first) for line in lines}
    deadline = Deadline("the file", time.monotonic() + SECONDS)
    for token in read_blocks(source, first=first, complete=True, deadline=deadline).tokens:
        begin, end = token.map or (0, 0)
        if token.level == 0:
            stops.update(dict.fromkeys(stops.keys() & range(begin + 1, end + 1), end))
        if token.type in ("paragraph_open", "heading_open"):
            # The line below a heading's text makes it a heading.
            for line in stops.keys() & range(begin + 1, end + (token.markup not in ("=", "-"))):
                del stops[line]
    return stops


def _note(label: str, comment: Comment, where: str) -> str:
    return f"[^{label}]: @{comment.persona}: {where}{_indent(comment.comment)}\n"


def reviewer_files(
    reviews: Sequence[tuple[str, str | None]], footnotes: Footnotes, reviewers: Mapping[int, str]
) -> dict[str, str]:
    """Return the text of each reviewer's comments, with the labels of the annotated copy.

    :param reviews: reviewer and overall comment of each review; those of one reviewer share one text.
    :param reviewers: reviewer by id of the comment.
    :returns: the text by reviewer, in the order of the reviews.
    """
    files: dict[str, str] = {}
    for reviewer in dict.fromkeys(reviewer for reviewer, _ in reviews):
        inline = ""
        for label, comment in footnotes:
            if reviewers[comment.id] == reviewer:
                section = f" ({comment.selector})" if comment.selector else ""
                inline += f"[^{label}]: {comment.location}{section}: {_indent(comment.comment)}\n\n"
        overall = "\n\n".join(text.strip() for author, text in reviews if author == reviewer and text)
        files[reviewer] = (
            f"# Inline Comments by @{reviewer}\n\n{inline}---\n\n"
            f"# Overall Review by @{reviewer}\n\n{overall or PLACEHOLDER}\n"
        )
    return files


def _order(comment: Comment) -> tuple[bool, int, int, int]:
    first, last, x, y = comment.place
    return last is None, last or y or 0, first or x or 0, comment.id


def _indent(comment: str) -> str:
    """Keep every line of a comment inside its footnote."""
    first, *rest = comment.strip().splitlines()
    return "\n".join([first, *(f"    {line}" if line.strip() else "" for line in rest)])
