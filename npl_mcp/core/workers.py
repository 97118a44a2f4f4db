"""Processes that index batches of files for this one.

A worker is this interpreter with nothing but the indexer. It gets batches over its standard input and writes
segments to files that it shares with this process, and it ends when its input does: with the process that
started it, however that one ends.
Unlike the processes of :mod:`multiprocessing` it imports no main module, which may be anybody's script
without a guard, and no helper stays behind.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from npl_index.errors import NPLError
from npl_index.ranking.merging import survivors
from npl_index.ranking.packing import write, write_living
from npl_mcp.config.programs import python
from npl_mcp.core.batches import Batch, Indexer, Piece, Reader, index_batch
from npl_mcp.core.scratch import Place, Scratch, write_file

logger = logging.getLogger(__name__)

NICENESS = 5
"""A worker's niceness: the server, which answers calls meanwhile, goes first."""

_FAILURES = (OSError, EOFError, ValueError, pickle.UnpicklingError, NPLError)


class Index(NamedTuple):
    """A batch that is to be indexed.

    :param number: its place among all.
    """

    number: int
    batch: Batch


class Join(NamedTuple):
    """Segments that are to become one.

    :param file: that it is written to; ``None`` for one without a name.
    """

    places: Sequence[Place]
    file: Path | None = None


Task = Index | Join
_Results = queue.SimpleQueue["tuple[Task, Piece] | None"]


class Workers:
    """As many processes as there are cores; they start with the first batch.

    :param reader: reads the files.
    :param indexer: says how they are indexed.
    :param scratch: where they write, with one more file than there are processes: the first is for this one.
    """

    def __init__(self, reader: Reader, indexer: Indexer, scratch: Scratch) -> None:
        self._reader, self._indexer = reader, indexer
        self._scratch = scratch
        self._lock = threading.Lock()
        self._processes: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._free = list(range(1, len(scratch.handles)))
        self._ended = False

    def run(self, todo: Iterator[Task]) -> Iterator[tuple[Task, Piece]]:
        """Return what comes of tasks as they are ready; each is taken when a process is free for it.

        Those are missing that a worker ended over, or that no worker was left for.
        """
        done: _Results = queue.SimpleQueue()
        feeding = [
            threading.Thread(target=self._feed, args=(todo, done), name="npl-feed", daemon=True)
            for _ in self._scratch.handles[1:]
        ]
        for thread in feeding:
            thread.start()
        left = len(feeding)
        try:
            while left:
                result = done.get()
                if result is None:
                    left -= 1
                else:
                    yield result
        except GeneratorExit:  # nobody wants the rest
            self.close()
            raise
        finally:
            for thread in feeding:
                thread.join()

    def close(self) -> None:
        """End the processes, whatever they do."""
        with self._lock:
            self._ended = True
            for process in self._processes:
                process.end()

    def join(self, task: Join) -> Piece | None:
        """Return what comes of one task; ``None`` if the worker ended over it."""
        try:
            with self._worker() as worker:
                self._end_idle()
                return worker.ask(self._work(task))
        except _FAILURES as error:
            self._failed(error)
            return None

    def _end_idle(self) -> None:
        """End processes that nobody needs, which gives their memory back."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                worker.end()
                self._free.append(worker.number)

    def _feed(self, todo: Iterator[Task], done: _Results) -> None:
        """Let one process work until there is nothing left to do, or it ends."""
        try:
            while (task := self._next(todo)) is not None:
                with self._worker() as worker:
                    done.put((task, worker.ask(self._work(task))))
        except _FAILURES as error:
            self._failed(error)
        finally:
            done.put(None)

    def _work(self, task: Task) -> partial[Piece]:
        if isinstance(task, Join):
            return partial(_joined, task)
        reader = self._reader.sent([one.found for one in task.batch])
        return partial(_indexed, reader, self._indexer, task.batch)

    def _failed(self, error: Exception) -> None:
        if not self._ended:
            logger.warning("index: a worker ended: %s", str(error) or type(error).__name__)

    def _next(self, todo: Iterator[Task]) -> Task | None:
        with self._lock:
            return None if self._ended else next(todo, None)

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        """Return a process that has nothing to do; one that fails is ended."""
        with self._lock:
            worker = self._idle.pop() if self._idle else None
            if worker is None:
                worker = _Worker(self._free[-1], self._scratch.handles)
                self._free.pop()
                self._processes.append(worker)
            if self._ended:
                worker.end()
        try:
            yield worker
        except BaseException:  # whatever it is, the process may be in the middle of an answer
            worker.end()
            self._free.append(worker.number)
            raise
        with self._lock:
            self._idle.append(worker)


class _Worker:
    """A process.

    :param number: of the file that it writes to.
    """

    def __init__(self, number: int, handles: Sequence[int]) -> None:
        self.number = number
        self._process = subprocess.Popen(
            python(f"from npl_mcp.core.workers import serve; serve({number}, {list(handles)})"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=handles,
        )

    def ask(self, work: partial[Piece]) -> Piece:
        """Return what a function of this module returns there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        _send(self._process.stdin, work)
        piece: Piece = pickle.load(self._process.stdout)
        return piece

    def end(self) -> None:
        """End it, whatever it does."""
        with suppress(OSError), self._process:  # what it was not sent cannot be sent any more
            self._process.kill()


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _indexed(reader: Reader, indexer: Indexer, batch: Batch, number: int, scratch: Scratch) -> Piece:
    return kept(index_batch(batch, reader.read, indexer), number, scratch)


def kept(piece: Piece, number: int, scratch: Scratch) -> Piece:
    """Put the segment of a piece into a file."""
    segment = piece.segment
    if segment is None or isinstance(segment, Place):
        return piece
    return replace(piece, segment=scratch.write(number, partial(write, segment)))


def _joined(task: Join, number: int, scratch: Scratch) -> Piece:
    living = survivors([(scratch.segment(place), None) for place in task.places])
    if task.file is None:
        return Piece(scratch.write(number, partial(write_living, living)))
    write_file(living, task.file)
    return Piece(None)


def serve(number: int, handles: Sequence[int]) -> None:
    """Do what comes over standard input until it ends.

    :param number: which of some shared files this process writes to.
    """
    import signal

    # A terminal sends its interrupt to this process as well; who started it decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    source, scratch = sys.stdin.buffer, Scratch(handles)
    with os.fdopen(os.dup(1), "wb") as target, suppress(EOFError, BrokenPipeError):
        os.dup2(2, 1)  # what a library prints must not come between
        while True:
            work = pickle.load(source)
            _send(target, work(number, scratch))
