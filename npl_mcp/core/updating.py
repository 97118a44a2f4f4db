"""A set of documents as it was indexed, and what one call or one build finds out about it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter, is_

from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import Fingerprint, Found
from npl_index.library.roots import too_many
from npl_index.ranking.indexing import Collection
from npl_index.ranking.merging import Survivor, merge, survivors
from npl_index.ranking.packing import write_living
from npl_index.ranking.segments import Segment
from npl_mcp.core.batches import Asked, Batch, Member, Piece
from npl_mcp.core.scratch import Place, Scratch
from npl_mcp.core.segment_store import SegmentStore
from npl_mcp.core.workers import Index, Join, Task, kept

MOST_PARTS = 9
"""Segments that are searched one by one; with more, the last ones are merged, of a large set in the
background."""

TOO_MANY = 4 * MOST_PARTS
"""Segments of a large set above which a call merges them itself: nobody else has come to it."""

GROWTH = 4
"""How many times as large as all behind it a segment is that is not merged with them: a large one would be
made again for every few edits."""

LARGE = 2_000
"""Sections above which a base is not made again while a call waits: that takes some twenty milliseconds."""

MOST_SECTIONS = 2_000_000
"""Sections of one set."""

MOST_BYTES = 2 << 30
"""Bytes of the files of one set: as many sections of usual length. It is known before a file is read."""

TOGETHER = 16
"""Segments of batches that become one while others are indexed, so that few are left in the end."""

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

    @cached_property
    def settled(self) -> Mapping[int, int]:
        """The places of the members that are known by their states, by the identity of these."""
        return {id(one.fingerprint): place for place, one in enumerate(self.members) if one.settled}

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
    """Merge segments where there are too many; in a large set those behind the base only."""
    large = len(collection) >= LARGE
    if len(collection.postings.parts) <= (TOO_MANY if large else MOST_PARTS):
        return collection
    return collection.merged(1 if large else 0)


def latest(collection: Collection) -> int:
    """Return from which segment on to merge: the last few, and those before that are not much larger."""
    sizes = [part.segment.size for part in collection.postings.parts]
    first = max(1, len(sizes) - MOST_PARTS // 2 - 1)
    behind = sum(sizes[first:])
    while first > 1 and sizes[first - 1] <= GROWTH * behind:
        first -= 1
        behind += sizes[first]
    return first


_SIZE = attrgetter("size")


class Update:
    """What is found out about the documents of a set; safe for several threads.

    :param state: the set as it was; ``None`` where nothing is known of it.
    :param states: its files now.
    :raises DocumentTooLargeError: these are more than can be indexed.

    ``scratch`` is where segments lie meanwhile; ``None`` for in memory.
    """

    def __init__(self, state: IndexedSet | None, states: States) -> None:
        fingerprints = [fingerprint for _, fingerprint in states]
        if sum(map(_SIZE, fingerprints)) > MOST_BYTES:
            raise too_many(f"{MOST_BYTES >> 30} GiB of Markdown")
        self.state, self.states = state, states
        self._lock = threading.Lock()
        members = () if state is None else state.members
        # Of a large set nearly all is as it was: who lists it keeps the states of what did not change. What
        # follows is done for the rest alone.
        same = {} if state is None else state.settled
        self._same_places = list(map(same.get, map(id, fingerprints)))
        left = set(range(len(members))).difference(self._same_places)
        self._known = {members[place].fingerprint.path: place for place in sorted(left)}
        self._members: dict[str, Member] = {}
        self._places: dict[str, int] = {}
        self._failures: dict[str, tuple[Fingerprint, str]] = {}
        self._taken: list[Segment] = []
        self._fresh: list[Piece] = []
        self._loose: list[Piece] = []
        self._behind = len(members)
        self._same: list[Member] = []
        self._sections = 0
        self.scratch: Scratch | None = None
        self._changed: list[tuple[Found, Fingerprint]] = []
        failures = {} if state is None else state.failures
        for (found, fingerprint), same_place in zip(states, self._same_places, strict=True):
            if same_place is not None:
                continue
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
        """Bytes of the files that probably changed, as many as take that long; others are compared."""
        return sum(
            state.size + 1024  # which takes as long as all that is done for a file whatever its size
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
                self._same.append(same)
            if piece.segment is not None:
                own = self._put_away(piece)
                self._fresh.append(own)
                if isinstance(own.segment, Place):
                    self._loose.append(own)
                self._sections += piece.sections
                for one in piece.members:
                    self._members[one.fingerprint.path] = one
        if self._sections > MOST_SECTIONS:
            raise too_many(f"{MOST_SECTIONS:,} sections")

    def tasks(self, every: Sequence[Batch]) -> Iterator[Task]:
        """Return what workers have to do: batches to index, and from time to time segments to join."""
        for number, batch in enumerate(every):
            while (join := self._loose_ones()) is not None:
                yield join
            yield Index(number, batch)

    def _loose_ones(self) -> Join | None:
        """Return segments that are still small, if there are enough of them."""
        with self._lock:
            if len(self._loose) < TOGETHER:
                return None
            found, self._loose = self._loose[:TOGETHER], self._loose[TOGETHER:]
            return Join(_places(found))

    def joined(self, task: Join, segment: Segment | Place | None) -> None:
        """Put one segment in the place of those it was made from, if they are still there."""
        with self._lock:
            here = [one.segment for one in self._fresh]
            begin = next((at for at, one in enumerate(here) if one is task.places[0]), len(here))
            end = begin + len(task.places)
            if len(here) >= end and all(map(is_, here[begin:end], task.places)):
                members = tuple(chain.from_iterable(one.members for one in self._fresh[begin:end]))
                self._fresh[begin:end] = [Piece(segment, members)]

    @property
    def rest(self) -> Join | None:
        """What has to be joined in the end; ``None`` where nothing has, or it is in memory."""
        with self._lock:
            places = _places(self._fresh)
            return Join(places) if places and len(places) == len(self._fresh) else None

    def result(self) -> IndexedSet:
        """Return the set as far as it is known by now.

        :raises DocumentNotFoundError: nothing is left of it.
        """
        with self._lock:
            if not self._members and not any(place is not None for place in self._same_places):
                hint = next((text for _, text in self._failures.values()), None)
                problem = f"none of the {len(self.states)} files can be read"
                raise DocumentNotFoundError(problem, hint=hint)
            fresh = self._fresh_one()
            founds, members, order = self._there()
            if self.state is None:
                collection = Collection.of(fresh[0]).changed(order)
            else:
                collection = self.state.collection.changed(order, [*self._taken, *fresh])
            return IndexedSet(
                tuple(founds),
                tuple(members),
                compact(collection),
                dict(self._failures),
                None if self.state is None else self.state.generation,
                len(self.states) - len(founds) - len(self._failures),
            )

    def _there(self) -> tuple[list[Found], list[Member], list[int]]:
        """Return the documents that can be read: where they are, what is known of them, and their places."""
        before = () if self.state is None else self.state.members
        founds, members, places = [], [], []
        for pair, place in zip(self.states, self._same_places, strict=True):
            if place is None:
                member = self._members.get(pair[1].path)
                if member is None:
                    continue
                place, member = self._places[pair[1].path], _sharing(member, *pair)
            else:
                member = before[place]
            founds.append(pair[0])
            members.append(member)
            places.append(place)
        return founds, members, places

    def _fresh_one(self) -> list[Segment]:
        """Make what was indexed one segment, if anything was; its documents get their places."""
        if not self._fresh:
            return []
        members = chain.from_iterable(one.members for one in self._fresh)
        numbered = tuple(member._replace(ordinal=at) for at, member in enumerate(members))
        for at, member in enumerate(numbered):
            path = member.fingerprint.path
            self._members[path], self._places[path] = member, self._behind + at
        held = self._fresh[0].segment
        if len(self._fresh) > 1:
            living = survivors([(self._segment(one), None) for one in self._fresh])
            held = self._merged(living)
        self._fresh, self._loose = [Piece(held, numbered)], []
        return [self._segment(self._fresh[0])]

    def _put_away(self, piece: Piece) -> Piece:
        with suppress(OSError):  # where there is no room for it, it stays in memory
            return piece if self.scratch is None else kept(piece, 0, self.scratch)
        return piece

    def _merged(self, living: Sequence[Survivor]) -> Segment | Place:
        with suppress(OSError):
            if self.scratch is not None:
                return self.scratch.write(0, partial(write_living, living))
        return merge(living)

    def _segment(self, piece: Piece) -> Segment:
        if isinstance(piece.segment, Place):
            assert self.scratch is not None
            return self.scratch.segment(piece.segment)
        assert piece.segment is not None
        return piece.segment

    def written(self) -> tuple[Segment | None, list[Member], list[str]]:
        """Return what :meth:`SegmentStore.append` writes, after :meth:`result`."""
        gone = [path for path in self._known if path not in self._members]
        fresh = self._fresh[0] if self._fresh else Piece(None)
        return (self._segment(fresh) if self._fresh else None), [*self._same, *fresh.members], gone


def _sharing(member: Member, found: Found, state: Fingerprint) -> Member:
    """Return a member that consists of what is in memory already, where that is the same."""
    if member.fingerprint is state or member.fingerprint != state or member.called != found.path:
        return member
    return member._replace(fingerprint=state, called=found.path)


def _places(pieces: Sequence[Piece]) -> list[Place]:
    return [one.segment for one in pieces if isinstance(one.segment, Place)]
