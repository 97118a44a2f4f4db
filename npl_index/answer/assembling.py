"""From chosen sections to the content of an answer, and the rows that describe it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from npl_index.answer.budget import Fit, Part
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.suggestions import Place
from npl_index.markdown.sections import SectionTree
from npl_index.ranking.scoring import Hit
from npl_index.selectors.selection import Selected
from npl_index.tokens.counting import starts_token
from npl_index.tokens.sections import trimmed_text

MAX_CHOSEN_NAMED = 64
MAX_HITS_NAMED = 6
"""Selectors of parts that did not fit; each costs the reader some twenty tokens."""


@dataclass(frozen=True, slots=True)
class TailoredSection:
    """One section of the content.

    :param selector: selects exactly the part of it that the content holds.
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


def choose(
    documents: DocumentSet, selections: Sequence[Selected], hits: Sequence[Hit], depth: int | None
) -> list[Part]:
    """List what is wanted, most important first: what selectors ask for, then the hits.

    :param depth: levels below a selected section that come with it; ``None`` for all.
    """
    parts: dict[Place, Part] = {}
    for selected in selections:
        for index in _within(documents.tree(selected.tree), selected, depth):
            place = (selected.tree, index)
            if place not in parts:
                parts[place] = documents.part(place, chosen=True, lines=selected.lines)
    for hit in hits:
        place = (hit.document, hit.section)
        if place not in parts:
            parts[place] = documents.part(place, chosen=False)
    return [part for part in parts.values() if part.last]


def _within(tree: SectionTree, selected: Selected, depth: int | None) -> Iterable[int]:
    if depth is None:
        return selected.sections
    deepest = len(tree.ancestors(selected.head)) + depth
    return (index for index in selected.sections if len(tree.ancestors(index)) <= deepest)


def assemble(documents: DocumentSet, kept: Sequence[Part]) -> tuple[str, int]:
    """Put parts together in document order, with a blank line between them.

    :returns: the content and its number of tokens.
    """
    pieces: list[str] = []
    tokens = last = 0
    document = None
    exact = True
    for part in sorted(kept, key=lambda part: (part.document, part.lines.start)):
        if documents.several and part.document != document:
            document = part.document
            pieces.append(documents.mark(document))
            tokens += documents.counter.count(pieces[-1] + "\n")
        text = trimmed_text(documents.tree(part.document), part.lines)
        exact = exact and (not pieces or starts_token(text))
        pieces.append(text)
        tokens += part.followed
        last = part.last - part.followed
    content = "\n".join(pieces)
    return content, tokens + last if exact else documents.counter.count(content)


def rows(documents: DocumentSet, packed: Fit, hits: Sequence[Hit]) -> Iterator[TailoredSection]:
    """Describe the kept sections, most relevant first."""
    chosen = [part for part in packed.kept if part.chosen]
    for group in _grouped(documents, chosen, packed.cut):
        yield _row(documents, group, 1.0, packed.cut)
    scores = {(hit.document, hit.section): hit.score.total for hit in hits}
    for part in packed.kept:
        if not part.chosen:
            yield _row(documents, (part,), scores[part.document, part.section], packed.cut)


def _grouped(
    documents: DocumentSet, parts: Sequence[Part], cut: Part | None = None
) -> Iterator[tuple[Part, ...]]:
    """Put the parts of a section together if all its subsections are among them."""
    waiting = {(part.document, part.section): part for part in parts}
    for part in parts:
        place = (part.document, part.section)
        if place not in waiting:
            continue
        tree = documents.tree(part.document)
        family = [(part.document, index) for index in tree.subtree(part.section)]
        texts = [one for one in family if documents.counts(one[0]).last[one[1]]]
        complete = all(one in waiting and _is_whole(documents, waiting[one]) for one in texts)
        group = texts if complete and part is not cut else [place]
        yield tuple(waiting.pop(one) for one in group)


def _is_whole(documents: DocumentSet, part: Part) -> bool:
    return part.lines == documents.tree(part.document).sections[part.section].own


def _row(documents: DocumentSet, group: Sequence[Part], score: float, cut: Part | None) -> TailoredSection:
    first, final = group[0], group[-1]
    tokens = final.last if first is final else sum(part.followed for part in group[:-1]) + final.last
    return TailoredSection(
        selector=_selector(documents, group),
        title=documents.tree(first.document).sections[first.section].name,
        relevance_score=round(score, 4),
        token_count=tokens,
        start_line=first.lines.start + 1,
        end_line=final.lines.stop + 1,
        file=documents.path(first.document) if documents.several else None,
        cut=True if first is cut else None,
    )


def _selector(documents: DocumentSet, group: Sequence[Part]) -> str:
    first = group[0]
    lines = None if _is_whole(documents, first) else first.lines
    return documents.selector((first.document, first.section), own=len(group) == 1, lines=lines)


def request_more(documents: DocumentSet, packed: Fit) -> tuple[str, ...]:
    """Return selectors for what did not fit, most important first: what was chosen, then the best hits."""
    groups = list(_grouped(documents, [part for part in packed.dropped if part.chosen]))[:MAX_CHOSEN_NAMED]
    hits = [(part,) for part in packed.dropped if not part.chosen][:MAX_HITS_NAMED]
    return tuple(_selector(documents, group) for group in (*groups, *hits))
