"""Many files are indexed by processes of their own.

A worker is an interpreter with nothing but the indexer. Processes of :mod:`multiprocessing` do not serve:
they import the first modules from the working directory, and the main module, which may be any script.
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

from npl_index.index.entries import Asked, Entry, Indexer
from npl_index.library.documents import Document, Found

logger = logging.getLogger(__name__)

WORKER = "from npl_index.index.building import work; work()"
"""Code that runs a worker."""

NICENESS = 5
"""A worker's niceness: the server, which answers calls meanwhile, goes first."""

AHEAD = 2
"""Batches for each worker that are ready or under way."""


class Reader(Protocol):
    """Reads documents that were found."""

    def read(self, found: Found) -> Document:
        """Read a whole document."""

    def sent(self, founds: Sequence[Found]) -> Reader:
        """Return what reads these documents in another process."""


def indexed(
    batches: list[list[Asked]], reader: Reader, indexer: Indexer, command: Sequence[str]
) -> Iterator[list[Entry]]:
    """Index batches in as many processes as there are cores; yield the entries of each when they are ready.

    The remaining batches stay in ``batches`` when a process fails.

    :param command: runs :data:`WORKER`.
    """
    workers: list[subprocess.Popen[bytes]] = []
    idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    running: dict[Future[list[Entry]], list[Asked]] = {}

    def entries_of(batch: list[Asked], reader: Reader) -> list[Entry]:
        worker = idle.get()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            _send(worker.stdin, (batch, reader, indexer))
            entries: list[Entry] = pickle.load(worker.stdout)
        finally:
            idle.put(worker)  # the next batch fails as well where this one did
        return entries

    count = os.cpu_count() or 1
    threads = ThreadPoolExecutor(count, "npl-worker")
    try:
        for _ in range(count):
            # In a session of its own it gets no interrupt of the terminal: its end is decided here.
            pipe = subprocess.PIPE
            workers.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True))
            idle.put(workers[-1])
        while batches or running:
            while batches and len(running) < AHEAD * count:
                batch = batches[-1]  # it stays there until a worker has it
                work = threads.submit(entries_of, batch, reader.sent([one.found for one in batch]))
                running[work] = batches.pop()
            for work in wait(running, return_when=FIRST_COMPLETED).done:
                entries = work.result()
                del running[work]
                yield entries
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        logger.debug("index: the processes end: %r", error)
        batches.extend(running.values())
    finally:
        for worker in workers:
            worker.kill()
        threads.shutdown(cancel_futures=True)
        for worker in workers:
            with suppress(OSError), worker:  # a part of a batch cannot be sent any more
                pass


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def work() -> None:
    """Index the batches of standard input, until it ends with the process that writes there."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    asked: SimpleQueue[Any] = SimpleQueue()

    def read() -> None:
        with suppress(EOFError, pickle.UnpicklingError):  # half of a batch, if that process was killed
            while True:
                asked.put(pickle.load(sys.stdin.buffer))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as target:
        os.dup2(2, 1)  # output of a library must not come between
        while True:
            batch, reader, indexer = asked.get()
            _send(target, [indexer.entry(one, reader.read)[0] for one in batch])
