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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, TypeVar

from npl_index.errors import NPLError
from npl_index.index.entries import IndexEntry
from npl_index.library.documents import Read

logger = logging.getLogger(__name__)

T = TypeVar("T")

WORKER = "from npl_index.index.building import work; work()"
"""Code of a worker."""

NICENESS = 5
"""Niceness of a worker: the server, which answers calls meanwhile, has priority."""

MAX_WORKERS = 4
"""Maximum workers: each takes 60 MB, and the writing of their results limits the speed of more."""

MAX_AHEAD = 2
"""Maximum batches per worker that run or wait for being written."""


def worked(
    batches: list[list[IndexEntry]],
    read: Read,
    work: Callable[[IndexEntry, Read], T],
    command: Sequence[str],
    most: int = MAX_WORKERS,
) -> Iterator[list[T]]:
    """Work on batches, taken from the end, in several processes; yield each result when it is ready.

    The batches of a process that fails stay in ``batches``.

    :param work: method of an indexer.
    :param command: command that runs :data:`WORKER`.
    :param most: maximum processes.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(most, cores, len(batches))
    results: SimpleQueue[list[T] | NPLError | None] = SimpleQueue()
    room, closed = threading.Semaphore(MAX_AHEAD * count), threading.Event()

    def serve() -> None:
        batch: list[IndexEntry] = []
        failure: NPLError | None = None
        pipe = subprocess.PIPE
        try:
            # In a separate session, a worker gets no interrupts from the terminal. It ends with its input.
            with subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as worker:
                assert worker.stdin is not None
                assert worker.stdout is not None
                while room.acquire() and not closed.is_set():
                    batch = batches.pop()
                    _send(worker.stdin, (batch, read, work))
                    results.put(pickle.load(worker.stdout))
        except IndexError:
            pass  # all are taken
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            logger.debug("index: a worker process failed: %r", error)
            batches.append(batch)
        except NPLError as error:
            failure = error
        finally:
            results.put(failure)

    for _ in range(count):
        threading.Thread(target=serve, name="npl-worker", daemon=True).start()
    try:
        while count:
            result = results.get()
            if isinstance(result, list):
                yield result
            elif result is not None:
                raise result
            else:
                count -= 1
            room.release()
    finally:
        closed.set()
        room.release(MAX_WORKERS)


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def work() -> None:
    """Work on the batches from standard input until it closes."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    asked: SimpleQueue[Any] = SimpleQueue()

    def read() -> None:
        with suppress(EOFError, pickle.UnpicklingError):  # half of a batch, after a kill
            while True:
                asked.put(pickle.load(sys.stdin.buffer))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as target:
        os.dup2(2, 1)  # no output of a library may interfere
        while True:
            batch, read_file, do = asked.get()
            _send(target, [do(entry, read_file) for entry in batch])
    os._exit(0)  # the thread that reads cannot be ended
