"""Suggested sections, each with a reason."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, permutations

from cachetools import LRUCache

from npl_index.ranking.indexing import Collection
from npl_index.selectors.names import Place

MAX_SUGGESTIONS = 5
MAX_NEIGHBOURS = 2
"""Maximum suggestions, and maximum neighbours of the answer's sections if there is no other suggestion."""

_Key = tuple[str, int, str]  # path of the file, section, selector: shows edits that move sections
_MAX_KEYS = 4096
_MAX_PARTNERS = 12
_MAX_COUNTED = 4


Idea = tuple[Place, str]
"""A suggested section, and the reason."""


class Companions:
    """Counts of sections that callers requested together: a bounded cache, safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: LRUCache[_Key, Counter[_Key]] = LRUCache(_MAX_KEYS)

    def record(self, collection: Collection, places: Sequence[Place]) -> None:
        """Count every pair among the first sections of one call."""
        keys = [_key(collection, place) for place in places[:_MAX_COUNTED]]
        with self._lock:
            for one, other in permutations(dict.fromkeys(keys), 2):
                counter = self._counts.setdefault(one, Counter())
                counter[other] += 1
                if len(counter) > _MAX_PARTNERS:
                    del counter[counter.most_common()[-1][0]]

    def of(self, collection: Collection, place: Place) -> Iterator[tuple[Place, int]]:
        """Yield sections of the collection that were requested with this one, most frequent first."""
        with self._lock:
            found = self._counts.get(_key(collection, place), Counter()).most_common()
        for (path, section, selector), count in found:
            document = collection.document_at(path)
            if document is not None:
                known = collection.documents[document].steps
                if section < len(known) and known[section] == selector:
                    yield (document, section), count


def _key(collection: Collection, place: Place) -> _Key:
    indexed = collection.documents[place[0]]
    return indexed.document.fingerprint.path, place[1], indexed.steps[place[1]]


def suggest(
    collection: Collection,
    kept: Sequence[Place],
    excluded: Iterable[Place],
    related: Iterable[tuple[Place, Sequence[str]]],
    companions: Companions,
    *,
    neighbours: bool,
) -> tuple[Idea, ...]:
    """Choose at most :data:`MAX_SUGGESTIONS` sections.

    :param kept: sections of the answer, most relevant first.
    :param excluded: further sections to exclude, such as those that the answer names.
    :param related: sections with the query's keywords, best first, and the keywords that they add to the
        answer.
    :param companions: sections that earlier calls requested together.
    :param neighbours: suggest neighbours of the answer's sections if there is no other suggestion.
    """
    taken = {*kept, *excluded}
    alike = ((place, f"adds {', '.join(words[:3])}") for place, words in related if words)
    sources = [_asked_together(collection, kept, companions), alike]
    chosen = list(islice(_in_turn(sources, taken), MAX_SUGGESTIONS))
    if neighbours and not chosen:
        chosen = list(islice(_in_turn([_siblings(collection, kept)], taken), MAX_NEIGHBOURS))
    return tuple(chosen)


def _in_turn(sources: list[Iterator[Idea]], taken: set[Place]) -> Iterator[Idea]:
    """Yield new ideas from each source in turn."""
    while sources:
        for source in tuple(sources):
            idea = next((idea for idea in source if idea[0] not in taken), None)
            if idea is None:
                sources.remove(source)
            else:
                taken.add(idea[0])
                yield idea


def _asked_together(collection: Collection, kept: Sequence[Place], companions: Companions) -> Iterator[Idea]:
    for place in kept[:3]:
        for partner, count in companions.of(collection, place):
            calls = "an earlier call" if count == 1 else f"{count} earlier calls"
            yield partner, f"loaded together with {_heading_in_quotes(collection, place)} in {calls}"


def _siblings(collection: Collection, kept: Sequence[Place]) -> Iterator[Idea]:
    for place in kept[:3]:
        document, index = place
        tree = collection.documents[document].tree
        parent = tree.sections[index].parent
        if parent is None:
            continue
        family = tree.sections[parent].children
        at = family.index(index)
        for sibling in (*family[at + 1 : at + 2], *family[max(0, at - 1) : at], *family[at + 2 : at + 3]):
            if tree.sections[sibling].whole_traits.word_count > 0:
                yield (document, sibling), f"next to {_heading_in_quotes(collection, place)}"


def _heading_in_quotes(collection: Collection, place: Place) -> str:
    name = collection.documents[place[0]].tree.sections[place[1]].name
    return f'"{name if len(name) <= 60 else name[:59] + "…"}"'
