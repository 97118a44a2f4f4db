"""Further parts of an answer: keywords, and suggested sections, each with a reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.plan import Plan
from npl_index.answer.steps import Findings
from npl_index.answer.units import places_of, short_title
from npl_index.answer.values import Suggestion
from npl_index.selectors.names import Place

MAX_KEYWORDS = 8
MAX_RELATED = 8
"""Maximum keywords, and maximum sections that are compared with the question."""

MAX_SUGGESTIONS = 5
MAX_NEIGHBOURS = 2
"""Maximum suggestions, and maximum neighbours of the answer's sections if there is no other suggestion."""

Idea = tuple[Place, str]
"""A suggested section, and the reason."""

_ALL = 0.99  # share of a word in a section that has it

_FIRST = 3
"""Number of first sections of an answer that have neighbours."""


def further_parts(findings: Findings, plan: Plan) -> Iterator[str | Suggestion]:
    """Yield keywords, best first, then suggestions, which are neither in the answer nor named by it."""
    yield from findings.ranking.query.keywords.words[:MAX_KEYWORDS]
    documents = findings.documents
    wanted = places_of((*findings.selected, *findings.answers))
    shown = (*findings.named, *plan.kept, *(pointer.unit for pointer in plan.pointers))
    taken = {*wanted, *findings.excluded, *places_of(shown)}
    taken |= {above for place in taken for above in documents.ancestors(place)}
    ideas = dict(islice(_adding_words(findings, wanted, taken), MAX_SUGGESTIONS))
    if not (ideas or findings.selected):
        near = (idea for idea in _neighbours(documents, wanted) if idea[0] not in taken)
        ideas = dict(islice(near, MAX_NEIGHBOURS))
    yield from (Suggestion(documents.selector(place), reason) for place, reason in ideas.items())


def _adding_words(findings: Findings, wanted: Sequence[Place], taken: set[Place]) -> Iterator[Idea]:
    """Yield the best hits with words of the question that the answer lacks."""
    coverage, hits = findings.ranking.coverage, findings.ranking.hits
    has_word = dict(zip((hit.place for hit in hits), coverage.shares.T >= _ALL, strict=False))
    shown = [has_word[place] for place in wanted if place in has_word]
    new = [number for number in range(len(coverage.words)) if not any(words[number] for words in shown)]
    places = (place for place in has_word if place not in taken)
    for place in islice(places, MAX_RELATED):
        if words := [coverage.words[number].shown for number in new if has_word[place][number]]:
            yield place, f"adds {', '.join(words[:3])}"


def _neighbours(documents: DocumentSet, wanted: Sequence[Place]) -> Iterator[Idea]:
    """Yield the sections after and before those of an answer."""
    for document, section in wanted[:_FIRST]:
        tree = documents.tree(document)
        parent = tree.sections[section].parent
        family = () if parent is None else tree.sections[parent].children
        at = family.index(section) if family else 0
        for neighbour in (*family[at + 1 : at + 2], *family[max(0, at - 1) : at], *family[at + 2 : at + 3]):
            if tree.sections[neighbour].whole_traits.word_count > 0:
                yield (document, neighbour), f'next to "{short_title(tree.sections[section].name)}"'
