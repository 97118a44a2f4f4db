"""The systems: npl over standard input and output, FTS5 with excerpts, and grep."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, ClassVar

from fastmcp import Client
from mcp.types import TextContent

from benchmarks.agent_day.player import Answer, Count, Hit
from benchmarks.agent_day.tasks import Documents, Phrasing, Place
from benchmarks.fulltext import FullText, words
from benchmarks.servers import client_of

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_MARK = re.compile(r"<!-- (?P<selector>[^\n]+?) (?P<score>[01]?\.\d+|[01])(?: [^\"\n]*)?-->")
_NARROWED = re.compile(r" \[(?:lines|depth)=[^]]*\]$")
_POINTER = re.compile(r'\s*(?:<!-- )?(?:[a-z ]+: )?(?P<quoted>"(?:[^"\\]|\\.)*") [\d,]+\b')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|[()]')
_SAID = re.compile(r"\s*(?:no section has|weak): ")


class Npl:
    """A server in a process of its own.

    :param budget: tokens of answers to questions, if any.
    :param read_budget: tokens of answers to reads, if any.
    """

    def __init__(
        self,
        client: Client[Any],
        documents: Documents,
        budget: int | None = None,
        read_budget: int | None = None,
    ) -> None:
        self._client, self._documents = client, documents
        self._asking, self._reading = _budget(budget), _budget(read_budget)

    @classmethod
    @asynccontextmanager
    async def started(
        cls, command: Sequence[str], documents: Documents, *budgets: int | None
    ) -> AsyncIterator[Npl]:
        """Start it in an empty home, without the settings of this machine."""
        flags = ["--root", str(documents.folder), "--format", "markdown", "--data-dir", "."]
        async with client_of([*command, *flags]) as client:
            yield cls(client, documents, *budgets)

    async def ask(self, phrasing: Phrasing) -> Answer:
        """Make a tailored load."""
        topics = {"topics": list(phrasing.topics)} if phrasing.topics else {}
        return await self._call({"context": phrasing.text, **topics, **self._asking})

    async def read(self, hit: Hit, phrasing: Phrasing) -> Answer:
        """Send a selector back, with the question."""
        return await self._call({"selectors": [hit.handle], "context": phrasing.text, **self._reading})

    def passages(self, answer: Answer) -> str:
        """Return the answer without comments, pointers, and lines about missing words."""
        lines = _COMMENT.sub("", answer.text).splitlines()
        return "\n".join(line for line in lines if not (_POINTER.match(line) or _SAID.match(line))).strip()

    async def _call(self, arguments: dict[str, Any]) -> Answer:
        answer = await self._client.call_tool("npl_load_tailored", arguments, raise_on_error=False)
        text = "".join(part.text for part in answer.content if isinstance(part, TextContent))
        hits = [Hit(one, self._documents.selected(one)) for one in dict.fromkeys(pointers(text))]
        for mark in _MARK.finditer(text):
            places = self._documents.selected(mark["selector"])
            whole, narrowed = _NARROWED.subn("", mark["selector"])
            hits.append(Hit(whole if narrowed else None, places, float(mark["score"])))
        return Answer(arguments, text, [hit for hit in hits if hit.places])


def _budget(tokens: int | None) -> dict[str, int]:
    return {} if tokens is None else {"token_budget": tokens}


def pointers(text: str) -> Iterator[str]:
    """Return the selectors that an answer names: all in comments, and those with a size that begin a line.

    A text in brackets says why a selector is named, the text behind a size is the line that matches.
    """
    for comment in _COMMENT.findall(text):
        for line in comment.splitlines():
            depth = 0
            for found in _QUOTED.findall(_before_match(line)):
                depth += {"(": 1, ")": -1}.get(found, 0)
                if depth == 0 and found != ")":
                    yield from _unquoted(found)
    for line in _COMMENT.sub("", text).splitlines():
        if pointer := _POINTER.match(line):
            yield from _unquoted(pointer["quoted"])


def _unquoted(quoted: str) -> Iterator[str]:
    with suppress(ValueError):  # of a document's own comment
        yield json.loads(quoted)


def _before_match(line: str) -> str:
    pointer = _POINTER.match(line)
    return line[: pointer.end("quoted")] if pointer else line


class Fts5:
    """Sections in a table of FTS5; an answer has one excerpt, and pointers with sizes.

    The excerpt is made of whole blocks of the best section's own text: the one with most words of the
    question, then those around it while they fit. A read returns a section with all nested in it, cut.
    """

    WEIGHTS: ClassVar = {"path": 1.5, "heading": 4.0, "body": 1.0}
    EXCERPT = 300
    POINTERS = 5
    READ = 900

    def __init__(self, documents: Documents, count: Count) -> None:
        self._documents, self._count = documents, count
        bodies = {
            (path, section.index): documents.text((path, section.index), whole=False)
            for path, indexed in documents.files.items()
            for section in indexed.tree.sections
        }
        self._places = [place for place, body in bodies.items() if body.strip()]
        self._table = FullText(
            self.WEIGHTS,
            (
                (path, documents.files[path].tree.sections[index].name, bodies[path, index])
                for path, index in self._places
            ),
        )

    async def ask(self, phrasing: Phrasing) -> Answer:
        """Return an excerpt of the best section, and the next ones."""
        rows = self._table.find(phrasing.text, 1 + self.POINTERS)
        hits = [self._hit(self._places[row]) for row, _ in rows]
        lines = []
        if rows:
            lines = [f"# {hits[0].handle}", self.excerpt(rows[0][1]), ""]
        for hit in hits[1:]:
            lines += [f"{hit.handle} {self._count(self._text(hit))}"]
        hits[:1] = [hit._replace(score=1.0) for hit in hits[:1]]
        return Answer({"query": phrasing.text}, "\n".join(lines), hits)

    async def read(self, hit: Hit, phrasing: Phrasing) -> Answer:
        """Return a section."""
        del phrasing
        text = "\n".join(_lines_within(self._text(hit), self.READ, self._count))
        return Answer({"section": hit.handle}, text)

    def passages(self, answer: Answer) -> str:
        """Return the answer."""
        return answer.text

    def excerpt(self, marked: str) -> str:
        """Return the blocks around the one with most words of the question, where these are marked."""
        parts = list(_blocks(marked))
        found = [len(Counter(re.findall("\x01(.*?)\x02", part.lower()))) for part in parts]
        first = last = found.index(max(found))
        texts = [re.sub("[\x01\x02]", "", part) for part in parts]
        room = self.EXCERPT - self._count(texts[first])
        for step in (-1, 1, 1, 1):
            at = first - 1 if step < 0 else last + 1
            if 0 <= at < len(texts) and (needed := self._count(texts[at])) <= room:
                room -= needed
                first, last = min(first, at), max(last, at)
        chosen = texts[first : last + 1]
        if room < 0:
            chosen = ["\n".join(_lines_within(texts[first], self.EXCERPT, self._count))]
        return "\n\n".join(chosen)

    def _hit(self, place: Place) -> Hit:
        section = self._documents.files[place[0]].tree.sections[place[1]]
        return Hit(f"{place[0]} > {section.name}" if section.level else place[0], frozenset([place]))

    def _text(self, hit: Hit) -> str:
        (place,) = hit.places
        return self._documents.text(place, whole=bool(place[1]))


def _blocks(text: str) -> Iterator[str]:
    block: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if line.strip() or fenced:
            block.append(line)
        elif block:
            yield "\n".join(block)
            block = []
    if block:
        yield "\n".join(block)


def _lines_within(text: str, room: int, count: Count) -> Iterator[str]:
    for line in text.splitlines():
        room -= count(line) + 1
        if room < 0:
            return
        yield line


class Grep:
    """``grep -rniE -m3 'word1|word2' . | cut -c1-160 | head -20``, then ``sed -n`` of a range.

    It is played generously: the words are the two of the question that fewest lines have, and where a line of
    the right file is printed, the range begins at the heading of the right section.
    """

    WORDS = 2
    EACH = 3
    LINES = 20
    WIDTH = 160
    RANGE = 60

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._lines = [
            (path, number, line, line.lower())
            for path, indexed in documents.files.items()
            for number, line in enumerate(indexed.tree.source.splitlines())
        ]
        self._rarity: dict[str, int] = {}

    async def ask(self, phrasing: Phrasing) -> Answer:
        """Print the first lines with one of the words."""
        rare = sorted(filter(self._lines_with, words(phrasing.text)), key=self._lines_with)[: self.WORDS]
        with_word = [line for line in self._lines if any(word in line[-1] for word in rare)]
        by_file = (islice(lines, self.EACH) for _, lines in groupby(with_word, itemgetter(0)))
        shown = list(islice(chain.from_iterable(by_file), self.LINES))
        printed = [f"{path}:{number + 1}:{line}"[: self.WIDTH] for path, number, line, _ in shown]
        hits = [hit for path in dict.fromkeys(path for path, *_ in shown) for hit in self._headings(path)]
        command = f"grep -rniE -m{self.EACH} '{'|'.join(rare)}' . | cut -c1-{self.WIDTH} | head -{self.LINES}"
        return Answer({"command": command}, "\n".join(printed), hits)

    async def read(self, hit: Hit, phrasing: Phrasing) -> Answer:
        """Print lines from the section's heading on."""
        del phrasing
        path, start = str(hit.handle).rsplit(":", 1)
        first = int(start)
        text = self._documents.files[path].tree.source.splitlines()[first - 1 : first - 1 + self.RANGE]
        return Answer({"command": f"sed -n {first},{first - 1 + self.RANGE}p {path}"}, "\n".join(text))

    def passages(self, answer: Answer) -> str:
        """Return the answer."""
        return answer.text

    def _lines_with(self, word: str) -> int:
        if word not in self._rarity:
            self._rarity[word] = sum(word in lower for *_, lower in self._lines)
        return self._rarity[word]

    def _headings(self, path: str) -> Iterator[Hit]:
        for section in self._documents.files[path].tree.sections:
            yield Hit(f"{path}:{section.own.start + 1}", frozenset([(path, section.index)]))
