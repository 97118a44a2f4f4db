"""Further parts of an answer: keywords, and suggested sections, each with a reason."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, permutations

from cachetools import LRUCache

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.plan import Plan
from npl_index.answer.steps import Findings
from npl_index.answer.units import places_of, short_title
from npl_index.answer.values import Suggestion
from npl_index.ranking.collection import Collection
from npl_index.selectors.names import Place

MAX_KEYWORDS = 8
MAX_RELATED = 8
"""Maximum keywords, and maximum sections that are compared with the question."""

MAX_SUGGESTIONS = 5
MAX_NEIGHBOURS = 2
"""Maximum suggestions, and maximum neighbours of the answer's sections if there is no other suggestion."""

Idea = tuple[Place, str]
"""A suggested section, and the reason."""

_Key = tuple[str, int, str]  # path of the file, section, selector: shows edits that move sections
_ALL = 0.99  # share of a word in a section that has it
_MAX_KEYS = 4096
_MAX_PARTNERS = 12

_FIRST = 3
"""Number of first sections of a call that have companions and neighbours."""


class Companions:
    """Counts of sections that callers requested together: a bounded cache, safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: LRUCache[_Key, Counter[_Key]] = LRUCache(_MAX_KEYS)

    def record(self, collection: Collection, places: Sequence[Place]) -> None:
        """Count every pair among the first sections of one call."""
        keys = [_key(collection, place) for place in places[:_FIRST]]
        with self._lock:
            for key, other in permutations(dict.fromkeys(keys), 2):
                counter = self._counts.setdefault(key, Counter())
                counter[other] += 1
                if len(counter) > _MAX_PARTNERS:
                    del counter[counter.most_common()[-1][0]]

    def of(self, collection: Collection, place: Place) -> Iterator[tuple[Place, int]]:
        """Yield sections of the collection that were requested with this one, most frequent first."""
        with self._lock:
            partners = self._counts.get(_key(collection, place), Counter()).most_common()
        for (path, section, selector), count in partners:
            document = collection.document_at(path)
            if document is not None:
                steps = collection.documents[document].steps
                if section < len(steps) and steps[section] == selector:
                    yield (document, section), count


def _key(collection: Collection, place: Place) -> _Key:
    indexed = collection.documents[place[0]]
    return indexed.document.fingerprint.path, place[1], indexed.steps[place[1]]


def further_parts(findings: Findings, plan: Plan, companions: Companions) -> Iterator[str | Suggestion]:
    """Yield keywords, best first, then suggestions, which are neither in the answer nor named by it.

    :param companions: sections that earlier calls requested together.
    """
    yield from findings.ranking.query.keywords.words[:MAX_KEYWORDS]
    documents = findings.documents
    wanted = places_of((*findings.selected, *findings.answers))
    taken = {*wanted, *findings.excluded, *places_of((*findings.named, *plan.kept))}
    taken |= {above for place in taken for above in documents.ancestors(place)}
    ideas = chain(_loaded_together(documents, wanted, companions), _adding_words(findings, wanted, taken))
    new = list(islice(_new(ideas, taken), MAX_SUGGESTIONS))
    if not (new or findings.used):
        new = list(islice(_new(_neighbours(documents, wanted), taken), MAX_NEIGHBOURS))
    yield from (Suggestion(documents.selector(place), reason) for place, reason in new)


def _new(ideas: Iterable[Idea], taken: set[Place]) -> Iterator[Idea]:
    """Yield the suggested sections, each once with its first reason."""
    seen = set(taken)
    for place, reason in ideas:
        if place not in seen:
            seen.add(place)
            yield place, reason


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


def _loaded_together(
    documents: DocumentSet, wanted: Sequence[Place], companions: Companions
) -> Iterator[Idea]:
    for place in wanted[:_FIRST]:
        for partner, count in companions.of(documents.collection, place):
            calls = "an earlier call" if count == 1 else f"{count} earlier calls"
            yield partner, f"loaded together with {_heading_in_quotes(documents, place)} in {calls}"


def _neighbours(documents: DocumentSet, wanted: Sequence[Place]) -> Iterator[Idea]:
    """Yield the sections after and before those of an answer."""
    for document, section in wanted[:_FIRST]:
        tree = documents.tree(document)
        parent = tree.sections[section].parent
        family = () if parent is None else tree.sections[parent].children
        at = family.index(section) if family else 0
        for neighbour in (*family[at + 1 : at + 2], *family[max(0, at - 1) : at], *family[at + 2 : at + 3]):
            if tree.sections[neighbour].whole_traits.word_count > 0:
                reason = f"next to {_heading_in_quotes(documents, (document, section))}"
                yield (document, neighbour), reason


def _heading_in_quotes(documents: DocumentSet, place: Place) -> str:
    return f'"{short_title(documents.section(place).name)}"'
