"""Sets of documents that are searched together, brought up to date call by call.

A set is kept as segments: in memory, or in the data folder, where other processes and the next start find it.
A call compares the files' states with those that were indexed, and only what changed is read again. Trees and
texts are not kept with a set; they are read again for the few documents that an answer is about.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from cachetools import LRUCache

from npl_index.errors import DocumentNotFoundError, NPLError, UnreadableDocumentError
from npl_index.library.documents import Document, Found
from npl_index.markdown.sections import parse_sections
from npl_index.ranking.indexing import Collection, ParsedDocument
from npl_index.ranking.merging import joined
from npl_index.ranking.storing import restore_sections
from npl_mcp.core.batches import NEW, Indexer, Member, Reader
from npl_mcp.core.building import APART, SMALL, Builder, Read
from npl_mcp.core.memory import give_back
from npl_mcp.core.scratch import write_file
from npl_mcp.core.segment_store import SegmentStore, Written
from npl_mcp.core.updating import LARGE, MOST_PARTS, IndexedSet, States, Update, compact, latest
from npl_mcp.core.waiting import Indexing
from npl_mcp.core.workers import Workers

logger = logging.getLogger(__name__)

WASTE = 0.1
"""Share of a set's sections that are dead or not in the base above which the base is made again."""

MOST_LATER = 16 << 20
"""Bytes of a later segment at most, which is a row of the manifest; with more the base is made again."""

CLOSE_SECONDS = 1.0
"""Seconds that the end of a server waits for what it was indexing; what is not kept is indexed again."""


@dataclass(frozen=True)
class _Build:
    """A set that is being indexed in the background."""

    indexing: Indexing
    update: Update


@dataclass
class _Live:
    """A set in this process; the lock is held by who brings it up to date, or looks whether somebody does.

    :param seen: a state, and what it was found to agree with.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    state: IndexedSet | None = None
    seen: tuple[IndexedSet, States] | None = None
    build: _Build | None = None
    merging: bool = False


class SetDocuments(Sequence[ParsedDocument]):
    """The documents of a set; the text of each is read when it is asked for, and kept for a while.

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
        found, read = self._founds[place], self._read

        def current() -> Document:
            try:
                document = read(found)
            except DocumentNotFoundError:
                raise DocumentChangedError(found.path) from None
            if document.digest != member.digest:
                raise DocumentChangedError(found.path)
            return document

        def known(name: str) -> Document:
            label, npl = found.root.label, found.root.npl
            return Document(name, found.path, label, member.fingerprint, b"", member.digest, npl)

        record = self._postings.record(int(self._firsts[place]))
        restored = restore_sections(record, known, lambda: current().data)
        if restored is not None:
            return restored
        document = current()
        return ParsedDocument(document, parse_sections(document.data, document.name, npl=document.npl))


class DocumentChangedError(UnreadableDocumentError):
    """A file of a set changed while an answer was made from it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} changed while it was read", hint="try again")


class NotIndexedError(NPLError):
    """Nothing of a set is indexed yet.

    :param files: how many it has.
    """

    def __init__(self, files: int) -> None:
        self.files = files
        super().__init__(f"{files:,} files are being indexed", hint="ask again")


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

    :param indexer: says how files are indexed.
    :param store: keeps sets in the data folder; ``None`` for memory only.
    :param maxsize: bytes of memory that all sets may take; the one used last stays in any case.
    """

    def __init__(self, indexer: Indexer, store: SegmentStore | None, maxsize: int) -> None:
        self._store, self._maxsize = store, maxsize
        self._lock = threading.Lock()
        self._live: OrderedDict[str, _Live] = OrderedDict()
        self._documents = KeptDocuments(max(1, maxsize // 16))
        self._builder = Builder(indexer, self._documents.put)
        self._threads: set[threading.Thread] = set()

    @property
    def built(self) -> int:
        """How many documents were indexed."""
        return self._builder.built

    def close(self) -> None:
        """End what goes on in the background."""
        self._builder.close()
        for thread in tuple(self._threads):
            thread.join(CLOSE_SECONDS)

    def merge(self, name: str) -> None:
        """Make the base of a set in the data folder again, unless another process does so now."""
        if self._store is not None:
            live = self._live.get(name)
            self._merged(name, self._store, None if live is None else live.state)

    async def gather(self, name: str, states: States, read: Read, apart: Reader | None = None) -> IndexedSet:
        """Return a set as its files are now.

        Where much has to be indexed, that is done in the background. The call waits for it, and gets a part
        of the set if it has waited enough before.

        :param name: of the set; it says under which roots what was asked for.
        :param states: its files, and their present states.
        :param apart: reads the same as ``read`` in another process; ``None`` where that cannot be.
        :raises DocumentNotFoundError: none of the files can be read.
        :raises NotIndexedError: nothing is ready, and the call does not wait for that.
        """
        with self._lock:
            live = self._live.setdefault(name, _Live())
            self._live.move_to_end(name)
        while True:
            found = self._looked_at(name, live, states, read, apart)
            if isinstance(found, IndexedSet):
                live.seen = found, states
                return found
            if not await found:
                build = live.build
                if build is not None and (build.indexing.done or build.update.state is not None):
                    return self._with_documents(build.update.result(), read)
                if not found.ended.done():
                    raise NotIndexedError(found.total)

    def _looked_at(
        self, name: str, live: _Live, states: States, read: Read, apart: Reader | None
    ) -> IndexedSet | Indexing:
        """Return a set as its files are now, or what to wait for."""
        state, seen = live.state, live.seen
        # The same states once more say that nothing changed since, even of a file that was new then.
        if state is not None and seen is not None and seen[0] is state and seen[1] is states:
            return state
        if state is not None and state.is_current(states):
            return state
        with live.lock:
            if live.build is None:
                elsewhere = self._elsewhere(name, live.state, states)
                if elsewhere is not None:
                    return elsewhere
                update = self._planned(name, live.state, states)
                if update.size >= APART:
                    self._begin(name, live, update, read, apart)
                else:
                    state = live.state = self._refreshed(name, update, read, apart)
            if live.build is not None:
                return live.build.indexing
        assert state is not None
        self._evict()
        self._merge_later(name, live)
        return state

    def _elsewhere(self, name: str, state: IndexedSet | None, states: States) -> Indexing | None:
        """Return what to wait for if a set may come from elsewhere than this process."""
        store = self._store_of(states) if state is None else None
        return None if store is None else store.elsewhere(name, len(states))

    def once(self, states: States, read: Read, apart: Reader | None = None) -> IndexedSet:
        """Return a set that nobody will ask for again."""
        update = Update(None, states)
        with self._builder.helped(update, apart, None) as workers:
            self._builder.read(update, read, apart, workers, Indexing(len(states)))
            self._builder.join(update, workers, None)
        return self._with_documents(update.result(), read)

    def _begin(self, name: str, live: _Live, update: Update, read: Read, apart: Reader | None) -> None:
        """Bring a set up to date in the background."""
        live.build = _Build(Indexing(len(update.paths)), update)
        live.build.indexing.ended.set_running_or_notify_cancel()  # nobody who waits can cancel it

        def work() -> None:
            self._build(name, live, read, apart)
            give_back()
            self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=work, name="npl-index", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _build(self, name: str, live: _Live, read: Read, apart: Reader | None) -> None:
        build = live.build
        assert build is not None
        failure: Exception | None = RuntimeError("a set could not be indexed")
        try:
            store = self._store_of(build.update.states)
            helped = self._builder.helped(build.update, apart, store)
            with self._making(name, build.update), helped as workers:
                self._builder.read(build.update, read, apart, workers, build.indexing)
                self._builder.go_on()
                state = self._stored(name, build.update, read, workers)
            with live.lock:
                live.state, live.seen = state, None
            failure = None
        except NPLError as error:
            failure = error
        finally:
            with live.lock:
                live.build = None
            if failure is None:
                build.indexing.ended.set_result(None)
            else:
                build.indexing.ended.set_exception(failure)
            self._evict()

    def _refreshed(self, name: str, update: Update, read: Read, apart: Reader | None) -> IndexedSet:
        with self._making(name, update):
            self._builder.read(update, read, apart, None, Indexing(len(update.paths)))
            return self._stored(name, update, read, None)

    def _making(self, name: str, update: Update) -> AbstractContextManager[None]:
        """Return what tells others meanwhile that a set is being made here."""
        store = self._store_of(update.states) if update.state is None else None
        return nullcontext() if store is None else store.making(name)

    def _planned(self, name: str, state: IndexedSet | None, states: States) -> Update:
        """Find out what of a set has to be read; what the data folder knows of it has not."""
        store = self._store_of(states)
        if store is None:
            return Update(state, states)
        if state is None or state.generation != store.generation(name):
            state = self._opened(name, store) or state
        update = Update(state, states)
        if state is not None and state.generation is not None:
            update.take(store.members(name, update.paths), store)
        return update

    def _store_of(self, states: States) -> SegmentStore | None:
        return self._kept_in if len(states) >= SMALL else None

    @property
    def _kept_in(self) -> SegmentStore | None:
        return self._store if self._store is not None and self._store.usable else None

    def _with_documents(self, result: IndexedSet, read: Read) -> IndexedSet:
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
        return IndexedSet((), stored.members, compact(collection), {}, stored.generation)

    def _stored(self, name: str, update: Update, read: Read, workers: Workers | None) -> IndexedSet:
        """Return what an update results in, kept in the data folder if it is large enough."""
        store = self._store_of(update.states)
        written = self._builder.join(update, workers, store)
        result = update.result()
        return self._with_documents(
            result if store is None else self._kept(name, store, update, result, written), read
        )

    def _kept(
        self, name: str, store: SegmentStore, update: Update, result: IndexedSet, written: Written | None
    ) -> IndexedSet:
        """Write down what was found out about a set.

        :param written: all of it, if that is in the data folder already.
        """
        segment, changed, gone = update.written()
        if result.generation is not None and (segment is None or segment.nbytes <= MOST_LATER):
            number = store.append(name, result.generation, segment, changed, gone)
            if number is not None:
                members = tuple(m._replace(delta=number) if m.delta == NEW else m for m in result.members)
                return replace(result, members=members)
        members = _in_base(result.members, result.collection)
        collection, written = _in_file(result.collection, store, written)
        generation = None if written is None else store.publish(name, written, members)
        return replace(result, collection=collection, members=members, generation=generation)

    def _merge_later(self, name: str, live: _Live) -> None:
        """Merge segments of a large set in the background.

        Its base is made again if much of it is dead or elsewhere; else the last ones become one where they
        are many.
        """
        state = live.state
        if state is None or live.merging or len(state.collection) < LARGE:
            return
        if _waste(state) > WASTE:
            work = partial(self._merge, name, live, state)
        elif len(state.collection.postings.parts) > MOST_PARTS:
            work = partial(self._join_latest, name, live, state)
        else:
            return
        live.merging = True
        # No daemon: when the process ends, those are stopped within compiled code, which aborts it.
        threading.Thread(target=work, name="npl-merge").start()

    def _join_latest(self, name: str, live: _Live, state: IndexedSet) -> None:
        try:
            first = latest(state.collection)
            living = state.collection.living(first)
            segment = joined(living)
            with live.lock:
                now = live.state
                if now is None or not now.collection.holds(living, first):
                    return
                live.state = replace(now, collection=now.collection.rebased(living, segment, first))
                if live.seen is not None and live.seen[0] is now:
                    live.seen = live.state, live.seen[1]
        finally:
            live.merging = False
        self._merge_later(name, live)  # as many may have come meanwhile

    def _merge(self, name: str, live: _Live, state: IndexedSet) -> None:
        try:
            store = None if state.generation is None else self._kept_in
            if store is None:
                collection = self._builder.counted(state, state).merged()
                merged: IndexedSet | None = replace(state, founds=(), collection=collection)
            else:
                merged = self._merged(name, store, state)
            with live.lock:
                # A call that came in between found changes; it is not undone, and merging is tried again.
                if merged is not None and (store is not None or live.state is state):
                    live.state, live.seen = merged, None
        finally:
            live.merging = False

    def _merged(self, name: str, store: SegmentStore, known: IndexedSet | None = None) -> IndexedSet | None:
        """Make the base in the data folder again, unless another process does.

        :param known: the set as it is here, which counts where the one in the data folder cannot be read.
        """
        with store.alone() as alone:
            state = (self._opened(name, store) or known) if alone else None
            if state is None or state.generation is None:
                return None
            last = max((member.delta for member in state.members), default=0)
            members = _in_base(state.members, state.collection)
            collection = state.collection if known is None else self._builder.counted(state, known)
            _, written = _in_file(collection, store)
            if written is not None:
                store.publish(name, written, members, None if state is known else (state.generation, last))
        return self._opened(name, store)

    def _evict(self) -> None:
        with self._lock:
            for name in tuple(self._live)[:-1]:
                if sum(map(_private_bytes, self._live.values())) <= self._maxsize:
                    break
                if self._live[name].build is None:
                    del self._live[name]


def _private_bytes(live: _Live) -> int:
    return 0 if live.state is None else live.state.collection.nbytes


def _waste(state: IndexedSet) -> float:
    """Return the share of sections that are dead, or not in the base."""
    postings = state.collection.postings
    base = postings.parts[0]
    inside = base.segment.size if base.alive is None else int(base.alive.sum())
    return (postings.size - inside) / postings.size


def _in_file(
    collection: Collection, store: SegmentStore, written: Written | None = None
) -> tuple[Collection, Written | None]:
    """Return a collection as one segment in the data folder, or in memory where that cannot be.

    :param written: its only segment, if it is there already.
    """
    living = collection.living()
    if written is None:
        written = store.keep(partial(write_file, living))
    return (collection.merged() if written is None else collection.rebased(living, written.segment)), written


def _in_base(members: Sequence[Member], collection: Collection) -> tuple[Member, ...]:
    """Return members with their places in the one segment of a collection."""
    ordinals = collection.firsts.argsort().argsort().tolist()
    return tuple(m._replace(delta=0, ordinal=at) for m, at in zip(members, ordinals, strict=True))
