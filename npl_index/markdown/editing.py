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
from collections.abc import Callable
from itertools import dropwhile, pairwise
from typing import NamedTuple

from npl_index.deadline import CALL
from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.front_matter import with_line_feeds
from npl_index.markdown.headings import one_line
from npl_index.markdown.sections import Section, SectionTree, byte_starts
from npl_index.markdown.state import BlockState
from npl_index.markdown.surroundings import ANCHORS, Surroundings

_LINE_END = re.compile(rb"\r\n|\r|\n")
_WHITE = b" \t\r\n"
Parse = Callable[[bytes], SectionTree]


class _Body(NamedTuple):
    """Lines after a section's heading.

    :param start: line after the heading, and after the anchors directly below it.
    :param first: first line that is not blank.
    :param last: line after the last one that is not blank; ``first`` if all are blank.
    :param stop: line after the body, where that begins what serves others.
    :param end: line after the section.
    """

    start: int
    first: int
    last: int
    stop: int
    end: int


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
    edit = _Edit(data, tree, tree.sections[index], whole and operation != "prepend")
    place, removed = _OPERATIONS[operation](edit, text)
    result = edit.result()
    new = parse(result)
    edit.around.check(_surroundings(new))
    if not edit.keeps_others(result, new, place, removed):
        problem = f"the text would change sections outside {tree.sections[index].name!r}"
        raise InvalidRequestError(problem, parameter="content", hint=_lower(tree.sections[index]))
    return result, new


class _Edit:
    """An edit of one section. Each operation returns the index of the first added or removed section, and the
    number of removed sections.

    :ivar around: the parts of the document that serve several sections.
    :ivar heading: source of the section's heading, new or old.
    :ivar headings: level and source of each heading in the given text.
    """

    def __init__(self, data: bytes, tree: SectionTree, section: Section, whole: bool) -> None:
        self._tree, self._section, self._whole = tree, section, whole
        self._size, self._line_end = len(data), _line_end_of(data)
        self._mark = data[: len(BOM_UTF8) * data.startswith(BOM_UTF8)]
        starts = byte_starts(data, tree.lines)
        self._rows = [data[start:stop] for start, stop in pairwise(starts) if start < stop]
        self.around, self.heading = _surroundings(tree), section.heading
        self.headings: tuple[tuple[int, str], ...] = ()

    def result(self) -> bytes:
        """Return the file's new bytes."""
        return self._mark + b"".join(self._rows)

    def replace(self, text: str) -> tuple[int, int]:
        """Replace the body, or the heading, or both."""
        title, new = self._parse(text, rename=True)
        index, begin = self._section.index, self._section.heading_lines
        self._whole = self._whole and (bool(self.headings) or index not in (0, self._tree.title))
        body, removed = self._body(), 0
        if new or not title:
            anchors = "\n".join(map(self._tree.line, range(begin.stop, body.start)))
            self._put(*self._without_repetition(body, new.removeprefix(anchors).lstrip("\n")))
            removed = len(self._tree.subtree(index)) - 1 if self._whole else 0
        if title:
            heading = b"".join(self._rows[begin.start : body.start])
            ending = heading[len(heading.rstrip(b"\r\n")) :]
            self._rows[begin.start : body.start] = [self._encode(title) + ending]
        return index + 1, removed

    def append(self, text: str) -> tuple[int, int]:
        """Add a text after the body."""
        body = self._body()
        _, text = self._parse(text)
        if body.stop == len(self._rows) and (unclosed := _unclosed(self.around.blocks)[0]):
            problem = f"the section {self._section.name!r} ends inside a {unclosed} that is never closed"
            raise InvalidRequestError(problem, hint="replace the section, and close it there")
        self._put(body, text, behind=self._content(body))
        index = self._section.index
        return self._tree.subtree(index).stop if self._whole else index + 1, 0

    def prepend(self, text: str) -> tuple[int, int]:
        """Add a text before the body."""
        body = self._body()
        _, text = self._parse(text)
        if old := self._content(body):
            if self.headings:
                problem = f"the existing text would come under {self.headings[-1][1]!r}"
                hint = "append puts a subsection below it"
                raise InvalidRequestError(problem, parameter="content", hint=hint)
            self._rows.insert(body.first, self._encode(text) + self._gap(text, old.decode()))
        else:
            self._put(body, text)
        return self._section.index + 1, 0

    def delete(self, _: str) -> tuple[int, int]:
        """Remove the section with its subsections."""
        section, rows = self._section, self._rows
        start, is_last = section.whole.start, section.whole.stop == len(rows)
        above = b"".join(rows[:start])
        is_first = not above.strip(_WHITE)
        if not section.level or section.index == self._tree.title or (is_first and is_last):
            problem = f"{section.name!r} is the whole document"
            raise InvalidRequestError(problem, hint="remove the file, or delete its sections")
        self._whole = True
        body, _ = self._without_repetition(self._body(), "")
        if is_last and body.stop == len(rows):
            own = b"".join(rows[start:])
            rows[:] = [above[: _text_end(above)], own[_text_end(own) :]]
        else:
            touches = not is_first and rows[start - 1].strip(_WHITE)
            rows[start : body.stop] = [self._line_end] if touches else []
        return section.index, len(self._tree.subtree(section.index))

    def keeps_others(self, result: bytes, new: SectionTree, place: int, removed: int) -> bool:
        """Return whether a new tree differs from the old one only in the edited section."""
        old, added = self._tree.sections, len(self.headings)
        grown, moved = added - removed, len(result) - self._size

        def is_same(section: Section, twin: Section) -> bool:
            is_behind, is_edited = section.index >= place, section.index == self._section.index
            parent = section.parent
            return (
                twin.level == section.level
                and (twin.name == section.name or is_edited or not section.level)
                and twin.version == section.version
                and twin.heading == (self.heading if is_edited else section.heading)
                and twin.own_bytes.start == section.own_bytes.start + (moved if is_behind else 0)
                and twin.parent == (parent if parent is None or parent < place else parent + grown)
            )

        kept = [*old[:place], *old[place + removed :]]
        twins = [*new.sections[:place], *new.sections[place + added :]]
        inside = new.sections[place : place + added]
        return (
            len(kept) == len(twins)
            and tuple((section.level, section.heading) for section in inside) == self.headings
            and new.front_matter == self._tree.front_matter
            and all(map(is_same, kept, twins))
        )

    def _content(self, body: _Body) -> bytes:
        """Return the body without blank lines at its ends."""
        return b"".join(self._rows[body.first : body.last]).rstrip(b"\r\n")

    def _gap(self, above: str, below: str) -> bytes:
        """Return the line ends between two texts: one if the second continues a table or list, else two."""
        upper, lower = map(self._parts_of, map(with_line_feeds, (above, below)))
        return self._line_end if upper.continued_by(lower) else 2 * self._line_end

    def _parts_of(self, text: str) -> Surroundings:
        return Surroundings(text, npl=self._tree.dialect == "npl")

    def _without_repetition(self, body: _Body, text: str) -> tuple[_Body, str]:
        """Drop the end of a new text that repeats the section's end, and definitions in the file without use.

        :param text: the new text.
        :returns: the body in the remaining lines of the file, and the text without the repetition.
        """
        tail = range(body.stop, body.end)
        if not tail:
            return body, text
        new, lines = self._parts_of(text), self.around.lines
        text = "\n".join(new.lines[: new.own_end(lines[tail.start : tail.stop])]).rstrip(" \t\n")
        outside = range(self._section.heading_lines.stop, body.end)
        unused = set(self.around.unused(tail.start, tail.stop, outside, self._parts_of(text)))
        if all(line in unused or not lines[line].strip() for line in tail):
            return self._body(tail.stop), text
        for line in unused:
            self._rows[line] = b""
        return body, text

    def _body(self, tail: int | None = None) -> _Body:
        """Find the section's body in the file.

        :param tail: first line of what serves others, if known.
        """
        tree, section = self._tree, self._section
        last = tree.sections[tree.subtree(section.index)[-1] if self._whole else section.index]
        below, end = section.heading_lines.stop, last.own.stop
        if tail is None:
            tail = self.around.tail(below, end, max(last.heading_lines.stop, last.own.start))
        while below < tail and section.level and ANCHORS.fullmatch(tree.line(below).strip()):
            below += 1
        shown = [line for line in range(below, tail) if tree.line(line).strip(" \t")]
        first = shown[0] if shown else min(below + 1, tail)
        return _Body(below, first, shown[-1] + 1 if shown else first, tail, end)

    def _parse(self, text: str, *, rename: bool = False) -> tuple[str, str]:
        """Parse the given text, and refuse text that the section cannot contain.

        :param rename: the text replaces the section, so it may be blank and begin with the section's heading.
        :returns: lines of the section's new heading, ``""`` without one, and the text after it without blank
            lines at its ends.
        """
        source, section = with_line_feeds(text), self._section
        if "\0" in source:
            raise InvalidRequestError("the text contains a NUL character", parameter="content")
        if not rename and not source.strip(" \t\n"):
            raise MissingRequestError("there is no text to add", parameter="content")
        blocks = read_blocks(source, npl=self._tree.dialect == "npl", deadline=CALL.get())
        lines, title = source.split("\n"), ""
        check_closed(blocks)
        headings = [token for token in blocks.tokens if token.type == "heading_open" and not token.level]
        if rename and headings and headings[0].tag == f"h{section.level}":
            begin, stop = headings[0].map or (0, 0)
            if not "".join(lines[:begin]).strip(" \t"):
                title, self.heading = "\n".join(lines[begin:stop]), one_line(headings[0].content)
                lines[:stop] = [""] * stop
                del headings[0]
        for token in headings:
            if token.map and int(token.tag[1]) <= section.level:
                heading = f"line {token.map[0] + 1} of the text is a heading of level {token.tag[1]}"
                problem = f"{heading}, which would end the section {section.name!r} of level {section.level}"
                raise InvalidRequestError(problem, parameter="content", hint=_lower(section))
        self.headings = tuple((int(token.tag[1]), one_line(token.content)) for token in headings)
        shown = dropwhile(lambda line: not line.strip(" \t"), lines)
        return title, "\n".join(shown).rstrip(" \t\n")

    def _encode(self, text: str) -> bytes:
        """Return the text's bytes with the line ends that prevail in the file."""
        try:
            return text.encode().replace(b"\n", self._line_end)
        except UnicodeEncodeError as error:
            problem = f"the text holds a lone surrogate at character {error.start + 1}"
            raise InvalidRequestError(problem, parameter="content") from error

    def _put(self, body: _Body, new: str, behind: bytes = b"") -> None:
        """Put a text in place of the body, or clear it; there is a blank line before a heading below it.

        :param behind: text that stays before the new one.
        """
        rows, line_end = self._rows, self._line_end
        text = self._encode(new)
        if behind:
            text = behind + self._gap(behind.decode(), new) + text
        if not text:
            touches = body.first == body.start and body.stop < len(rows)
            rows[body.first : body.stop] = [line_end] * touches
            return
        above = b"".join(rows[: body.first][-1:])
        is_ended = not above or above.endswith((b"\n", b"\r"))
        lead, ending = b"", line_end if is_ended else b""
        if body.first < body.last:
            ending = rows[body.last - 1][len(rows[body.last - 1].rstrip(b"\r\n")) :]
        elif above:
            lead = (line_end if body.first == body.start else b"") + (b"" if is_ended else line_end)
        if body.stop < len(rows) and body.stop == body.last:
            text += line_end
        rows[body.first : body.last] = [lead + text + ending]


_OPERATIONS = {each.__name__: each for each in (_Edit.replace, _Edit.append, _Edit.prepend, _Edit.delete)}


def _text_end(data: bytes) -> int:
    """Return the end of the last line that is not blank, without its line end."""
    line_end = _LINE_END.search(data, len(data.rstrip(_WHITE)))
    return line_end.start() if line_end else len(data)


def _surroundings(tree: SectionTree) -> Surroundings:
    """Return the parts of a document that serve several sections."""
    return Surroundings(tree.source, npl=tree.dialect == "npl", first=tree.sections[0].own.start)


def _lower(section: Section) -> str:
    """Return a hint about the allowed heading levels, and about the place for other headings."""
    deeper = f"use headings of level {section.level + 1} or lower" if section.level < 6 else "use no headings"
    return f"{deeper}, or append a new section to the one above" if section.parent else deeper


def check_closed(blocks: BlockState) -> None:
    """Refuse a text that ends inside a fence or a comment, which would swallow the following text.

    :param blocks: blocks of the text.
    :raises InvalidRequestError: a block is open; the message names its first line.
    """
    block, line, end = _unclosed(blocks)
    if block:
        problem = f"the text does not close the {block} of its line {line}"
        raise InvalidRequestError(problem, parameter="content", hint=f"add {end}")


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


def _line_end_of(data: bytes) -> bytes:
    """Return the line end that prevails."""
    pairs = data.count(b"\r\n")
    counts = {b"\n": data.count(b"\n") - pairs, b"\r\n": pairs, b"\r": data.count(b"\r") - pairs}
    return max(counts, key=counts.__getitem__)
