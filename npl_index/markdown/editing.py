"""Edit a section's text as a splice of bytes: all bytes outside the changed range stay.

The given text loses blank lines at its ends and gets the line ends that prevail in the file. Blank lines
around the body stay, and one is added between the text and a heading, but none within a table or a tight
list. A final line end, or its absence, stays. So does what stands at the section's end and serves others,
see :mod:`npl_index.markdown.surroundings`.

A text may contain headings of a lower level than the section's; these become subsections. Other text that
would change the tree is refused. As a check, the result is parsed: every other section must keep its place
and its parent.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markdown_it.token import Token

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.front_matter import with_line_feeds
from npl_index.markdown.headings import one_line
from npl_index.markdown.sections import Section, SectionTree, byte_starts
from npl_index.markdown.state import BlockState
from npl_index.markdown.surroundings import ANCHORS, Surroundings

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BLANK_LINE = re.compile(rb"[ \t]*(?:\r\n|\r|\n)")
_MAY_STAY_OPEN = re.compile(r"```|~~~|<(?:[!?]|script|pre|style|textarea)", re.IGNORECASE)
_WHITE = b" \t\r\n"
Parse = Callable[[bytes], SectionTree]


@dataclass(frozen=True, slots=True)
class _Body:
    """Range of bytes after a section's heading.

    :param start: end of the heading's lines, with the anchors directly below it.
    :param stop: end of the section, without what serves others.
    :param first: start of the first line that is not blank.
    :param last: end of the last line that is not blank, without its line end; ``first`` if all are blank.
    :param anchors: the anchors directly below the heading.
    :param lines: lines of the section below its heading.
    :param tail: first line of what serves others.
    """

    start: int
    stop: int
    first: int
    last: int
    anchors: str
    lines: range
    tail: int

    @property
    def blank(self) -> bool:
        """Return whether there is no text."""
        return self.first == self.last


class _Change(NamedTuple):
    """A file's new bytes, and the expected differences of its sections.

    :param place: index of the first added or removed section.
    :param removed: number of removed sections.
    :param heading: source of the edited section's heading, unless it is removed.
    :param headings: level and source of each new heading.
    """

    result: bytes
    place: int
    removed: int
    heading: str
    headings: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """The given text after parsing.

    :param title: lines of the section's new heading at the beginning of the text, ``""`` without one.
    :param heading: the section's heading, new or old.
    :param body: the text after the title, without blank lines at its ends.
    :param headings: level and source of each heading in the body.
    """

    title: str
    heading: str
    body: str
    headings: tuple[tuple[int, str], ...]


def edit_section(
    data: bytes, tree: SectionTree, index: int, operation: str, text: str, parse: Parse, *, whole: bool = True
) -> tuple[bytes, SectionTree]:
    """Replace a section's body, append or prepend to it, or delete the section.

    ``replace`` with a text that begins with a heading of the section's own level renames the section; if the
    text has no more lines, the body stays. A text without headings keeps the sections below a title.
    ``delete`` keeps the blank lines before the section, unless it is the last.

    :param data: the file's bytes.
    :param tree: their tree.
    :param index: index of the section.
    :param operation: ``replace``, ``append``, ``prepend`` or ``delete``.
    :param text: the new body or the text to add; a blank body clears the old one.
    :param parse: parser of the result.
    :param whole: the body includes the subsections, except for ``prepend``.
    :returns: the file's new bytes and their tree.
    :raises MissingRequestError: there is no text to add.
    :raises InvalidRequestError: the text is not allowed there, or the section is the whole file.
    """
    around = _surroundings(tree)
    change = _OPERATIONS[operation](data, tree, around, tree.sections[index], text, whole)
    new = parse(change.result)
    around.check(_surroundings(new))
    if not _is_kept(data, tree, index, change, new):
        raise InvalidRequestError(
            f"the text would change sections outside {tree.sections[index].name!r}",
            parameter="content",
            hint=_lower(tree.sections[index]),
        )
    return change.result, new


def _replace(
    data: bytes, tree: SectionTree, around: Surroundings, section: Section, text: str, whole: bool
) -> _Change:
    draft = _parse_draft(text, tree, section, rename=True)
    whole = whole and (bool(draft.headings) or section.index not in (0, tree.title))
    body = _find_body(data, tree, around, section, whole)
    result, removed = data, 0
    if draft.body or not draft.title:
        new = draft.body.removeprefix(body.anchors).lstrip("\n") if body.anchors else draft.body
        data, body, new = _without_own(data, tree, around, section, whole, body, new)
        result = _replaced(data, body, _encode(new, data))
        removed = len(tree.subtree(section.index)) - 1 if whole else 0
    if draft.title:
        begin = section.own_bytes.start
        end = begin + len(data[begin : body.start].rstrip(b"\r\n"))
        result = result[:begin] + _encode(draft.title, data) + result[end:]
    return _Change(result, section.index + 1, removed, draft.heading, draft.headings)


def _append(
    data: bytes, tree: SectionTree, around: Surroundings, section: Section, text: str, whole: bool
) -> _Change:
    body = _find_body(data, tree, around, section, whole)
    draft = _parse_draft(text, tree, section, rename=False)
    unclosed = "" if body.stop < len(data) else _unclosed_end(tree)
    if unclosed:
        raise InvalidRequestError(
            f"the section {section.name!r} ends inside a {unclosed} that is never closed",
            hint="replace the section, and close it there",
        )
    new = _encode(draft.body, data)
    result = _replaced(data, body, new)
    if not body.blank:
        gap = _gap(tree, with_line_feeds(data[body.first : body.last].decode()), draft.body)
        gap = gap.replace(b"\n", line_end_of(data))
        result = data[: body.last] + gap + new + _closing(data, body) + data[body.last :]
    place = tree.subtree(section.index).stop if whole else section.index + 1
    return _Change(result, place, 0, draft.heading, draft.headings)


def _prepend(
    data: bytes, tree: SectionTree, around: Surroundings, section: Section, text: str, _: bool
) -> _Change:
    body = _find_body(data, tree, around, section, whole=False)
    draft = _parse_draft(text, tree, section, rename=False)
    if draft.headings and not body.blank:
        problem = f"the existing text would come under {draft.headings[-1][1]!r}"
        raise InvalidRequestError(problem, parameter="content", hint="append puts a subsection below it")
    new = _encode(draft.body, data)
    result = _replaced(data, body, new)
    if not body.blank:
        gap = _gap(tree, draft.body, with_line_feeds(data[body.first : body.last].decode()))
        result = data[: body.first] + new + gap.replace(b"\n", line_end_of(data)) + data[body.first :]
    return _Change(result, section.index + 1, 0, draft.heading, draft.headings)


def _delete(
    data: bytes, tree: SectionTree, around: Surroundings, section: Section, _: str, __: bool
) -> _Change:
    start, stop = section.whole_bytes.start, section.whole_bytes.stop
    before = _text_end(data, _begin(data), start)
    is_last, is_first = stop == len(data), not data[_begin(data) : start].strip(_WHITE)
    if not section.level or section.index == tree.title or (is_first and is_last):
        problem = f"{section.name!r} is the whole document"
        raise InvalidRequestError(problem, hint="remove the file, or delete its sections")
    body = _find_body(data, tree, around, section, whole=True)
    data, body, _ = _without_own(data, tree, around, section, True, body, "")
    is_last = is_last and body.stop == len(data)
    kept = data[_text_end(data, start, body.stop) :] if is_last else data[before:start]
    if not (is_first or is_last) and len(_LINE_END.findall(kept)) < 2:
        kept += line_end_of(data)
    result = data[:before] + kept + data[body.stop :]
    return _Change(result, section.index, len(tree.subtree(section.index)), section.heading, ())


_OPERATIONS = {"replace": _replace, "append": _append, "prepend": _prepend, "delete": _delete}


def _text_end(data: bytes, start: int, stop: int) -> int:
    """Return the end of the last line that is not blank, without its line end."""
    line_end = _LINE_END.search(data, start + len(data[start:stop].rstrip(_WHITE)), stop)
    return line_end.start() if line_end else stop


def _surroundings(tree: SectionTree) -> Surroundings:
    """Return the parts of a document that serve several sections."""
    return Surroundings(tree.source, npl=tree.dialect == "npl", first=tree.sections[0].own.start)


def _gap(tree: SectionTree, above: str, below: str) -> bytes:
    """Return the line feeds between two texts: none but one where the second continues a table or list."""
    upper, lower = (Surroundings(text, npl=tree.dialect == "npl") for text in (above, below))
    return b"\n" if upper.continued_by(lower) else b"\n\n"


def _without_own(
    data: bytes,
    tree: SectionTree,
    around: Surroundings,
    section: Section,
    whole: bool,
    body: _Body,
    text: str,
) -> tuple[bytes, _Body, str]:
    """Drop parts of a new text that repeat the end that serves others, and definitions without further use.

    :param text: the new text.
    :returns: the file's bytes, the body in them, and the text without the repetition.
    """
    if body.tail == body.lines.stop:
        return data, body, text
    new = Surroundings(text, npl=tree.dialect == "npl")
    text = "\n".join(new.lines[: new.own_end(around.lines[body.tail : body.lines.stop])]).rstrip(" \t\n")
    new = Surroundings(text, npl=tree.dialect == "npl")
    starts = byte_starts(data, tree.lines)
    unused = set(around.unused(body.tail, body.lines.stop, body.lines, new))
    if all(line in unused or not around.lines[line].strip() for line in range(body.tail, body.lines.stop)):
        return data, _find_body(data, tree, around, section, whole, body.lines.stop), text
    for line in sorted(unused, reverse=True):
        data = data[: starts[line]] + data[starts[line + 1] :]
    return data, body, text


def _find_body(
    data: bytes,
    tree: SectionTree,
    around: Surroundings,
    section: Section,
    whole: bool,
    tail: int | None = None,
) -> _Body:
    """Find a section's body in the file.

    :param tail: first line of what serves others, if known.
    """
    starts = byte_starts(data, tree.lines)
    last = tree.sections[tree.subtree(section.index)[-1] if whole else section.index]
    begin, end = section.heading_lines.stop, last.own.stop
    if tail is None:
        tail = around.tail(begin, end, max(last.heading_lines.stop, last.own.start))
    lines, below = range(begin, end), begin
    while below < tail and section.level and ANCHORS.fullmatch(tree.line(below).strip()):
        below += 1
    anchors = "\n".join(map(tree.line, range(begin, below)))
    start, stop = starts[below], starts[tail]
    text = data[start:stop]
    if not text.strip(_WHITE):
        blank = _BLANK_LINE.match(data, start, stop)
        first = blank.end() if blank else stop
        return _Body(start, stop, first, first, anchors, lines, tail)
    begin = start + len(text) - len(text.lstrip(_WHITE))
    first = max(data.rfind(b"\n", start, begin), data.rfind(b"\r", start, begin), start - 1) + 1
    return _Body(start, stop, first, _text_end(data, start, stop), anchors, lines, tail)


def _parse_draft(text: str, tree: SectionTree, section: Section, *, rename: bool) -> _Draft:
    """Parse the given text, and refuse text that the section cannot contain.

    :param rename: the text replaces the section, so it may be blank and begin with the section's heading.
    """
    source = with_line_feeds(text)
    if "\0" in source:
        raise InvalidRequestError("the text contains a NUL character", parameter="content")
    if not rename and not source.strip(" \t\n"):
        raise MissingRequestError("there is no text to add", parameter="content")
    blocks = read_blocks(source, npl=tree.dialect == "npl")
    lines = source.split("\n")
    check_closed(blocks)
    found = [token for token in blocks.tokens if token.type == "heading_open" and not token.level]
    title, heading = "", section.heading
    if rename and found and found[0].tag == f"h{section.level}":
        begin, stop = found[0].map or (0, 0)
        if not "".join(lines[:begin]).strip(" \t"):
            title, heading = "\n".join(lines[begin:stop]), one_line(found[0].content)
            lines[:stop] = [""] * stop
            del found[0]
    _check_headings(section, found)
    first = next((number for number, line in enumerate(lines) if line.strip(" \t")), len(lines))
    body = "\n".join(lines[first:]).rstrip(" \t\n")
    headings = tuple((int(token.tag[1]), one_line(token.content)) for token in found)
    return _Draft(title, heading, body, headings)


def _check_headings(section: Section, headings: Sequence[Token]) -> None:
    """Refuse headings that end the section."""
    for token in headings:
        if token.map and int(token.tag[1]) <= section.level:
            raise InvalidRequestError(
                f"line {token.map[0] + 1} of the text is a heading of level {token.tag[1]}, which would end "
                f"the section {section.name!r} of level {section.level}",
                parameter="content",
                hint=_lower(section),
            )


def _lower(section: Section) -> str:
    """Return a hint about the allowed heading levels, and about the place for other headings."""
    deeper = f"use headings of level {section.level + 1} or lower" if section.level < 6 else "use no headings"
    return f"{deeper}, or append a new section to the one above" if section.parent else deeper


def _unclosed_end(tree: SectionTree) -> str:
    """Return the kind of the open block at the end, which begins in the last section's own text."""
    own = tree.source[tree.line_starts[tree.sections[-1].own.start] :]
    if _MAY_STAY_OPEN.search(own) is None:
        return ""
    return _unclosed(read_blocks(tree.source, starts=tree.line_starts, npl=tree.dialect == "npl"))[0]


def check_closed(blocks: BlockState) -> None:
    """Refuse a text that ends inside a fence or a comment, which would swallow the following text.

    :param blocks: blocks of the text.
    :raises InvalidRequestError: a block is open; the message names its first line.
    """
    what, line, end = _unclosed(blocks)
    if what:
        raise InvalidRequestError(
            f"the text does not close the {what} of its line {line}", parameter="content", hint=f"add {end}"
        )


def _unclosed(blocks: BlockState) -> tuple[str, int, str]:
    """Return the kind of the open block at the end of a text, its first line, and its end mark."""
    if blocks.open_fence:
        opened = [token.map[0] + 1 for token in blocks.tokens if token.type == "fence" and token.map]
        return "code fence", opened[-1], "a line with its closing marks"
    if blocks.open_html is not None:
        begin, closing = blocks.open_html
        if closing == "-->":
            return "comment", begin + 1, closing
        return "block of HTML", begin + 1, "its closing tag" if "/" in closing else closing.replace("\\", "")
    return "", 0, ""


def _encode(text: str, data: bytes) -> bytes:
    """Return the text's bytes with the line ends that prevail in the file."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"the text holds a lone surrogate at character {error.start + 1}", parameter="content"
        ) from error
    return encoded.replace(b"\n", line_end_of(data))


def line_end_of(data: bytes) -> bytes:
    """Return the line end that prevails."""
    pairs = data.count(b"\r\n")
    counts = {b"\n": data.count(b"\n") - pairs, b"\r\n": pairs, b"\r": data.count(b"\r") - pairs}
    return max(counts, key=counts.__getitem__)


def _replaced(data: bytes, body: _Body, text: bytes) -> bytes:
    """Replace the body with a text, or clear it."""
    line_end = line_end_of(data)
    if not text:
        touches = body.first == body.start and body.stop < len(data)
        return data[: body.first] + (line_end if touches else b"") + data[body.stop :]
    lead = b""
    if body.blank and body.first > _begin(data):
        lead = line_end if body.first == body.start else b""
        lead += b"" if _ends_line(data, body.first) else line_end
    return data[: body.first] + lead + text + _closing(data, body) + data[body.last :]


def _closing(data: bytes, body: _Body) -> bytes:
    """Return the line ends to add after a text at the body's end, with a blank line before a heading."""
    line_end = line_end_of(data)
    closing = line_end if body.blank and _ends_line(data, body.first) else b""
    if body.stop < len(data) and len(_LINE_END.findall(closing + data[body.last : body.stop])) < 2:
        closing += line_end
    return closing


def _begin(data: bytes) -> int:
    """Return the offset of the first character."""
    return len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0


def _ends_line(data: bytes, stop: int) -> bool:
    """Return whether a line ends before a byte, or the file begins there."""
    return stop <= _begin(data) or data[stop - 1 : stop] in (b"\n", b"\r")


def _is_kept(data: bytes, tree: SectionTree, index: int, change: _Change, new: SectionTree) -> bool:
    """Return whether two trees differ only in the edited section.

    :param index: index of that section.
    """
    place, stop = change.place, change.place + change.removed
    grown, moved = len(change.headings) - change.removed, len(change.result) - len(data)

    def is_same(section: Section) -> bool:
        behind = section.index >= place
        twin = new.sections[section.index + (grown if behind else 0)]
        parent = section.parent
        if parent is not None and parent >= place:
            parent += grown
        return (
            twin.level == section.level
            and (twin.name == section.name or section.index == index or not section.level)
            and twin.version == section.version
            and twin.heading == (change.heading if section.index == index else section.heading)
            and twin.own_bytes.start == section.own_bytes.start + (moved if behind else 0)
            and twin.parent == parent
        )

    added = new.sections[place : place + len(change.headings)]
    return (
        len(new.sections) == len(tree.sections) + grown
        and tuple((section.level, section.heading) for section in added) == change.headings
        and new.front_matter == tree.front_matter
        and all(is_same(section) for section in tree.sections if not place <= section.index < stop)
    )
