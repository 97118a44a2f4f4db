"""Text that serves other sections: definitions, anchors, dividers, and marks of blocks that span sections.

Such text stands at the end of a section, because a section ends only at the next heading. An edit keeps it
there, and is refused if other sections would lose its meaning.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby, takewhile
from posixpath import commonprefix
from typing import NamedTuple

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from npl_index.cached import cached_property
from npl_index.deadline import CALL
from npl_index.errors import InvalidRequestError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.prose import lines_of_prose
from npl_index.markdown.state import find_lines

_ELEMENTS = """details summary div section article aside nav main header footer center figure picture table
blockquote ul ol"""
_SPANNING = frozenset(_ELEMENTS.split())
_MARK = re.compile(
    r"<!--|<(?P<end>/?)(?P<tag>[A-Za-z][\w.-]*)(?P<rest>(?![\w.-])[^<>]{0,500})>"
    r"|^[ \t]*:{3,}[ \t]*(?P<note>[^\n]*)|\{%-?\s*(?P<last>end)?(?P<block>\w+)\b[^{}%]{0,500}%\}",
    re.MULTILINE,
)
_BOUND = re.compile(
    r"^\s*/|(?<![a-z])(?:start|begin|end|stop)(?![a-z])|^\s*end(?=region)|stop(?=\s*$)", re.IGNORECASE
)
_ENDS = re.compile(r"/|end|stop", re.IGNORECASE)
_MAX_MARKS = 20
_KEY = re.compile(r"\w[\w-]*\w")
ANCHORS = re.compile(
    r"(?:<(a|span|div|i)\b(?=[^<>]*?\b(?:id|name)\s*=)[^<>]*(?:/>|>\s*</\1>)\s*)+|\([^()]+\)=|\{:[^{}]*\}",
    re.IGNORECASE,
)
_NOTE = re.compile(r" {0,3}(?:\[\^([^\[\]\s]+)\]|\*\[([^\[\]]+)\]):")
_LINK = re.compile(r" {0,3}\[((?:[^\[\]\\]|\\.){1,999})\]:")
_WORD = re.compile(r"[0-9A-Za-z_]+|[^\W\x00-\x7f]")  # not all scripts separate words
_USE = re.compile(r"\[((?:[^\[\]\\]|\\.){1,999})\](?!:)")


class _Mark(NamedTuple):
    """A tag, comment or other mark at a line.

    :param shown: its text, for messages.
    """

    line: int
    name: str
    opens: bool
    shown: str


class Surroundings:
    """The parts of a text that may serve several of its sections.

    :param source: the text, with line feeds.
    :param npl: fences nest, as in NPL.
    :param first: first line after the front matter.
    :ivar blocks: its blocks.
    """

    def __init__(self, source: str, *, npl: bool, first: int = 0) -> None:
        self.blocks = read_blocks(source, npl=npl, first=first, complete=True, deadline=CALL.get())
        self.lines = source.split("\n")
        self._shown = lines_of_prose(self.blocks)

    @cached_property
    def _marks(self) -> tuple[list[_Mark], dict[int, int]]:
        """The marks, and for each mark with a partner the number of the other."""
        marks: list[_Mark] = []
        pairs: dict[int, int] = {}
        waiting: dict[str, list[int]] = defaultdict(list)
        for mark in _marks("\n".join(self._shown)):
            if mark.opens:
                waiting[mark.name].append(len(marks))
            elif waiting[mark.name]:
                pairs[len(marks)] = waiting[mark.name].pop()
                pairs[pairs[len(marks)]] = len(marks)
            marks.append(mark)
        return marks, pairs

    @cached_property
    def _definitions(self) -> Mapping[str, object]:
        """Values by label: of links, footnotes (``^label``) and abbreviations (``*label``)."""
        links = self.blocks.env.get("references", {})
        defined = {label: (link["href"], link["title"]) for label, link in links.items()}
        notes = {label: line for line in self._shown if (label := _noted(line))}
        return defined | notes

    def tail(self, first: int, stop: int, start: int) -> int:
        """Return the first line of what serves others at the end of a section; ``stop`` without such text.

        :param first: first line of the text that an edit may replace.
        :param stop: line after the section.
        :param start: first line below the last heading in these lines.
        """
        kinds: dict[int, str] = {}
        for token in self.blocks.tokens:
            if token.map and not token.level and start <= token.map[0] < stop:
                kinds |= dict.fromkeys(range(*token.map), token.type)
        serving, spans = self._serving(first, stop), any(map(str.strip, self.lines[stop:]))
        kept, waits = stop, ""
        for line in range(stop - 1, start - 1, -1):
            CALL.get().check()
            text, kind = self.lines[line].strip(), kinds.get(line, "")
            if not text:
                continue
            noted, anchor = _noted(self._shown[line]), ANCHORS.fullmatch(text)
            comment = line == kept - 1 and text.startswith("<!--") and text.find("-->") == len(text) - 3
            if waits and not (noted if waits == "note" else line in serving):
                if waits == "note" and kind in ("code_block", "paragraph_open"):
                    continue
                break
            if (
                (noted or (not kind and self._shown[line]))
                or line in serving
                or (spans and (anchor or comment) and kind in ("paragraph_open", "html_block"))
                or (kind == "hr" and (spans or kept < stop))
            ):
                kept, waits = line, ""
            elif kind == "code_block" or (kind == "paragraph_open" and self.lines[line][:1] in " \t"):
                waits = "note"
            elif text.startswith("<summary") and text.endswith("</summary>"):
                waits = "opening"
            else:
                break
        return kept

    def _serving(self, first: int, stop: int) -> frozenset[int]:
        """Return the lines that hold only marks whose partners are outside of a range of lines."""
        marks, pairs = self._marks
        inside, serving = range(first, stop), set()
        for line, group in groupby(range(len(marks)), lambda number: marks[number].line):
            if line not in inside:
                continue
            numbers, text = list(group), self.lines[line]
            for number in numbers[:_MAX_MARKS]:
                text = text.replace(marks[number].shown, "", 1)
            partners = [marks[pairs[number]].line for number in numbers if number in pairs]
            alone = not text.strip() and len(partners) == len(numbers)
            if alone and not any(partner in inside for partner in partners):
                serving.add(line)
        return frozenset(serving)

    def unused(self, first: int, stop: int, outside: range, new: Surroundings) -> Iterator[int]:
        """Yield the lines of definitions that nothing outside uses, or that a new text has.

        :param first: first line of the definitions.
        :param stop: line after them.
        :param outside: lines of the section, without its heading.
        """
        uses, gone = None, False
        for line in range(first, stop):
            label = _noted(self._shown[line]) or _linked(self._shown[line])
            if label:
                uses = self._uses(outside) if uses is None else uses
                gone = label in new._definitions or not _is_used(label, *uses)
            elif not self.lines[line].strip() or self.lines[line][0] not in " \t\"'<":
                gone = False
            if gone:
                yield line

    def _uses(self, inside: range) -> tuple[frozenset[str], frozenset[str]]:
        """Return the labels in brackets outside of a range of lines, and the words there."""
        text = "\n".join(self._shown[: inside.start] + self._shown[inside.stop :])
        labels = frozenset(normalizeReference(label) for label in _USE.findall(text))
        return labels, frozenset(_WORD.findall(text))

    def own_end(self, tail: list[str]) -> int:
        """Return the number of lines of this text before an end that repeats the end of a tail."""
        marks, pairs = self._marks
        lines = ((marks[mark].line, marks[partner].line) for mark, partner in pairs.items())
        paired = {line for line, other in lines if line != other}
        stop = len(self.lines)
        wanted = [line.strip() for line in tail if line.strip()]
        for line in range(len(self.lines) - 1, -1, -1):
            text = self.lines[line].strip()
            if text and (not wanted or wanted.pop() != text or line in paired):
                break
            stop = line
        return stop

    def check(self, new: Surroundings) -> None:
        """Check that an edit keeps the meaning of unchanged lines.

        :param new: the text after the edit.
        :raises InvalidRequestError: a mark would lose or change its partner, or a label its definition.
        """
        old_lines, new_lines = self.lines, new.lines
        first = len(commonprefix([old_lines, new_lines]))
        behind = len(commonprefix([old_lines[first:][::-1], new_lines[first:][::-1]]))
        gone, added = range(first, len(old_lines) - behind), range(first, len(new_lines) - behind)
        before, after = self._partners(gone), new._partners(added)
        for (mark, *partners), (_, *new_partners) in zip(before, after, strict=False):
            if partners != new_partners:
                problem = f"{mark.shown.strip()!r} in line {mark.line + 1}, outside of the changed text"
                raise _refused(f"the edit would separate {problem}, from what belongs to it")
        marks, pairs = new._marks
        for number, mark in enumerate(marks):
            if mark.line in added and mark.opens and number not in pairs and mark.name in {*_SPANNING, ":::"}:
                raise _refused(f"the text does not close {mark.shown.strip()!r}")
        old, now = self._definitions, new._definitions
        changed = [label for label, value in old.items() if now.get(label) != value]
        uses = self._uses(gone) if changed else (frozenset[str](), frozenset[str]())
        replaced = {_noted(line) or _linked(line) for line in (old_lines[at] for at in gone)}
        for label in changed:
            if _is_used(label, *uses) and not (label in now and label in replaced):
                raise _refused(f"other sections use the definition of [{label.lower()}]")

    def _block(self, line: int) -> Token | None:
        """Return the outermost block of a line."""
        blocks = (token for token in self.blocks.tokens if not token.level)
        return next((token for token in blocks if token.map and line in range(*token.map)), None)

    def _is_tight(self, block: Token) -> bool:
        """Return whether a list has no blank lines between its items and their blocks."""
        begin, stop = block.map or (0, 0)
        inner = (token.map[0] for token in self.blocks.tokens if 1 <= token.level <= 2 and token.map)
        return all(self.lines[line - 1].strip() for line in inner if begin < line < stop)

    def continued_by(self, below: Surroundings) -> bool:
        """Return whether a text continues the table or the tight list at the end of this one."""
        last = next((line for line in range(len(self.lines) - 1, -1, -1) if self.lines[line].strip()), 0)
        block, first = self._block(last), below._block(0)
        if block is None or first is None:
            return False
        if block.type == "table_open":
            rows = list(takewhile(str.strip, below.lines))
            return first.type == "paragraph_open" and all("|" in row for row in rows)
        lists = block.type == first.type and block.type.endswith("list_open") and block.markup == first.markup
        return lists and self._is_tight(block) and below._is_tight(first)

    def _partners(self, inside: range) -> list[tuple[_Mark, str, object]]:
        """Return the marks outside of a range of lines, with their names and their partners' numbers."""
        marks, pairs = self._marks
        numbers = (number for number, mark in enumerate(marks) if mark.line not in inside)
        places = {number: place for place, number in enumerate(numbers)}
        partners = {number: places.get(partner, "inside") for number, partner in pairs.items()}
        return [(marks[number], marks[number].name, partners.get(number)) for number in places]


def _marks(text: str) -> Iterator[_Mark]:
    starts, pos = find_lines(text), 0
    while mark := _MARK.search(text, pos):
        begin, pos = mark.start(), mark.end()
        line = bisect_right(starts, begin) - 1
        if mark[0] == "<!--":
            end = text.find("-->", pos)
            if end < 0:
                return
            inner, pos = text[mark.end() : end], end + 3
            key = _KEY.search(_BOUND.sub(" ", inner[:200]))
            bound = _BOUND.search(inner[:200])
            if key:
                opens = not (bound and _ENDS.search(bound[0]))
                yield _Mark(line, f"<!--{key[0].lower()}", opens, text[begin:pos])
        elif mark["tag"]:
            name = mark["tag"]
            if (name in _SPANNING or not name.islower() or "-" in name) and not mark["rest"].endswith("/"):
                yield _Mark(line, name, not mark["end"], mark[0])
        elif mark["block"]:
            yield _Mark(line, f"%{mark['block']}", not mark["last"], mark[0])
        else:
            yield _Mark(line, ":::", bool(mark["note"].strip()), mark[0])


def _noted(line: str) -> str:
    """Return the label that a line defines for a footnote or an abbreviation, ``""`` for another line."""
    note = _NOTE.match(line)
    return "" if note is None else f"^{note[1]}".upper() if note[1] else f"*{note[2]}"


def _linked(line: str) -> str:
    """Return the label that a line may define for a link, ``""`` for another line."""
    link = _LINK.match(line)
    return "" if link is None else normalizeReference(link[1])


def _is_used(label: str, labels: frozenset[str], words: frozenset[str]) -> bool:
    return words.issuperset(_WORD.findall(label)) if label.startswith("*") else label in labels


def _refused(problem: str) -> InvalidRequestError:
    hint = "keep that text, or edit a section that has all of it"
    return InvalidRequestError(problem, parameter="content", hint=hint)
