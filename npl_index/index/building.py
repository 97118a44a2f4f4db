"""Many files are indexed by processes of their own."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Protocol

from npl_index.index.entries import Asked, Entry, Indexer
from npl_index.library.documents import Document, Found

logger = logging.getLogger(__name__)

NICENESS = 5
"""A worker's niceness: the server, which answers calls meanwhile, goes first."""

AHEAD = 2
"""Batches for each worker that are ready or under way."""


class Reader(Protocol):
    """Reads documents that were found."""

    def read(self, found: Found) -> Document:
        """Read a whole document."""
        ...

    def sent(self, founds: Sequence[Found]) -> Reader:
        """Return what reads these documents in another process."""
        ...


def indexed(batches: list[list[Asked]], reader: Reader, indexer: Indexer) -> Iterator[list[Entry]]:
    """Index batches in as many processes as there are cores; yield what comes of each when it is ready.

    Those that are left when the processes end are left in ``batches``.
    """
    count = os.cpu_count() or 1
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
    running: dict[Future[list[Entry]], list[Asked]] = {}
    try:
        while batches or running:
            while batches and len(running) < AHEAD * count:
                batch = batches[-1]  # it stays there until the pool has it
                with _no_main_module():
                    work = pool.submit(_indexed, batch, reader.sent([one.found for one in batch]), indexer)
                running[work] = batches.pop()
            for work in wait(running, return_when=FIRST_COMPLETED).done:
                entries = work.result()
                del running[work]
                yield entries
    except (OSError, RuntimeError, AttributeError, TypeError) as error:  # a pool that breaks while it starts
        logger.debug("index: the processes end: %r", error)
        batches.extend(running.values())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _indexed(batch: list[Asked], reader: Reader, indexer: Indexer) -> list[Entry]:
    return [indexer.entry(asked, reader.read)[0] for asked in batch]


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Keep a process that starts meanwhile from importing the main module, which may be anybody's script."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin() -> None:
    """Prepare a worker: it ends with the process that started it, however that one ends."""
    import signal

    # A terminal sends its interrupt to this process as well; who started it decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(0)
