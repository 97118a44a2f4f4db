"""From chosen sections to the content that is sent, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from npl_index.answer.budget import Fit, Part
from npl_index.answer.cutting import line_ends
from npl_index.answer.suggestions import Companions, Place
from npl_index.choices import Weights
from npl_index.markdown.sections import SectionTree, Span
from npl_index.ranking.indexing import Collection
from npl_index.ranking.scoring import Hit
from npl_index.selectors.selection import Selected, narrowed
from npl_index.tokens.counters import TokenCounter
from npl_index.tokens.sections import TokenCounts, handed_text, starts_token

MAX_CHOSEN_NAMED = 64
MAX_HITS_NAMED = 6
"""Selectors of parts that did not fit; each costs the reader some twenty tokens."""


@dataclass(frozen=True, slots=True)
class TailoredSection:
    """One section of the content.

    :param selector: selects exactly what is there of it.
    :param title: its heading, or the document's name for the text before the first heading.
    :param relevance_score: 0 to 1; 1 for what a selector asked for.
    :param token_count: tokens of its text.
    :param start_line: first line in the file, from 1.
    :param end_line: line after the last one.
    :param file: its document, where the request is about several.
    :param cut: it was too large for the budget and ends before its end.
    """

    selector: str
    title: str
    relevance_score: float
    token_count: int
    start_line: int
    end_line: int
    file: str | None = None
    cut: bool | None = None


@dataclass(frozen=True, slots=True)
class Desk:
    """What a request works on.

    :param collection: the documents.
    :param several: selectors name the document, and the content marks where one begins.
    :param file: what the answer calls the documents.
    :param counts: gives the token counts of a document of the collection by its index.
    :param counter: counts what is not counted there.
    :param companions: what earlier calls asked for together.
    :param weights: of the parts of a score.
    :param unreadable: files that were asked for and are not in the collection, and why.
    """

    collection: Collection
    several: bool
    file: str
    counts: Callable[[int], TokenCounts]
    counter: TokenCounter
    companions: Companions
    weights: Weights
    unreadable: tuple[str, ...] = ()

    def tree(self, document: int) -> SectionTree:
        """Return a document's sections."""
        return self.collection.documents[document].tree

    def path(self, document: int) -> str:
        """Return a document's path below its root."""
        return self.collection.documents[document].document.path

    def names(self, document: int) -> tuple[str, ...]:
        """Return the names by which selectors know a document beside its own: path, ends of it, items."""
        path = PurePosixPath(self.path(document))
        parts = path.with_suffix("").parts
        ends = [parts[start:] for start in range(len(parts))]
        return (str(path), *("/".join(end) for end in ends), *(".".join(end) for end in ends))

    def text(self, place: Place) -> str:
        """Return a section's own text."""
        tree = self.tree(place[0])
        return handed_text(tree, tree.sections[place[1]].own)

    def selector(self, place: Place, *, own: bool = False, lines: Span | None = None) -> str:
        """Write the selector of a section, of its own text, or of some lines of that."""
        indexed = self.collection.documents[place[0]]
        selectors = indexed.qualified_selectors if self.several else indexed.selectors
        only_own = own and bool(indexed.tree.sections[place[1]].children)
        return narrowed(selectors[place[1]], own=only_own, lines=lines)

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
        text = handed_text(tree, lines)
        followed, last = self.counter.count(text + "\n"), self.counter.count(text)
        cost = max(followed, last) if self.counter.exact else self.counter.bound(text + "\n")
        return Part(document, index, lines, followed, last, cost, chosen)

    def mark(self, document: int) -> str:
        """Return the line that tells a reader which file follows."""
        return f"<!-- {self.path(document)} -->\n"

    def entry_cost(self, document: int) -> int:
        """Return the tokens of :meth:`mark`, where it is sent."""
        return self.counter.bound(self.mark(document) + "\n") if self.several else 0

    def cut(self, part: Part, room: int) -> tuple[Part, Part] | None:
        """Cut a part at the last end of a block that leaves it within ``room`` tokens."""
        tree = self.tree(part.document)
        place = (part.document, part.section)
        first = max(part.lines.start, tree.sections[part.section].heading_lines.stop)
        ends = line_ends(tree, part.lines, first)
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
        rest = Span(best.lines.stop, part.lines.stop)
        return best, self.part(place, chosen=part.chosen, lines=rest)


def choose(desk: Desk, selections: Sequence[Selected], hits: Sequence[Hit], depth: int | None) -> list[Part]:
    """List what is wanted, most important first: what selectors ask for, then the hits.

    :param depth: levels below a selected section that are handed over with it; ``None`` for all.
    """
    parts: dict[Place, Part] = {}
    for selected in selections:
        for index in _within(desk.tree(selected.tree), selected, depth):
            place = (selected.tree, index)
            if place not in parts:
                parts[place] = desk.part(place, chosen=True, lines=selected.lines)
    for hit in hits:
        place = (hit.document, hit.section)
        if place not in parts:
            parts[place] = desk.part(place, chosen=False)
    return [part for part in parts.values() if part.last]


def _within(tree: SectionTree, selected: Selected, depth: int | None) -> Iterable[int]:
    if depth is None:
        return selected.sections
    deepest = len(tree.ancestors(selected.head)) + depth
    return (index for index in selected.sections if len(tree.ancestors(index)) <= deepest)


def assemble(desk: Desk, kept: Sequence[Part]) -> tuple[str, int]:
    """Put parts together in document order, with a blank line between them.

    :returns: the content and its number of tokens.
    """
    pieces: list[str] = []
    tokens = last = 0
    document = None
    exact = True
    for part in sorted(kept, key=lambda part: (part.document, part.lines.start)):
        if desk.several and part.document != document:
            document = part.document
            pieces.append(desk.mark(document))
            tokens += desk.counter.count(pieces[-1] + "\n")
        text = handed_text(desk.tree(part.document), part.lines)
        exact = exact and (not pieces or starts_token(text))
        pieces.append(text)
        tokens += part.followed
        last = part.last - part.followed
    content = "\n".join(pieces)
    return content, tokens + last if exact else desk.counter.count(content)


def rows(desk: Desk, packed: Fit, hits: Sequence[Hit]) -> Iterator[TailoredSection]:
    """Describe what is handed over, most relevant first."""
    chosen = [part for part in packed.kept if part.chosen]
    for group in _grouped(desk, chosen, packed.cut):
        yield _row(desk, group, 1.0, packed.cut)
    scores = {(hit.document, hit.section): hit.score.total for hit in hits}
    for part in packed.kept:
        if not part.chosen:
            yield _row(desk, (part,), scores[part.document, part.section], packed.cut)


def _grouped(desk: Desk, parts: Sequence[Part], cut: Part | None = None) -> Iterator[tuple[Part, ...]]:
    """Put the parts of a section that is there with all its subsections together."""
    waiting = {(part.document, part.section): part for part in parts}
    for part in parts:
        place = (part.document, part.section)
        if place not in waiting:
            continue
        tree = desk.tree(part.document)
        family = [(part.document, index) for index in tree.subtree(part.section)]
        texts = [one for one in family if desk.counts(one[0]).last[one[1]]]
        complete = all(one in waiting and _is_whole(desk, waiting[one]) for one in texts)
        group = texts if complete and part is not cut else [place]
        yield tuple(waiting.pop(one) for one in group)


def _is_whole(desk: Desk, part: Part) -> bool:
    return part.lines == desk.tree(part.document).sections[part.section].own


def _row(desk: Desk, group: Sequence[Part], score: float, cut: Part | None) -> TailoredSection:
    first, final = group[0], group[-1]
    tokens = final.last if first is final else sum(part.followed for part in group[:-1]) + final.last
    return TailoredSection(
        selector=_selector(desk, group),
        title=desk.tree(first.document).sections[first.section].name,
        relevance_score=round(score, 4),
        token_count=tokens,
        start_line=first.lines.start + 1,
        end_line=final.lines.stop + 1,
        file=desk.path(first.document) if desk.several else None,
        cut=True if first is cut else None,
    )


def _selector(desk: Desk, group: Sequence[Part]) -> str:
    first = group[0]
    lines = None if _is_whole(desk, first) else first.lines
    return desk.selector((first.document, first.section), own=len(group) == 1, lines=lines)


def request_more(desk: Desk, packed: Fit) -> tuple[str, ...]:
    """Return selectors of what did not fit, most important first: what was chosen, and the best of the hits."""
    groups = list(_grouped(desk, [part for part in packed.dropped if part.chosen]))[:MAX_CHOSEN_NAMED]
    hits = [(part,) for part in packed.dropped if not part.chosen][:MAX_HITS_NAMED]
    return tuple(_selector(desk, group) for group in (*groups, *hits))
