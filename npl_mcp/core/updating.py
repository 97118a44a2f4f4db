"""A set of documents as it was indexed, and what one call or one build finds out about it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import Fingerprint, Found
from npl_index.library.roots import too_many
from npl_index.ranking.indexing import Collection
from npl_index.ranking.merging import merge, survivors
from npl_index.ranking.segments import Segment
from npl_mcp.core.batches import Asked, Member, Piece
from npl_mcp.core.segment_store import SegmentStore

MOST_PARTS = 9
"""Segments that are searched one by one; with more, those behind the base are merged."""

LARGE = 2_000
"""Sections above which a base is not made again while a call waits: that takes some twenty milliseconds."""

MOST_SECTIONS = 2_000_000
"""Sections of one set."""

States = Sequence[tuple[Found, Fingerprint]]


@dataclass(frozen=True)
class IndexedSet:
    """A set as it was indexed.

    :param founds: the documents that could be read, in order; empty if nobody has looked for them yet.
    :param members: their states.
    :param failures: states of those that could not be read, and why, by path.
    :param generation: of the base in the data folder; ``None`` where it is not kept there.
    :param missing: how many files are not indexed yet.
    """

    founds: tuple[Found, ...]
    members: tuple[Member, ...]
    collection: Collection
    failures: Mapping[str, tuple[Fingerprint, str]] = field(default_factory=dict)
    generation: int | None = None
    missing: int = 0

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The files that were left out, and why."""
        return tuple(text for _, text in self.failures.values())

    def is_current(self, states: States) -> bool:
        """Tell whether files are certainly as they were indexed."""
        if len(states) != len(self.founds) + len(self.failures):
            return False
        known = iter(zip(self.founds, self.members, strict=True))
        return all(
            self.failures[state.path][0] == state
            if state.path in self.failures
            else (pair := next(known, None)) is not None and pair[1].is_certain(found.path, state)
            for found, state in states
        )


def compact(collection: Collection) -> Collection:
    """Merge segments where there are many; in a large set those behind the base only."""
    if len(collection.postings.parts) <= MOST_PARTS:
        return collection
    return collection.merged(1 if len(collection) >= LARGE else 0)


class Update:
    """What is found out about the documents of a set; safe for several threads.

    :param state: the set as it was; ``None`` where nothing is known of it.
    :param states: its files now.
    """

    def __init__(self, state: IndexedSet | None, states: States) -> None:
        self.state, self.states = state, states
        self._lock = threading.Lock()
        members = () if state is None else state.members
        self._known = {member.fingerprint.path: place for place, member in enumerate(members)}
        self._members: dict[str, Member] = {}
        self._places: dict[str, int] = {}
        self._failures: dict[str, tuple[Fingerprint, str]] = {}
        self._taken: list[Segment] = []
        self._fresh: list[Segment] = []
        self._behind = len(members)
        self._sections = 0
        self._written: list[Member] = []
        self._changed: list[tuple[Found, Fingerprint]] = []
        failures = {} if state is None else state.failures
        for found, fingerprint in states:
            path = fingerprint.path
            place = self._known.get(path)
            if place is not None and members[place].is_certain(found.path, fingerprint):
                self._members[path], self._places[path] = members[place], place
            elif path in failures and failures[path][0] == fingerprint:
                self._failures[path] = failures[path]
            else:
                self._changed.append((found, fingerprint))

    @property
    def paths(self) -> list[str]:
        """The documents that may have changed."""
        return [fingerprint.path for _, fingerprint in self._changed]

    def asked(self) -> list[Asked]:
        """Return the documents that have to be read."""
        return [Asked(*one, self._indexed_as(one[1].path)) for one in self._changed]

    def _indexed_as(self, path: str) -> tuple[str, str] | None:
        member = self._member(path)
        return None if member is None else (member.called, member.digest)

    def _member(self, path: str) -> Member | None:
        place = self._known.get(path)
        return None if place is None or self.state is None else self.state.members[place]

    @property
    def size(self) -> int:
        """Bytes of the files that probably changed; the others are read and compared."""
        return sum(
            state.size
            for _, state in self._changed
            if (member := self._member(state.path)) is None or member.fingerprint != state
        )

    def take(self, members: Mapping[str, Member], store: SegmentStore) -> None:
        """Take over what other processes indexed."""
        wanted = [
            member
            for found, fingerprint in self._changed
            if (member := members.get(fingerprint.path)) is not None
            and member.delta > 0
            and member.is_certain(found.path, fingerprint)
        ]
        begins = {}
        for number, segment in store.deltas({member.delta for member in wanted}).items():
            begins[number] = self._behind
            self._taken.append(segment)
            self._behind += segment.document_count
        for member in wanted:
            if member.delta in begins:
                path = member.fingerprint.path
                self._members[path], self._places[path] = member, begins[member.delta] + member.ordinal
        self._changed = [one for one in self._changed if one[1].path not in self._members]

    def put(self, piece: Piece) -> None:
        """Keep what came of a batch.

        :raises DocumentTooLargeError: the set has too many sections.
        """
        with self._lock:
            self._failures.update((state.path, (state, why)) for state, why in piece.failures)
            for member in piece.same:
                path = member.fingerprint.path
                place = self._known[path]
                before = self.state.members[place] if self.state is not None else member
                same = before._replace(fingerprint=member.fingerprint, settled=member.settled)
                self._members[path], self._places[path] = same, place
                self._written.append(same)
            if piece.segment is not None:
                begin = sum(segment.document_count for segment in self._fresh)
                self._fresh.append(piece.segment)
                self._sections += piece.segment.size
                for one in piece.members:
                    path = one.fingerprint.path
                    ordinal = begin + one.ordinal
                    fresh = one._replace(ordinal=ordinal)
                    self._members[path], self._places[path] = fresh, self._behind + ordinal
                    self._written.append(fresh)
        if self._sections > MOST_SECTIONS:
            raise too_many(f"{MOST_SECTIONS:,} sections")

    def join(self, merged: Callable[[Sequence[Segment]], Segment | None]) -> None:
        """Make what was indexed one segment.

        :param merged: does that elsewhere, or fails; then :meth:`result` does it.
        """
        with self._lock:
            one = merged(self._fresh) if len(self._fresh) > 1 else None
            self._fresh = self._fresh if one is None else [one]

    def result(self) -> IndexedSet:
        """Return the set as far as it is known by now.

        :raises DocumentNotFoundError: nothing is left of it.
        """
        with self._lock:
            there = [(found, state.path) for found, state in self.states if state.path in self._members]
            if not there:
                hint = next((text for _, text in self._failures.values()), None)
                problem = f"none of the {len(self.states)} files can be read"
                raise DocumentNotFoundError(problem, hint=hint)
            order = [self._places[path] for _, path in there]
            if len(self._fresh) > 1:
                self._fresh = [merge(survivors([(segment, None) for segment in self._fresh]))]
            if self.state is None:
                collection = Collection.of(self._fresh[0]).changed(order)
            else:
                collection = compact(self.state.collection.changed(order, [*self._taken, *self._fresh]))
            return IndexedSet(
                tuple(found for found, _ in there),
                tuple(self._members[path] for _, path in there),
                collection,
                dict(self._failures),
                None if self.state is None else self.state.generation,
                len(self.states) - len(there) - len(self._failures),
            )

    def written(self) -> tuple[Segment | None, list[Member], list[str]]:
        """Return what :meth:`SegmentStore.append` writes."""
        gone = [path for path in self._known if path not in self._members]
        return (self._fresh[0] if self._fresh else None), self._written, gone
