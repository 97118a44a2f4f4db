"""Units of an answer: chosen sections, their content and their descriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from npl_index.answer.document_set import DocumentSet, once
from npl_index.answer.parts import AnswerUnit, SectionPart
from npl_index.answer.values import Pointer, TailoredSection
from npl_index.markdown.sections import Span, section_digest
from npl_index.ranking.scoring import Hit
from npl_index.selectors.names import Place
from npl_index.selectors.selection import Selected
from npl_index.tokens.counting import starts_token

MAX_SHORT = 2
"""Maximum words of a heading that alone says too little about its section."""

MAX_TITLE = 80
"""Maximum characters of a title of front matter in a mark."""

Excluded = Mapping[Place, Sequence[Span]]
"""Excluded lines, by section."""


def selected_units(
    documents: DocumentSet, selections: Sequence[Selected], depth: int | None, excluded: Excluded
) -> tuple[list[AnswerUnit], int]:
    """Return the units of selectors' matches in their order, and the tokens of excluded lines.

    :param depth: included levels below a selected section; ``None`` for all.
    """
    chosen = selected_lines(documents, selections, depth)
    parts = [
        documents.part(place, chosen=True, lines=lines) for place, spans in chosen.items() for lines in spans
    ]
    parts, omitted = _without_excluded(parts, excluded)
    return list(families(documents, [part for part in parts if part.size.last])), omitted


def ranked_units(
    documents: DocumentSet, hits: Iterable[Hit], excluded: Excluded
) -> tuple[list[AnswerUnit], int]:
    """Return the units of hits in their order, and the tokens of excluded lines."""
    scores = {hit.place: hit.score.total for hit in hits}
    parts, omitted = _without_excluded(map(documents.part, scores), excluded)
    return [AnswerUnit((part,), scores[part.place]) for part in parts], omitted


def _without_excluded(parts: Iterable[SectionPart], excluded: Excluded) -> tuple[list[SectionPart], int]:
    """Return the parts without the excluded lines, and the tokens of these."""
    kept: list[SectionPart] = []
    omitted = 0
    for part in parts:
        rests = [part]
        if part.place in excluded:
            rests = [rest for rest in _without(part, excluded[part.place]) if rest.size.last]
            omitted += max(0, part.size.last - sum(rest.size.last for rest in rests))
        kept += rests
    return kept, omitted


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


def split(documents: DocumentSet, unit: AnswerUnit) -> list[AnswerUnit]:
    """Split a unit into its first section's own text and the sections below it."""
    first, *below = unit.parts
    return [AnswerUnit((first,), unit.score), *families(documents, below, unit.score)]


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
    title = "" if section or tree.title is not None else tree.sections[0].heading
    return (title if len(title) <= MAX_TITLE else f"{title[:MAX_TITLE]}…") or None


def _page(documents: DocumentSet, unit: AnswerUnit, name: str) -> str | None:
    """Return the title of a unit's page, if its selector is a short heading alone or the page's name."""
    if title := front_title(documents, unit.document, unit.parts[0].section):
        return title
    if not name.startswith("#") or len(name.lstrip("# ").split()) > MAX_SHORT:
        return None
    sections = unit.parts[0].tree.sections
    title = sections[unit.parts[0].tree.title or 0].title
    return None if title in name else title


def reunited(documents: DocumentSet, dropped: Sequence[AnswerUnit]) -> list[AnswerUnit]:
    """Return units that do not fit, most important first; the opposite of :func:`split`."""
    chosen = [part for unit in dropped for part in unit.parts if part.chosen]
    return [*families(documents, chosen), *(unit for unit in dropped if not unit.parts[0].chosen)]


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
