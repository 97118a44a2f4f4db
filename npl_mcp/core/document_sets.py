"""Sets of documents that are searched together, brought up to date call by call.

A set is kept as segments: in memory, or in the data folder, where other processes and the next start find it.
A call compares the files' states with those that were indexed, and only what changed is read again. Trees and
texts are not kept with a set; they are read again for the few documents that an answer is about.
"""

from __future__ import annotations

import logging
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cachetools import LRUCache

from npl_index.errors import DocumentError, DocumentNotFoundError, UnreadableDocumentError
from npl_index.library.cache import is_settled
from npl_index.library.documents import Document, Fingerprint, Found
from npl_index.library.roots import too_many
from npl_index.markdown.sections import parse_sections
from npl_index.ranking.indexing import Collection, IndexedDocument, ParsedDocument
from npl_index.ranking.merging import merge, survivors
from npl_index.ranking.parts import Postings
from npl_index.ranking.segments import Segment, segment_of
from npl_index.ranking.storing import dump_tree, restore_tree
from npl_mcp.core.segment_store import Member, SegmentStore

logger = logging.getLogger(__name__)

SMALL = 64
"""Documents below which a set is not kept in the data folder: a quarter of a second indexes them again."""

TOGETHER = 64
"""Documents that are indexed before their trees and texts are dropped."""

MOST_PARTS = 9
"""Segments that are searched one by one; with more, those behind the base are merged."""

WASTE = 0.1
"""Share of a set's sections that are dead or not in the base above which the base is made again."""

LARGE = 2_000
"""Sections above which a base is not made again while a call waits: that takes some twenty milliseconds."""

NEW = -1
"""Number of the segment of what was not written down yet."""

MOST_SECTIONS = 2_000_000
"""Sections of one set."""

Read = Callable[[Found], Document]
States = Sequence[tuple[Found, Fingerprint]]


@dataclass(frozen=True)
class IndexedSet:
    """A set as it was indexed.

    :param founds: the documents that could be read, in order; empty if nobody has looked for them yet.
    :param members: their states.
    :param failures: states of those that could not be read, and why, by path.
    :param generation: of the base in the data folder; ``None`` where it is not kept there.
    """

    founds: tuple[Found, ...]
    members: tuple[Member, ...]
    collection: Collection
    failures: Mapping[str, tuple[Fingerprint, str]] = field(default_factory=dict)
    generation: int | None = None

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


@dataclass
class _Live:
    """A set in this process; the lock is held by who brings it up to date."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    state: IndexedSet | None = None
    merging: bool = False


class SetDocuments(Sequence[ParsedDocument]):
    """The documents of a set; each is read when it is asked for, and kept for a while.

    :param founds: where they are.
    :param members: what they were when they were indexed.
    :param collection: holds what the segments say of their sections.
    """

    def __init__(
        self,
        founds: Sequence[Found],
        members: Sequence[Member],
        collection: Collection,
        read: Read,
        kept: KeptDocuments,
    ) -> None:
        self._founds, self._members = founds, members
        self._postings, self._firsts = collection.postings, collection.firsts
        self._read, self._kept = read, kept

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, place: int) -> ParsedDocument:  # type: ignore[override]
        member = self._members[range(len(self._members))[place]]
        kept = self._kept.get(member)
        if kept is None:
            kept = self._restored(place, member)
            self._kept.put(member, kept)
        return kept

    def _restored(self, place: int, member: Member) -> ParsedDocument:
        found = self._founds[place]
        try:
            document = self._read(found)
        except DocumentNotFoundError:
            raise DocumentChangedError(found.path) from None
        if document.digest != member.digest:
            raise DocumentChangedError(found.path)
        record = self._postings.record(int(self._firsts[place]))
        tree = restore_tree(document, zlib.decompress(record).decode())
        return ParsedDocument(
            document, tree or parse_sections(document.data, document.name, npl=document.npl)
        )


class DocumentChangedError(UnreadableDocumentError):
    """A file of a set changed while an answer was made from it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} changed while it was read", hint="try again")


class KeptDocuments:
    """Documents of sets whose text was needed; least recently used ones go first.

    :param maxsize: bytes of memory they may take. A larger one is kept alone, or each look would read it.
    """

    def __init__(self, maxsize: int) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[tuple[str, str], ParsedDocument] = LRUCache(
            maxsize, lambda one: min(one.nbytes, maxsize)
        )

    def get(self, member: Member) -> ParsedDocument | None:
        """Return a document as it was indexed, if it is here."""
        with self._lock:
            return self._kept.get((member.fingerprint.path, member.digest))

    def put(self, member: Member, document: ParsedDocument) -> None:
        """Keep a document."""
        with self._lock:
            self._kept[member.fingerprint.path, member.digest] = document


class DocumentSets:
    """The sets of a server; safe for several threads.

    :param index: makes an index of a document.
    :param store: keeps sets in the data folder; ``None`` for memory only.
    :param maxsize: bytes of memory that all sets may take; the one used last stays in any case.

    ``built`` counts the documents that were indexed.
    """

    def __init__(
        self, index: Callable[[Document], IndexedDocument], store: SegmentStore | None, maxsize: int
    ) -> None:
        self._index, self._store, self._maxsize = index, store, maxsize
        self._lock = threading.Lock()
        self._live: OrderedDict[str, _Live] = OrderedDict()
        self._documents = KeptDocuments(max(1, maxsize // 16))
        self.built = 0

    @property
    def _kept_in(self) -> SegmentStore | None:
        return self._store if self._store is not None and self._store.usable else None

    def _indexed(self, document: Document) -> IndexedDocument:
        self.built += 1
        return self._index(document)

    def merge(self, name: str) -> None:
        """Make the base of a set in the data folder again, unless another process does so now."""
        if self._store is not None:
            self._merged(name, self._store)

    def gather(self, name: str, states: States, read: Read) -> IndexedSet:
        """Return a set as its files are now.

        :param name: of the set; it says under which roots what was asked for.
        :param states: its files, and their present states.
        :raises DocumentNotFoundError: none of the files can be read.
        """
        with self._lock:
            live = self._live.setdefault(name, _Live())
            self._live.move_to_end(name)
        state = live.state
        if state is None or not state.is_current(states):
            with live.lock:
                state = live.state = self._refreshed(name, live.state, states, read)
            self._evict()
            self._merge_later(name, live)
        return state

    def once(self, states: States, read: Read) -> IndexedSet:
        """Return a set that nobody will ask for again."""
        return self._refreshed(None, None, states, read)

    def _refreshed(
        self, name: str | None, state: IndexedSet | None, states: States, read: Read
    ) -> IndexedSet:
        if state is not None and state.is_current(states):
            return state
        store = self._kept_in if name is not None and len(states) >= SMALL else None
        if store is None or name is None:
            result = self._read(_Update(state, states, self._documents), read)
        else:
            result = self._kept(name, store, state, states, read)
        paths = [member.fingerprint.path for member in result.members]
        documents = SetDocuments(result.founds, result.members, result.collection, read, self._documents)
        return replace(result, collection=result.collection.with_documents(documents, paths))

    def _opened(self, name: str, store: SegmentStore) -> IndexedSet | None:
        """Return a set from the data folder; its files may have changed since."""
        stored = store.load(name)
        if stored is None:
            return None
        begins, at = {0: 0}, len(stored.base.documents) - 1
        for number, segment in stored.deltas.items():
            begins[number], at = at, at + len(segment.documents) - 1
        order = [begins[member.delta] + member.ordinal for member in stored.members]
        collection = Collection.of(stored.base).changed(order, list(stored.deltas.values()))
        return IndexedSet((), stored.members, _compact(collection), {}, stored.generation)

    def _read(self, update: _Update, read: Read) -> IndexedSet:
        update.read(read, self._indexed)
        return update.result()

    def _kept(
        self, name: str, store: SegmentStore, state: IndexedSet | None, states: States, read: Read
    ) -> IndexedSet:
        """Bring a set up to date that the data folder has or gets."""
        if state is None or state.generation != store.generation(name):
            state = self._opened(name, store) or state
        update = _Update(state, states, self._documents)
        if state is not None and state.generation is not None:
            update.take(store.members(name, update.paths), store)
        result = self._read(update, read)
        if result.generation is not None:
            number = store.append(name, result.generation, *update.written())
            if number is not None:
                members = tuple(m._replace(delta=number) if m.delta == NEW else m for m in result.members)
                return replace(result, members=members)
        collection = result.collection
        if len(collection.postings.parts) > 1 or collection.postings.parts[0].alive is not None:
            collection = collection.merged()
        members = _in_base(result.members, collection)
        published = store.publish(name, collection.postings.parts[0].segment, members)
        if published is None:
            return replace(result, collection=collection, members=members, generation=None)
        generation, mapped = published
        collection = replace(collection, postings=Postings.of(mapped))
        return replace(result, collection=collection, members=members, generation=generation)

    def _merge_later(self, name: str, live: _Live) -> None:
        """Make the base of a large set again in the background if much of it is dead or elsewhere."""
        state = live.state
        if state is None or live.merging or len(state.collection) < LARGE or _waste(state) <= WASTE:
            return
        live.merging = True
        # No daemon: when the process ends, those are stopped within compiled code, which aborts it.
        threading.Thread(target=self._merge, args=(name, live, state), name="npl-merge").start()

    def _merge(self, name: str, live: _Live, state: IndexedSet) -> None:
        try:
            store = None if state.generation is None else self._kept_in
            if store is None:
                merged: IndexedSet | None = replace(state, founds=(), collection=state.collection.merged())
            else:
                merged = self._merged(name, store)
            with live.lock:
                # A call that came in between found changes; it is not undone, and merging is tried again.
                if merged is not None and (store is not None or live.state is state):
                    live.state = merged
        finally:
            live.merging = False

    def _merged(self, name: str, store: SegmentStore) -> IndexedSet | None:
        """Make the base in the data folder again, unless another process does."""
        with store.alone() as alone:
            state = self._opened(name, store) if alone else None
            if state is None or state.generation is None:
                return None
            last = max((member.delta for member in state.members), default=0)
            collection = state.collection.merged()
            members = _in_base(state.members, collection)
            segment = collection.postings.parts[0].segment
            store.publish(name, segment, members, (state.generation, last))
        return self._opened(name, store)

    def _evict(self) -> None:
        with self._lock:
            while len(self._live) > 1 and sum(map(_private_bytes, self._live.values())) > self._maxsize:
                self._live.popitem(last=False)


def _private_bytes(live: _Live) -> int:
    return 0 if live.state is None else live.state.collection.nbytes


def _waste(state: IndexedSet) -> float:
    """Return the share of sections that are dead, or not in the base."""
    postings = state.collection.postings
    base = postings.parts[0]
    inside = base.segment.size if base.alive is None else int(base.alive.sum())
    return (postings.size - inside) / postings.size


def _in_base(members: Sequence[Member], collection: Collection) -> tuple[Member, ...]:
    """Return members with their places in the one segment of a collection."""
    ordinals = collection.firsts.argsort().argsort().tolist()
    return tuple(m._replace(delta=0, ordinal=at) for m, at in zip(members, ordinals, strict=True))


def _compact(collection: Collection) -> Collection:
    """Merge segments where there are many; in a large set those behind the base only."""
    if len(collection.postings.parts) <= MOST_PARTS:
        return collection
    return collection.merged(1 if len(collection) >= LARGE else 0)


class _Update:
    """What one call finds out about the documents of a set.

    :param state: the set as it was; ``None`` where nothing is known of it.
    :param states: its files now.
    :param kept: gets the documents that are read.
    """

    def __init__(self, state: IndexedSet | None, states: States, kept: KeptDocuments) -> None:
        self._state, self._states, self._kept = state, states, kept
        members = () if state is None else state.members
        self._known = {member.fingerprint.path: place for place, member in enumerate(members)}
        self._members: dict[str, Member] = {}
        self._places: dict[str, int] = {}
        self._failures: dict[str, tuple[Fingerprint, str]] = {}
        self._taken: list[Segment] = []
        self._fresh: list[Segment] = []
        self._behind = len(members)
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

    def read(self, read: Read, index: Callable[[Document], IndexedDocument]) -> None:
        """Read what is left, and index what is another way than it was."""
        some: list[IndexedDocument] = []
        sections = 0
        for found, fingerprint in self._changed:
            try:
                document = read(found)
                if not self._is_same(document):
                    some.append(index(document))
            except (DocumentError, DocumentNotFoundError) as error:
                self._failures[fingerprint.path] = (fingerprint, f"{found.path}: {error.message}")
            if len(some) == TOGETHER:
                sections += self._put(some)
                some = []
            if sections > MOST_SECTIONS:
                raise too_many(f"{MOST_SECTIONS:,} sections")
        if some:
            self._put(some)

    def _is_same(self, document: Document) -> bool:
        """Keep a document that has another state but the content it had, and tell whether that is so."""
        path = document.fingerprint.path
        place = self._known.get(path)
        if place is None or self._state is None:
            return False
        member = self._state.members[place]
        if (member.digest, member.called) != (document.digest, document.path):
            return False
        member = member._replace(fingerprint=document.fingerprint, settled=_settled(document))
        self._members[path], self._places[path] = member, place
        self._written.append(member)
        return True

    def _put(self, some: Sequence[IndexedDocument]) -> int:
        """Keep indexed documents as a segment; return the number of their sections."""
        begin = sum(segment.document_count for segment in self._fresh)
        records = [zlib.compress(dump_tree(indexed.tree).encode(), 1) for indexed in some]
        self._fresh.append(segment_of(some, records))
        for ordinal, indexed in enumerate(some, begin):
            document = indexed.document
            path = document.fingerprint.path
            member = Member(
                document.fingerprint, _settled(document), document.path, document.digest, NEW, ordinal
            )
            self._members[path], self._places[path] = member, self._behind + ordinal
            self._written.append(member)
            if len(self._states) < SMALL:  # of a large set an answer needs few
                self._kept.put(member, ParsedDocument(document, indexed.tree))
        return self._fresh[-1].size

    def result(self) -> IndexedSet:
        """Return the set as it is now.

        :raises DocumentNotFoundError: nothing is left of it.
        """
        there = [(found, state.path) for found, state in self._states if state.path in self._members]
        if not there:
            hint = next((text for _, text in self._failures.values()), None)
            raise DocumentNotFoundError(f"none of the {len(self._states)} files can be read", hint=hint)
        order = [self._places[path] for _, path in there]
        if len(self._fresh) > 1:
            self._fresh = [merge(survivors([(segment, None) for segment in self._fresh]))]
        if self._state is None:
            collection = Collection.of(self._fresh[0]).changed(order)
        else:
            collection = _compact(self._state.collection.changed(order, [*self._taken, *self._fresh]))
        return IndexedSet(
            tuple(found for found, _ in there),
            tuple(self._members[path] for _, path in there),
            collection,
            self._failures,
            None if self._state is None else self._state.generation,
        )

    def written(self) -> tuple[Segment | None, list[Member], list[str]]:
        """Return what :meth:`SegmentStore.append` writes."""
        gone = [path for path in self._known if path not in self._members]
        return (self._fresh[0] if self._fresh else None), self._written, gone


def _settled(document: Document) -> bool:
    return is_settled(document.fingerprint.mtime_ns, time.time_ns())
