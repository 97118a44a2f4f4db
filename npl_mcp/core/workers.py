"""Processes that index batches of files for this one.

A worker is this interpreter with nothing but the indexer. It gets batches over its standard input and sends
segments back, and it ends when its input does: with the process that started it, however that one ends.
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
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import IO, Any

from npl_index.library.documents import Document, FileReader
from npl_index.ranking.indexing import IndexedDocument, index_document
from npl_index.ranking.merging import merge, survivors
from npl_index.ranking.packing import pieces, unpack
from npl_index.ranking.segments import Segment
from npl_mcp.core.batches import Batch, Piece, index_batch

logger = logging.getLogger(__name__)

_FAILURES = (OSError, EOFError, ValueError, pickle.UnpicklingError)

_Results = queue.SimpleQueue["tuple[int, Piece] | None"]


class Workers:
    """As many processes as there are cores; they start with the first batch.

    :param reader: reads the files.
    :param seconds: to read and index one file.
    """

    def __init__(self, reader: FileReader, seconds: float) -> None:
        self._setup = (reader, seconds)
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ended = False

    def index(self, every: Sequence[Batch]) -> Iterator[tuple[int, Piece]]:
        """Return what comes of batches, with their places, as they are ready.

        Those are missing that a worker ended over, or that no worker was left for.
        """
        todo = iter(enumerate(every))
        done: _Results = queue.SimpleQueue()
        feeding = [
            threading.Thread(target=self._feed, args=(todo, done), name="npl-feed", daemon=True)
            for _ in range(min(os.cpu_count() or 1, len(every)))
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
                process.kill()

    def merge(self, segments: Sequence[Segment]) -> Segment | None:
        """Return segments as one; ``None`` if the worker that was to merge them ended."""
        try:
            with self._started() as ask:
                data = ask(partial(_merged, [_packed(segment) for segment in segments]))
                return unpack(data)
        except _FAILURES as error:
            self._failed(error)
            return None

    def _feed(self, todo: Iterator[tuple[int, Batch]], done: _Results) -> None:
        """Let one process index batches until none is left, or it ends."""
        try:
            with self._started() as ask:
                while (one := self._next(todo)) is not None:
                    data, piece = ask(partial(_indexed, *self._setup, one[1]))
                    done.put((one[0], replace(piece, segment=unpack(data) if data else None)))
        except _FAILURES as error:
            self._failed(error)
        finally:
            done.put(None)

    def _failed(self, error: Exception) -> None:
        if not self._ended:
            logger.warning("index: a worker ended: %s", str(error) or type(error).__name__)

    def _next(self, todo: Iterator[tuple[int, Batch]]) -> tuple[int, Batch] | None:
        with self._lock:
            return None if self._ended else next(todo, None)

    @contextmanager
    def _started(self) -> Iterator[Callable[[Callable[[], Any]], Any]]:
        """Start a process; what it is asked to do is a function of this module with its arguments."""
        # The working directory, which Python would search first, is nobody's to import from.
        code = f"import sys; sys.path[:] = {sys.path!a}; from npl_mcp.core.workers import serve; serve()"
        with subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            source, target = process.stdout, process.stdin
            assert source is not None
            assert target is not None

            def ask(work: Callable[[], Any]) -> Any:
                _send(target, work)
                return pickle.load(source)

            with self._lock:
                self._processes.append(process)
                if self._ended:
                    process.kill()
            try:
                yield ask
            finally:
                process.kill()


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _packed(segment: Segment) -> bytes:
    return b"".join(pieces(segment))


def _indexed(reader: FileReader, seconds: float, batch: Batch) -> tuple[bytes, Piece]:
    def index(document: Document) -> IndexedDocument:
        return index_document(document, deadline=time.monotonic() + seconds)

    piece = index_batch(batch, reader.read, index)
    return b"" if piece.segment is None else _packed(piece.segment), replace(piece, segment=None)


def _merged(packed: Sequence[bytes]) -> bytes:
    return _packed(merge(survivors([(unpack(data), None) for data in packed])))


def serve() -> None:
    """Do what comes over standard input until it ends."""
    import signal

    # A terminal sends its interrupt to this process as well; who started it decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as target, suppress(EOFError, BrokenPipeError):
        os.dup2(2, 1)  # what a library prints must not come between
        while True:
            _send(target, pickle.load(source)())
