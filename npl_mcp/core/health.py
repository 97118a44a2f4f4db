"""Defects of a folder of documents, found by reading all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from weakref import WeakKeyDictionary
from zlib import crc32

from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.sections import Section, SectionTree, Span
from npl_index.markdown.state import Deadline
from npl_index.ranking.indexing import Collection
from npl_index.selectors.writing import qualified
from npl_index.tokens.sections import TokenCounts
from npl_mcp.core.app import App
from npl_mcp.core.places import title_of
from npl_mcp.core.relations import INDEX_FILES, Relations, around, below
from npl_mcp.stores.access import Sight

LONG = 1_000
"""Tokens of a section's own text from which it is too long: twice the default answer."""

LEAST_WORDS = 20
"""Words of a text from which it is compared with others."""

ALIKE = 0.8
"""Share of equal word sequences (Jaccard index) from which two texts are nearly the same."""

_SEQUENCE, _SKETCH, _KEYS = 4, 32, 4
"""Words of a sequence; sequences that stand for a text; those by which similar texts meet."""

_MET = 50
"""Texts at most that a text is compared with because of one sequence."""

_WORD = re.compile(r"\w+")

CHECKS: Mapping[str, str] = {
    "broken": "Broken links",
    "same": "Same or nearly the same",
    "long": "Too long",
    "empty": "Empty",
    "untitled": "Without a title",
    "fences": "Unclosed code fences",
    "orphaned": "No page links here",
    "unused": "Never handed over by a call",
}
"""Names and titles of the checks."""


_known: WeakKeyDictionary[Collection, dict[tuple[DocumentRef, Sight], tuple[Finding, ...]]] = (
    WeakKeyDictionary()
)
"""What was found in collections that are still current, so that a filter does not read them again."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A place with a defect.

    :param check: one of :data:`CHECKS`.
    :param file: its document.
    :param line: in the document, from 1.
    :param selector: of its section.
    :param tokens: of the section's own text; of all for a whole document.
    :param note: what is wrong.
    """

    check: str
    file: str
    line: int
    selector: str
    tokens: int
    note: str


@dataclass(frozen=True, slots=True)
class Health:
    """The defects of a folder.

    :param findings: in the order of the documents.
    :param searched: documents that were read.
    :param documents: documents that there are.
    :param checks: titles of the checks that were made.
    """

    findings: tuple[Finding, ...]
    searched: int
    documents: int
    checks: Mapping[str, str]


async def examined(app: App, ref: DocumentRef) -> Health:
    """Return the defects of a folder or a file.

    :raises DocumentNotFoundError: there is no such folder.
    """
    asked = await app.gathered(ref)
    relations = Relations(app, await app.gathered(around(app, asked.founds[0])))
    own = {relations.number_of(found) for found in asked.founds} - {None}
    if not own:
        raise DocumentNotFoundError(f"{ref.file!r} is none of the documents of its root")
    part = [number for number in relations.documents if number in own]
    look = _Look(app, relations)
    known = _known.setdefault(relations.gathered.collection, {})
    if (found := known.get((ref, app.sight))) is None:
        found = known[ref, app.sight] = (*look.each(part), *look.alike(part), *look.orphaned(part))
    used = app.stores.calls.files_taken()
    checks = {name: title for name, title in CHECKS.items() if used or name != "unused"}
    unused = look.unused(part, used) if used else ()
    return Health((*found, *unused), len(part), len(own), checks)


class _Look:
    """Documents that are examined."""

    def __init__(self, app: App, relations: Relations) -> None:
        self._relations = relations
        collection = relations.gathered.collection
        self._counts: Callable[[int], TokenCounts] = app.counting(collection, app.clock("the folder"))[1]
        self._clock: Deadline = app.clock("the folder")

    def each(self, part: Sequence[int]) -> Iterator[Finding]:
        """Yield what is wrong with single documents."""
        for number in part:
            self._clock.check()
            tree = self._relations.parsed(number).tree
            for one in self._relations.broken(number):
                target = one.reference.path + (f"#{one.reference.anchor}" if one.reference.anchor else "")
                yield self._at(number, "broken", f"{target}: {one.why}", one.reference.line)
            for line in tree.doubtful_fences:
                yield self._at(number, "fences", "a code fence begins here and does not end", line)
            if not tree.sections[0].whole_traits.word_count:
                yield self._whole(number, "empty", "no text at all")
            elif title_of(tree) is None:
                yield self._whole(number, "untitled", "no heading and no title in front matter")
            for section in tree.sections:
                tokens = self._counts(number).last(section.index)
                if tokens > LONG:
                    yield self._section(number, section.index, "long", f"{tokens:,} tokens in one piece")
                if section.level and not section.children and not _text(tree, section).strip():
                    yield self._section(number, section.index, "empty", "a heading without text")

    def alike(self, part: Sequence[int]) -> Iterator[Finding]:
        """Yield sections whose text another has as well, or nearly so."""
        sketches: list[tuple[int, int, frozenset[int]]] = []
        meet: dict[int, list[int]] = {}
        for number in part:
            self._clock.check()
            tree = self._relations.parsed(number).tree
            for section in tree.sections:
                if section.own_traits.word_count < LEAST_WORDS:
                    continue
                words = _WORD.findall(_text(tree, section).lower())
                # The sequences with the smallest hashes: equal texts have equal ones (MinHash, Broder 1997).
                least = nsmallest(_SKETCH, set(_sequences(words)))
                sketch = frozenset(least)
                other = _nearest(sketch, {at for key in least[:_KEYS] for at in meet.get(key, ())}, sketches)
                if other is not None:
                    share, at = other
                    same = "the same as" if share == 1 else f"{share:.0%} the same as"
                    where = self._section(sketches[at][0], sketches[at][1], "", "")
                    yield self._section(
                        number, section.index, "same", f"{same} {where.selector}, line {where.line}"
                    )
                for key in least[:_KEYS]:
                    if len(others := meet.setdefault(key, [])) < _MET:
                        others.append(len(sketches))
                sketches.append((number, section.index, sketch))

    def orphaned(self, part: Sequence[int]) -> Iterator[Finding]:
        """Yield documents that no other links to; where no document links to another, none."""
        linked: set[int | None] = set()
        for number in self._relations.documents:
            for reference in self._relations.references(number):
                place = self._relations.place(number, reference)
                target = None if place is None else self._relations.target(place)
                if target != number:
                    linked.add(target)
        if linked - {None}:
            for number in part:
                name = below(self._relations.gathered.founds[number]).rpartition("/")[2]
                if number not in linked and name not in INDEX_FILES:
                    yield self._whole(number, "orphaned", "no other document links here")

    def unused(self, part: Sequence[int], used: Iterable[str]) -> Iterator[Finding]:
        """Yield documents of which no call was answered."""
        known = set(used)
        for number in part:
            if self._relations.gathered.files[number] not in known:
                yield self._whole(number, "unused", "in no answer of the log of calls")

    def _at(self, number: int, check: str, note: str, line: int) -> Finding:
        """Return a finding at a line, counted from 0."""
        tree = self._relations.parsed(number).tree
        index = next((one.index for one in reversed(tree.sections) if one.own.start <= line), 0)
        return replace(self._section(number, index, check, note), line=line + 1)

    def _whole(self, number: int, check: str, note: str) -> Finding:
        tokens = self._counts(number).total(range(len(self._relations.parsed(number).tree.sections)))
        return replace(self._section(number, 0, check, note), tokens=tokens)

    def _section(self, number: int, index: int, check: str, note: str) -> Finding:
        file = self._relations.gathered.files[number]
        parsed = self._relations.parsed(number)
        section = parsed.tree.sections[index]
        selector = qualified(document_name(file), parsed.step(index))
        return Finding(check, file, section.own.start + 1, selector, self._counts(number).last(index), note)


def _text(tree: SectionTree, section: Section) -> str:
    """Return the own text of a section without its heading."""
    return tree.text(Span(max(section.heading_lines.stop, section.own.start), section.own.stop))


def _sequences(words: Sequence[str]) -> Iterator[int]:
    """Yield a hash of each sequence of words."""
    for at in range(max(1, len(words) - _SEQUENCE + 1)):
        yield crc32(" ".join(words[at : at + _SEQUENCE]).encode())


def _nearest(
    sketch: frozenset[int], among: Iterable[int], sketches: Sequence[tuple[int, int, frozenset[int]]]
) -> tuple[float, int] | None:
    """Return how similar the most similar text is, and which one that is; ``None`` if none is similar."""
    shares = [(_share(sketch, sketches[at][2]), -at) for at in among]
    share, at = max(shares, default=(0.0, 0))
    return (share, -at) if share >= ALIKE else None


def _share(one: frozenset[int], other: frozenset[int]) -> float:
    """Estimate the Jaccard index of two texts from their sketches."""
    both = nsmallest(_SKETCH, one | other)
    return sum(key in one and key in other for key in both) / len(both)
