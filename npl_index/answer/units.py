"""Units of an answer: chosen sections, their content and their descriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from npl_index.answer.document_set import DocumentSet, SectionPart, once
from npl_index.answer.values import TailoredSection
from npl_index.markdown.sections import Span, section_digest
from npl_index.ranking.scoring import Hit
from npl_index.selectors.names import Place
from npl_index.selectors.selection import Selected
from npl_index.tokens.counting import starts_token

MAX_SHORT = 2
"""Maximum words of a heading that alone says too little about its section."""

MAX_TITLE = 80
"""Maximum characters of a title in a mark or a reason."""


class AnswerUnit(NamedTuple):
    """Text that is kept, cut or dropped as a whole.

    :param parts: parts of one document, in its order.
    :param score: 0 to 1; 1 for a match of a selector.
    :param cut: whether room for the rest of its section is missing.
    :param ranges: whether its parts are several consecutive sections, which are only named.
    """

    parts: tuple[SectionPart, ...]
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


class Pointer(NamedTuple):
    """A section to read next.

    :param selector: its selector, to send back unchanged.
    :param unit: its text.
    :param line: its line with the most terms of the question, if there is room.
    :param page: title of its page, if the selector has neither the document nor a heading that says much.
    :param note: as in :class:`~npl_index.answer.values.TailoredSection`.
    """

    selector: str
    unit: AnswerUnit
    line: str | None = None
    page: str | None = None
    note: str | None = None


def places_of(units: Iterable[AnswerUnit]) -> list[Place]:
    """Return the sections of some units, in order."""
    return [place for unit in units for place in unit.places]


class Excluded(dict[Place, list[Span]]):
    """Excluded lines, by section.

    :ivar tokens: tokens of wanted text in these lines.
    """

    tokens = 0

    def rests(self, parts: Iterable[SectionPart]) -> Iterator[SectionPart]:
        """Yield wanted parts without the excluded lines."""
        for part in parts:
            rests = [part]
            if part.place in self:
                rests = [rest for rest in _without(part, self[part.place]) if rest.size.last]
                self.tokens += max(0, part.size.last - sum(rest.size.last for rest in rests))
            yield from rests


def selected_units(
    documents: DocumentSet, selections: Sequence[Selected], depth: int | None, excluded: Excluded
) -> list[AnswerUnit]:
    """Return the units of selectors' matches in their order.

    :param depth: included levels below a selected section; ``None`` for all.
    """
    chosen = selected_lines(documents, selections, depth)
    parts = (
        documents.part(place, chosen=True, lines=lines) for place, spans in chosen.items() for lines in spans
    )
    return list(families(documents, [part for part in excluded.rests(parts) if part.size.last]))


def ranked_units(documents: DocumentSet, hits: Iterable[Hit], excluded: Excluded) -> list[AnswerUnit]:
    """Return the units of hits in their order."""
    scores = {hit.place: hit.score.total for hit in hits}
    parts = excluded.rests(map(documents.part, scores))
    return [AnswerUnit((part,), scores[part.place]) for part in parts]


def merged_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the lines of all spans as separate spans, in order."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start <= merged[-1].stop:
            span = Span(merged[-1].start, max(merged.pop().stop, span.stop))
        merged.append(span)
    return merged


def selected_lines(
    documents: DocumentSet, selections: Iterable[Selected], depth: int | None = None
) -> dict[Place, list[Span]]:
    """Return the selected lines of each selected section, in order.

    :param depth: included levels below a selected section; ``None`` for all.
    """
    spans_of: dict[Place, list[Span]] = {}
    for selected in selections:
        tree = documents.tree(selected.tree)
        deepest = None if depth is None else len(tree.ancestors(selected.head)) + depth
        for index in selected.sections:
            if deepest is None or len(tree.ancestors(index)) <= deepest:
                lines = selected.lines or tree.sections[index].own
                spans_of.setdefault((selected.tree, index), []).append(lines)
    return {place: merged_spans(spans) for place, spans in spans_of.items()}


def _without(part: SectionPart, excluded: Sequence[Span]) -> Iterator[SectionPart]:
    """Yield the parts that remain after excluded lines are removed from a part."""
    at = part.lines.start
    for span in (*excluded, Span(part.lines.stop, part.lines.stop)):
        if at < span.start:
            yield part.narrowed(Span(at, min(span.start, part.lines.stop)))
        at = max(at, span.stop)


def families(
    documents: DocumentSet, parts: Sequence[SectionPart], score: float = 1.0
) -> Iterator[AnswerUnit]:
    """Yield units: the parts of a section with those of its subsections, if all of them are present."""
    whole = {part.place: part for part in parts if part.is_whole}
    for part in parts:
        if not part.is_whole:
            yield AnswerUnit((part,), score)
        elif part.place in whole:
            counts, document = documents.counts(part.document), part.document
            family = documents.tree(document).subtree(part.section)
            group = [(document, section) for section in family if counts.last(section)]
            group = group if whole.keys() >= set(group) else [part.place]
            yield AnswerUnit(tuple(map(whole.pop, group)), score)


def content_of(
    documents: DocumentSet, kept: Iterable[AnswerUnit], mark: Callable[[int], str]
) -> tuple[str, int]:
    """Join units in document order, with a blank line between them.

    :param mark: returns the mark of a document.
    :returns: the content and its number of tokens.
    """
    pieces: list[str] = []
    tokens = last = 0
    document = None
    exact = True
    for part in sorted(
        (part for unit in kept for part in unit.parts), key=lambda part: (part.document, part.lines.start)
    ):
        if documents.several and part.document != document:
            document = part.document
            pieces.append(mark(document))
            tokens += documents.counter.count(pieces[-1] + "\n")
        text = part.text
        exact = exact and (not pieces or starts_token(text))
        pieces.append(text)
        tokens += part.size.followed
        last = part.size.last - part.size.followed
    content = "\n".join(pieces)
    return content, tokens + last if exact else documents.counter.count(content)


def row(documents: DocumentSet, unit: AnswerUnit, *, lean: bool) -> TailoredSection:
    """Describe a unit.

    :param lean: omit ``cut``, which the lines in its selector show.
    """
    first, final = unit.parts[0], unit.parts[-1]
    return TailoredSection(
        selector=selector(documents, unit),
        title=first.tree.sections[first.section].title,
        relevance_score=round(unit.score, 2),
        token_count=unit.tokens,
        start_line=first.lines.start + 1,
        end_line=final.lines.stop + 1,
        file=documents.path(first.document) if documents.several else None,
        cut=True if unit.cut and not lean else None,
        digest=digest(documents, unit),
        note=documents.note(first),
    )


def digest(documents: DocumentSet, unit: AnswerUnit) -> str | None:
    """Return the digest of the text that an edit of a unit replaces; ``None`` if nothing is editable."""
    if not documents.digests:
        return None
    first = unit.parts[0]
    return section_digest(first.tree, first.section, whole=len(unit.parts) > 1)


def selector(documents: DocumentSet, unit: AnswerUnit, *, above: bool = False, by_path: bool = False) -> str:
    """Return the selector of a unit.

    :param above: include all headings above it except the document's title.
    :param by_path: name its document by its path.
    """
    first, last = unit.parts[0], unit.parts[-1]
    lines = None if first.is_whole else first.lines
    alone = len(unit.parts) == 1
    start = documents.selector(first.place, own=alone, lines=lines, above=above, by_path=by_path)
    if not unit.ranges:
        return start
    tree = first.tree
    inside = (section for section in tree.ancestors(last.section) if section > first.section)
    end = next((section for section in inside if tree.subtree(section)[-1] == last.section), last.section)
    return f"{start}...{documents.end_of_range(first.document, end)}"


@once
def pointer(documents: DocumentSet, unit: AnswerUnit) -> Pointer:
    """Return the pointer to a unit, without a line."""
    name = selector(documents, unit)
    return Pointer(name, unit, page=_page(documents, unit, name), note=documents.note(unit.parts[0]))


def front_title(documents: DocumentSet, document: int, section: int) -> str | None:
    """Return the title in a page's front matter, for the text before its headings; no other line shows it."""
    tree = documents.tree(document)
    return short_title("" if section or tree.title is not None else tree.sections[0].heading) or None


def short_title(title: str) -> str:
    """Return a title that is cut if it is long."""
    return title if len(title) <= MAX_TITLE else f"{title[:MAX_TITLE]}…"


def _page(documents: DocumentSet, unit: AnswerUnit, name: str) -> str | None:
    """Return the title of a unit's page, if its selector is a short heading alone or the page's name."""
    if title := front_title(documents, unit.document, unit.parts[0].section):
        return title
    if not name.startswith("#") or len(name.lstrip("# ").split()) > MAX_SHORT:
        return None
    sections = unit.parts[0].tree.sections
    title = sections[unit.parts[0].tree.title or 0].title
    return None if title in name else title


def joined(units: Iterable[AnswerUnit]) -> list[AnswerUnit]:
    """Join units that are consecutive whole sections."""
    runs: list[list[AnswerUnit]] = []
    following = None
    for unit in units:
        first = unit.parts[0]
        family = first.tree.subtree(first.section)
        whole = first.is_whole and unit.parts[-1].section == family[-1]
        if whole and following == (unit.document, first.section):
            runs[-1].append(unit)
        else:
            runs.append([unit])
        following = (unit.document, family.stop) if whole else None
    return [
        AnswerUnit(tuple(part for unit in run for part in unit.parts), run[0].score, ranges=True)
        if len(run) > 1
        else run[0]
        for run in runs
    ]
