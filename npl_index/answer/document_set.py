"""The documents of a request: their texts, selectors and parts with token counts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from npl_index.answer.budget import Part
from npl_index.answer.marks import mark, tag_for
from npl_index.answer.suggestions import Place
from npl_index.library.references import document_name
from npl_index.markdown.blocks import parse_blocks
from npl_index.markdown.sections import SectionTree, Span
from npl_index.markdown.state import NO_DEADLINE, Deadline
from npl_index.ranking.indexing import Collection
from npl_index.selectors.matching import Scope
from npl_index.selectors.writing import narrowed, qualified
from npl_index.tokens.counting import TokenCounter, count_tokens
from npl_index.tokens.sections import TokenCounts, measure, trimmed_text

_STRIDE = 8_192
"""Characters, at most, after which a part that has to be cut is compared with the room."""


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The documents that a request is about, with what an answer says of them.

    :param collection: the documents.
    :param several: answers name the file of each section, and the content marks where one begins.
    :param file: what the answer calls the documents.
    :param counts: returns the token counts of a document by its index in the collection.
    :param counter: counts other texts.
    :param unreadable: files that were asked for and are not in the collection, and why.
    :param files: the name of each document in answers; by default its path below its root.
    :param aliases: further names that led to each document.
    :param tag: what marks carry, see :func:`npl_index.answer.marks.tag_for`.
    :param clock: when selecting, counting and cutting end in an error.
    """

    collection: Collection
    several: bool
    file: str
    counts: Callable[[int], TokenCounts]
    counter: TokenCounter
    unreadable: tuple[str, ...] = ()
    files: Sequence[str] = ()
    aliases: Sequence[Sequence[str]] = ()
    tag: str = ""
    clock: Deadline = NO_DEADLINE

    def tree(self, document: int) -> SectionTree:
        """Return a document's sections."""
        return self.collection.documents[document].tree

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
            [self.tree(document) for document in number],
            [tuple(_ends(self.path(document))) for document in number],
            self.clock,
            [(document_name(self.path(one)), self.path(one), *aliases[one]) for one in number],
        )

    def text(self, place: Place) -> str:
        """Return a section's own text."""
        tree = self.tree(place[0])
        return trimmed_text(tree, tree.sections[place[1]].own)

    def selector(self, place: Place, *, own: bool = False, lines: Span | None = None) -> str:
        """Write the selector of a section, of its own text, or of some lines of that."""
        indexed = self.collection.documents[place[0]]
        only_own = own and bool(indexed.tree.sections[place[1]].children)
        selector = qualified(document_name(self.path(place[0])), indexed.steps[place[1]])
        return narrowed(selector, own=only_own, lines=lines)

    def part(self, place: Place, *, chosen: bool, lines: Span | None = None) -> Part:
        """Make a part of a section's own text, or of some lines of it."""
        document, index = place
        tree = self.collection.documents[document].tree
        own = tree.sections[index].own
        if lines is None or lines == own:
            counts = self.counts(document)
            return Part(
                document, index, own, counts.followed[index], counts.last[index], counts.costs[index], chosen
            )
        followed, last = measure(trimmed_text(tree, lines), self.counter, self.clock)
        cost = self.counter.upper_bound(max(followed, last))
        return Part(document, index, lines, followed, last, cost, chosen)

    def mark(self, document: int) -> str:
        """Return the line that tells a reader which file follows."""
        return mark(self.path(document), self.tag)

    def tagged(self, parts: Sequence[Part]) -> DocumentSet:
        """Return the same documents with marks that none of some parts can imitate."""
        if not self.several:
            return self
        return replace(self, tag=tag_for([self.tree(part.document).text(part.lines) for part in parts]))

    def entry_cost(self, document: int) -> int:
        """Return the tokens of :meth:`mark` where the content has one, else 0."""
        if not self.several:
            return 0
        return self.counter.upper_bound(self.counter.count(self.mark(document) + "\n"))

    def cut(self, part: Part, room: int) -> tuple[Part, Part] | None:
        """Cut a part at the last end of a block that leaves it within ``room`` tokens.

        :raises DocumentTimeoutError: the deadline has passed.
        """
        tree = self.tree(part.document)
        place = (part.document, part.section)
        first = max(part.lines.start, tree.sections[part.section].heading_lines.stop)
        reach = self._reach(tree, part.lines, room)
        ends = _block_ends(tree, Span(part.lines.start, reach), first, self.clock)
        low, high = 0, len(ends)
        best: Part | None = None
        while low < high:
            middle = (low + high) // 2
            head = self.part(place, chosen=part.chosen, lines=Span(part.lines.start, ends[middle]))
            if head.cost <= room:
                best, low = head, middle + 1
            else:
                high = middle
        if best is None:
            return None
        followed, last = part.followed - best.followed, part.last - best.followed
        rest = part._replace(
            lines=Span(best.lines.stop, part.lines.stop),
            followed=followed,
            last=last,
            cost=self.counter.upper_bound(max(followed, last, 0)),
        )
        return best, rest

    def _reach(self, tree: SectionTree, lines: Span, room: int) -> int:
        """Return a line behind the place where a text has more than ``room`` tokens, or its end.

        What lies behind it cannot be kept, so that it is neither parsed nor counted: a cut takes time in
        proportion to what is kept, however long the section.
        """
        starts = tree.line_starts
        stride = min(_STRIDE, 4 * room + _STRIDE // 32)
        at, stop, tokens = starts[lines.start], starts[lines.stop], 0
        while tokens <= room and at < stop:
            line = starts[min(lines.stop, bisect_left(starts, at + stride))]
            end = line if line <= at + 2 * stride else at + stride  # a long line is not read to its end
            tokens += count_tokens(tree.source[at:end], self.counter, self.clock)
            at = end
        return min(lines.stop, bisect_left(starts, at))


def _ends(path: str) -> Iterator[str]:
    """Return the ends of a path without its suffix, also with dots, as items are called."""
    parts = PurePosixPath(path).with_suffix("").parts
    for start in range(len(parts)):
        yield "/".join(parts[start:])
        yield ".".join(parts[start:])


def _block_ends(tree: SectionTree, lines: Span, first: int, clock: Deadline) -> list[int]:
    """Return the lines before which a cut falls between blocks, in order.

    Blocks are those of the text and of its lists, quotes and tables, down to list items and table rows; a
    fence is never cut.

    :param lines: of the section.
    :param first: no cut is made before this line or at it, so that more than the heading is kept.
    """
    tokens = parse_blocks(tree.text(lines), nesting=tree.dialect == "npl", deadline=clock)
    ends = {lines.start + token.map[1] for token in tokens if token.map}
    return sorted(end for end in ends if first < end < lines.stop)
