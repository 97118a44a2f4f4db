"""Reads and indexes what an update asks for, in this process or with the help of others."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from npl_index.errors import NPLError
from npl_index.library.documents import Document, Found
from npl_index.ranking.indexing import Collection, ParsedDocument
from npl_mcp.core.batches import Indexer, Member, Piece, Reader, batches, index_batch
from npl_mcp.core.scratch import Scratch
from npl_mcp.core.segment_store import SegmentStore, Written
from npl_mcp.core.updating import IndexedSet, Update
from npl_mcp.core.waiting import Indexing
from npl_mcp.core.workers import Index, Workers

logger = logging.getLogger(__name__)

SMALL = 64
"""Documents below which a set is not kept in the data folder: a quarter of a second indexes them again."""

APART = 2 << 20
"""Bytes of files from which on they are indexed in the background and by several processes, each of which
takes half a second to start."""

LOG_SECONDS = 2.0
"""Seconds between two lines in the log that say how far an index is."""

Read = Callable[[Found], Document]


class Builder:
    """Indexes files; safe for several threads.

    :param indexer: says how.
    :param keep: is given the documents of a small set, or of a small change: their texts are needed soon.

    ``built`` counts the documents that were indexed.
    """

    def __init__(
        self,
        indexer: Indexer,
        keep: Callable[[Member, ParsedDocument], None],
    ) -> None:
        self._indexer, self._keep = indexer, keep
        self._workers: set[Workers] = set()
        self._closed = False
        self.built = 0

    def close(self) -> None:
        """End the workers."""
        self._closed = True
        for workers in tuple(self._workers):
            workers.close()

    def go_on(self) -> None:
        """Raise an error if the server ends."""
        if self._closed:
            raise NPLError("the server ends")

    @contextmanager
    def helped(
        self, update: Update, apart: Reader | None, store: SegmentStore | None
    ) -> Iterator[Workers | None]:
        """Start what is needed to index much; ``None`` where it is indexed in this process alone.

        :param store: where the set will be kept.
        """
        workers = None
        if update.size >= APART:
            with suppress(OSError):  # without room for it, all is in memory
                folder = store.folder if store is not None and store.prepare() else None
                # Other systems hand no open files on to processes.
                most = 0 if apart is None or os.name != "posix" else os.cpu_count() or 1
                update.scratch = Scratch.made(folder, 1 + most)
                if apart is not None and most:
                    workers = Workers(apart, self._indexer, update.scratch)
        if workers is None:
            yield None
            return
        self._workers.add(workers)
        try:
            yield workers
        finally:
            workers.close()
            self._workers.discard(workers)

    def read(
        self,
        update: Update,
        read: Read,
        apart: Reader | None,
        workers: Workers | None,
        indexing: Indexing,
    ) -> None:
        """Read what may have changed, and index it.

        :param apart: reads the same as ``read``, the files of a batch at once; ``None`` where that cannot be.
        """
        asked = update.asked()
        every = list(batches(asked))
        left = dict(enumerate(every))
        # Of a large set an answer needs few documents, but probably those that somebody has just written.
        keep = len(asked) < SMALL
        logged = time.monotonic()

        def put(number: int, piece: Piece) -> None:
            nonlocal logged
            update.put(piece)
            self.built += len(piece.members)
            for member, document in zip(piece.members, piece.documents, strict=False):
                self._keep(member, document)
            indexing.done += len(left.pop(number))
            if time.monotonic() - logged > LOG_SECONDS:
                logged = time.monotonic()
                logger.info("index: %d of %d files are indexed", indexing.done, indexing.total)

        if workers is not None:
            for task, piece in workers.run(update.tasks(every)):
                if isinstance(task, Index):
                    put(task.number, piece)
                else:
                    update.joined(task, piece.segment)
        for number, batch in tuple(left.items()):
            self.go_on()
            reads = read if apart is None else apart.sent([one.found for one in batch]).read
            # A set is counted as a whole. Of what changes in it, a call that waits needs little.
            counted = update.state is None
            put(number, index_batch(batch, reads, self._indexer, keep=keep, counted=counted))

    def counted(self, state: IndexedSet, known: IndexedSet) -> Collection:
        """Return the segments of a set with the token counts that calls did not wait for.

        :param known: the same set with its documents; some may be others by now.
        """
        there = zip(known.members, known.founds, strict=False)  # nobody may have looked for them yet
        places = {(one.fingerprint.path, one.digest): at for at, (one, _) in enumerate(there)}
        found = {}
        for number in state.collection.uncounted():
            one = state.members[number]
            place = places.get((one.fingerprint.path, one.digest))
            with suppress(NPLError):  # what cannot be read is counted when an answer needs it
                if place is not None:
                    self.go_on()
                    found[number] = self._indexer.tokens(known.collection.documents[place])
        return state.collection.with_tokens(found)

    def join(self, update: Update, workers: Workers | None, store: SegmentStore | None) -> Written | None:
        """Let a worker make what was indexed one segment: in the data folder if that is all of the set."""
        rest = None if workers is None else update.rest
        if workers is None or rest is None:
            return None
        written = None
        if store is not None and update.state is None:
            written = store.keep(lambda path: workers.join(rest._replace(file=path)))
            piece = None if written is None else Piece(written.segment)
        else:
            piece = workers.join(rest)
        if piece is not None:
            update.joined(rest, piece.segment)
        return written
