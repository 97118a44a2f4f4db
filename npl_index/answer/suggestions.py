"""Sections a caller may want next, each with a reason a person understands."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, permutations

from cachetools import LRUCache

from npl_index.ranking.indexing import Collection

MAX_SUGGESTIONS = 5
NEXT_TO_IT = 2
"""Neighbours of the answer's sections, suggested where there is nothing else."""

Place = tuple[int, int]
"""Index of a document in the collection, and of a section in the document."""

_Key = tuple[str, int, str]  # path of the file, section, selector: an edit that moves sections is noticed
_KEYS_KEPT = 4096
_PARTNERS_KEPT = 12
_COUNTED_PER_CALL = 4


Idea = tuple[Place, str]
"""A section that is suggested, and why."""


class Companions:
    """Counts which sections callers asked for together; in memory, with a limit, safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: LRUCache[_Key, Counter[_Key]] = LRUCache(_KEYS_KEPT)

    def record(self, collection: Collection, places: Sequence[Place]) -> None:
        """Count every pair among the first sections that one call named."""
        keys = [_key(collection, place) for place in places[:_COUNTED_PER_CALL]]
        with self._lock:
            for one, other in permutations(dict.fromkeys(keys), 2):
                counter = self._counts.setdefault(one, Counter())
                counter[other] += 1
                if len(counter) > _PARTNERS_KEPT:
                    del counter[counter.most_common()[-1][0]]

    def of(self, collection: Collection, place: Place) -> Iterator[tuple[Place, int]]:
        """Return sections of the collection that were asked for with this one, most often first."""
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
    :param excluded: further sections that need no suggestion, such as those the answer already names.
    :param related: sections with the query's keywords, best first, and those they add to the answer.
    :param companions: what earlier calls asked for together.
    :param neighbours: what stands next to the sections of the answer, where there is nothing else.
    """
    taken = {*kept, *excluded}
    sources = [_asked_together(collection, kept, companions), _about_the_same(related)]
    chosen = list(islice(_in_turn(sources, taken), MAX_SUGGESTIONS))
    if neighbours and not chosen:
        chosen = list(islice(_in_turn([_siblings(collection, kept)], taken), NEXT_TO_IT))
    return tuple(chosen)


def _in_turn(sources: list[Iterator[Idea]], taken: set[Place]) -> Iterator[Idea]:
    """Return one new idea of each source after the other."""
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
            yield partner, f"loaded together with {_quoted(collection, place)} in {calls}"


def _about_the_same(related: Iterable[tuple[Place, Sequence[str]]]) -> Iterator[Idea]:
    for place, words in related:
        if words:
            yield place, f"adds {', '.join(words[:3])}"


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
                yield (document, sibling), f"next to {_quoted(collection, place)}"


def _quoted(collection: Collection, place: Place) -> str:
    name = collection.documents[place[0]].tree.sections[place[1]].name
    return f'"{name if len(name) <= 60 else name[:59] + "…"}"'
