"""The documents of a request: their texts, selectors and parts with token counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from npl_index.answer.frames import Fences, framed
from npl_index.answer.marks import mark, tag_for
from npl_index.answer.suggestions import Place
from npl_index.cached import cached_property
from npl_index.library.lazy import LazySequence
from npl_index.library.references import document_name, path_ends
from npl_index.markdown.sections import Section, SectionTree, Span
from npl_index.markdown.state import NO_DEADLINE, Deadline
from npl_index.ranking.indexing import Collection, ParsedDocument
from npl_index.selectors.grammar import spell
from npl_index.selectors.labels import heading_label, label
from npl_index.selectors.matching import Scope
from npl_index.selectors.writing import narrowed, steps_of
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.sections import TokenCounts, measure, trimmed_text

T = TypeVar("T")

_INDENTED = 3
"""Most columns of indentation that the first line of a text loses; more would be code."""


class Size(NamedTuple):
    """Tokens of a text.

    :param followed: when more text follows after a blank line.
    :param last: at the end of the content.
    """

    followed: int
    last: int


class Part:
    """A stretch of one section's own text. Its lines are looked up and counted when they are first needed.

    :param place: the section.
    :param chosen: a selector asked for it.
    :param lines: of the document; by default all of the section's own text.
    :param size: its tokens, if they are known.
    """

    def __init__(
        self,
        documents: DocumentSet,
        place: Place,
        chosen: bool = False,
        lines: Span | None = None,
        size: Size | None = None,
    ) -> None:
        self.place, self.chosen = place, chosen
        self.document, self.section = place
        self._documents, self._lines, self._size = documents, lines, size

    @cached_property
    def lines(self) -> Span:
        """The lines of the document."""
        return self._lines or self._documents.tree(self.document).sections[self.section].own

    @cached_property
    def size(self) -> Size:
        """The tokens of the text."""
        return self._size or self._documents.size(self.place, self._lines)

    def shortened(self, lines: Span, size: Size) -> Part:
        """Return another stretch of the same section's text."""
        return Part(self._documents, self.place, self.chosen, lines, size)


class Unit(NamedTuple):
    """Text that is kept, cut or left out as one.

    :param parts: of one document, in its order.
    :param score: 0 to 1; 1 for what a selector asked for.
    :param cut: it ends before its section's end, or begins after its beginning, for lack of room.
    :param ranges: its parts are several sections that follow one another; it is only named.
    """

    parts: tuple[Part, ...]
    score: float
    cut: bool = False
    ranges: bool = False

    @property
    def document(self) -> int:
        """Index of the document."""
        return self.parts[0].document

    @property
    def places(self) -> list[Place]:
        """The sections of its parts."""
        return [part.place for part in self.parts]

    @property
    def tokens(self) -> int:
        """Tokens of the text alone."""
        return sum(part.size.followed for part in self.parts[:-1]) + self.parts[-1].size.last


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The documents that a request is about, with what an answer says of them.

    :param collection: the documents.
    :param several: answers name the file of each section, and the content marks where one begins.
    :param file: what the answer calls the documents.
    :param counts: returns the token counts of a document by its index in the collection.
    :param counter: counts other texts.
    :param unreadable: files that were asked for and are not in the collection, and why.
    :param missing: files that were asked for and are not in the collection yet.
    :param files: the name of each document in answers; by default its path below its root.
    :param aliases: further names that led to each document.
    :param complete: these are all documents that a selector without a document's name is looked up in, so
        that a heading that only one of them has needs none.
    :param digests: answers give the digest of each section, for callers who may change it.
    :param tag: what marks carry, see :func:`npl_index.answer.marks.tag_for`.
    :param wanted: index terms that are asked for, and how much; a large section is cut around them.
    :param clock: when selecting, counting and cutting end in an error.
    """

    collection: Collection
    several: bool
    file: str
    counts: Callable[[int], TokenCounts]
    counter: TokenCounter
    unreadable: tuple[str, ...] = ()
    missing: int = 0
    files: Sequence[str] = ()
    aliases: Sequence[Sequence[str]] = ()
    complete: bool = False
    digests: bool = False
    tag: str = ""
    wanted: tuple[tuple[str, float], ...] = ()
    clock: Deadline = NO_DEADLINE
    _known: dict[Hashable, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """Return what some work results in, which is done once for each key.

        A section is cut to several rooms until it fits; most of what that takes is the same each time.

        :param key: what the result depends on, beside the documents.
        """
        found = self._known.get(key, self)  # no work results in the set itself
        if found is self:
            found = self._known[key] = work()
        return found  # type: ignore[return-value]

    def tree(self, document: int) -> SectionTree:
        """Return a document's sections."""
        return self.document(document).tree

    def document(self, number: int) -> ParsedDocument:
        """Return a document."""
        return self.once(("document", number), lambda: self.collection.documents[number])

    def path(self, document: int) -> str:
        """Return a document's name in answers: where nothing else has it, its path below its root."""
        return self.files[document] if self.files else self.collection.documents[document].document.path

    def scope(self) -> Scope:
        """Return the documents as selectors see them.

        What answers call a document, and what led to it, mean it alone; the ends of its path are names that
        it may share.
        """
        number = range(len(self.collection.documents))
        aliases = self.aliases or [()] * len(number)
        return Scope(
            LazySequence(len(number), self.tree),
            [tuple(path_ends(self.path(document))) for document in number],
            self.clock,
            [(document_name(self.path(one)), self.path(one), *aliases[one]) for one in number],
            self.collection.names,
        )

    def text(self, place: Place) -> str:
        """Return a section's own text."""
        tree = self.tree(place[0])
        return trimmed_text(tree, tree.sections[place[1]].own)

    def part_text(self, part: Part) -> str:
        """Return a part's text, under its section's heading."""
        return self.once(
            ("text", part.place, part.lines), lambda: self._under_heading(part.place, part.lines)
        )

    def _under_heading(self, place: Place, lines: Span) -> str:
        """Return some lines of a section's own text.

        Lines without the heading get it, and lines from within a block get the frame of the block.
        """
        tree = self.tree(place[0])
        text = framed(tree, tree.sections[place[1]].own, lines, self.fences(place))
        bare = text.lstrip(" ")
        text = bare if len(text) - len(bare) <= _INDENTED else text
        heading = self._heading(place, lines)
        return f"{trimmed_text(tree, heading)}\n{text}" if heading and text else text

    def fences(self, place: Place) -> Fences:
        """Return the fences of a section's own text."""
        tree = self.tree(place[0])
        return self.once(("fences", place), lambda: Fences(tree, tree.sections[place[1]].own))

    def _heading(self, place: Place, lines: Span) -> Span | None:
        """Return the heading above some lines of a section's own text, if it is not among them."""
        heading = self.tree(place[0]).sections[place[1]].heading_lines
        return heading if heading.start < heading.stop <= lines.start else None

    def heading_tokens(self, part: Part) -> int:
        """Return the tokens of the heading of a part's section with the blank line behind it."""
        tree = self.tree(part.document)
        lines = tree.sections[part.section].heading_lines
        return self.once(
            ("heading", part.document, lines), lambda: measure(trimmed_text(tree, lines), self.counter)[0]
        )

    def is_whole(self, part: Part) -> bool:
        """Return whether a part is all of its section's own text."""
        return part.lines == self.tree(part.document).sections[part.section].own

    def name(self, document: int, *, by_path: bool = False) -> str:
        """Return what selectors call a document, in quotation marks if need be.

        :param by_path: its path, whatever is shorter.
        """

        def spelt() -> str:
            path = self.path(document)
            return spell(label(path if by_path else document_name(path)))

        return self.once(("name", document, by_path), spelt)

    def selector(
        self,
        place: Place,
        *,
        own: bool = False,
        lines: Span | None = None,
        above: bool = False,
        by_path: bool = False,
    ) -> str:
        """Write the selector of a section, of its own text, or of some lines of that: as short as may be.

        :param above: name all headings above it but the document's title.
        :param by_path: name the document by its path with its suffix.
        """
        document, index = place
        tree = self.tree(document)
        if above:
            steps = self.once(("steps", document), lambda: steps_of(tree, short=False))
        else:
            steps = self.document(document).steps
        anchors: Sequence[int] = ()
        if above or self.complete:
            anchors = (index, *reversed(tree.ancestors(index)))
        if above:
            anchors = [one for one in anchors if one and steps[index].startswith(steps[one])][-1:]
        found = None if by_path else self._unnamed(place, steps, anchors)
        if found is None:
            path = steps[index]
            if above and anchors and (heading := self._sole_step(document, anchors[-1])):
                path = f" {heading}{path.removeprefix(steps[anchors[-1]])}"
            found = self.name(document, by_path=by_path) + path
        return narrowed(found, own=own and bool(tree.sections[index].children), lines=lines)

    def end_of_range(self, document: int, end: int) -> str:
        """Write the end of a selector that runs from a section to another of the same document."""
        heading = self._sole_step(document, end)
        return heading or self.name(document) + self.document(document).steps[end]

    def _sole_step(self, document: int, index: int) -> str | None:
        """Return the heading of a section as a step, if no other of its document equals it."""
        sections = self.tree(document).sections
        equals = self.once(("headings", document), lambda: Counter(map(_step, sections)))
        step = _step(sections[index])
        return step if sections[index].level and equals[step] == 1 else None

    def _unnamed(self, place: Place, steps: Sequence[str], anchors: Sequence[int]) -> str | None:
        """Return the selector of a section from a heading that only it, or one above it, has.

        :param steps: of all sections.
        :param anchors: the sections that may have that heading.
        """
        document, index = place
        for one in anchors if self.complete else ():
            section = self.tree(document).sections[one]
            if section.level and self.collection.is_unique(document, one):
                below = steps[index].removeprefix(steps[one])
                if not below or below.startswith(" > #"):  # not by the name of a part of a file
                    return _step(section) + below
        return None

    def part(self, place: Place, *, chosen: bool = False, lines: Span | None = None) -> Part:
        """Return a part of a section's own text, or of some lines of it, which come under its heading."""
        return Part(self, place, chosen, lines)

    def size(self, place: Place, lines: Span | None) -> Size:
        """Return the tokens of a section's own text, or of some lines of it under its heading."""
        document, index = place
        if lines is None or lines == self.tree(document).sections[index].own:
            counts = self.counts(document)
            return Size(counts.followed(index), counts.last(index))
        return self.once(
            ("part", place, lines),
            lambda: Size(*measure(self._under_heading(place, lines), self.counter, self.clock)),
        )

    def ancestors(self, place: Place) -> Iterator[Place]:
        """Return the sections above a section, from its parent up; its document is not looked at."""
        document, section = place
        parents = self.collection.sections(document).parents
        while (parent := int(parents[section])) != section:
            section = parent
            yield document, section

    def mark(self, document: int) -> str:
        """Return the line that tells a reader which file follows."""
        return mark(self.path(document), self.tag)

    def tagged(self, units: Iterable[Unit]) -> DocumentSet:
        """Return the same documents with marks that no line of the sections of some units can imitate."""
        places = dict.fromkeys(part.place for unit in units for part in unit.parts)
        trees = ((self.tree(document), section) for document, section in places)
        return replace(self, tag=tag_for([tree.text(tree.sections[one].own) for tree, one in trees]))


def _step(section: Section) -> str:
    """Return a heading as selectors have it."""
    return f"{'#' * section.level} {spell(heading_label(section.name))}"
