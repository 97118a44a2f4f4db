"""Indexing of many files by worker processes.

A worker is an interpreter with nothing but the indexer. Processes of :mod:`multiprocessing` would import
modules from the working directory, and the main module, which may be any script.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, Protocol

from npl_index.index.entries import FileTask, IndexEntry, Indexer
from npl_index.library.documents import Document, Found

logger = logging.getLogger(__name__)

WORKER = "from npl_index.index.building import work; work()"
"""Code of a worker."""

NICENESS = 5
"""Niceness of a worker: the server, which answers calls meanwhile, has priority."""

MAX_AHEAD = 2
"""Maximum batches per worker that wait or run."""


class Reader(Protocol):
    """A reader of found documents."""

    def read(self, found: Found) -> Document:
        """Read a whole document."""

    def sent(self, founds: Sequence[Found]) -> Reader:
        """Return a reader of these documents for another process."""


def indexed(
    batches: list[list[FileTask]], reader: Reader, indexer: Indexer, command: Sequence[str]
) -> Iterator[list[IndexEntry]]:
    """Index batches in one process per core; yield the entries of each batch when they are ready.

    If a process fails, the remaining batches stay in ``batches``.

    :param command: command that runs :data:`WORKER`.
    """
    workers: list[subprocess.Popen[bytes]] = []
    idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    running: dict[Future[list[IndexEntry]], list[FileTask]] = {}

    def entries_of(batch: list[FileTask], reader: Reader) -> list[IndexEntry]:
        worker = idle.get()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            _send(worker.stdin, (batch, reader, indexer))
            entries: list[IndexEntry] = pickle.load(worker.stdout)
        finally:
            idle.put(worker)  # after a failure, the next batch fails as well
        return entries

    count = os.cpu_count() or 1
    threads = ThreadPoolExecutor(count, "npl-worker")
    try:
        for _ in range(count):
            # In a separate session, a worker gets no interrupts from the terminal.
            pipe = subprocess.PIPE
            workers.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True))
            idle.put(workers[-1])
        while batches or running:
            while batches and len(running) < MAX_AHEAD * count:
                batch = batches[-1]  # removed once a worker has it
                work = threads.submit(entries_of, batch, reader.sent([one.found for one in batch]))
                running[work] = batches.pop()
            for work in wait(running, return_when=FIRST_COMPLETED).done:
                entries = work.result()
                del running[work]
                yield entries
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        logger.debug("index: stopping the worker processes: %r", error)
        batches.extend(running.values())
    finally:
        for worker in workers:
            worker.kill()
        threads.shutdown(cancel_futures=True)
        for worker in workers:
            with suppress(OSError), worker:  # a part of a batch is unsent
                pass


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def work() -> None:
    """Index the batches from standard input until it closes."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    asked: SimpleQueue[Any] = SimpleQueue()

    def read() -> None:
        with suppress(EOFError, pickle.UnpicklingError):  # half of a batch, after a kill
            while True:
                asked.put(pickle.load(sys.stdin.buffer))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as target:
        os.dup2(2, 1)  # no output of a library may interfere
        while True:
            batch, reader, indexer = asked.get()
            _send(target, [indexer.entry(one, reader.read)[0] for one in batch])
