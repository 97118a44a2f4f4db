"""Waiting for a set that is being indexed: how far it is, who wants to know, how long a caller waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from npl_mcp.core.progress import PROGRESS

STEP = 0.2
"""Seconds between two looks at how far it is."""


@dataclass
class Indexing:
    """A set that is being indexed in the background.

    :param total: its files that have to be looked at.
    :param done: how many of them are ready.
    :param ended: set when it is complete, or has failed.
    """

    total: int
    done: int = 0
    ended: Future[None] = field(default_factory=Future)


class NotIndexedYet(Exception):  # noqa: N818 - no failure: the call is made again when the set is ready
    """A call needs a set that is being indexed."""

    def __init__(self, indexing: Indexing) -> None:
        self.indexing = indexing
        super().__init__(f"{indexing.done} of {indexing.total} files are indexed")


class Patience:
    """How long one call waits for sets that are being indexed, all in all.

    :param seconds: ``None`` for as long as it takes.
    """

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def is_over(self, indexing: Indexing) -> bool:
        """Tell whether the call is to be answered from what is ready; something has to be."""
        return self._end is not None and indexing.done > 0 and time.monotonic() >= self._end

    def step(self) -> float:
        """Return how many seconds to wait before looking again."""
        if self._end is None:
            return STEP
        return min(STEP, max(0.01, self._end - time.monotonic()))

    def wait(self, indexing: Indexing) -> bool:
        """Wait here; return whether the set is complete.

        :raises Exception: why it could not be indexed.
        """
        tell = PROGRESS.get()
        while not indexing.ended.done():
            if self.is_over(indexing):
                return False
            if tell is not None:
                tell(indexing.done, indexing.total)
            wait([indexing.ended], self.step())
        indexing.ended.result()
        return True

    def wait_elsewhere(self, indexing: Indexing) -> bool:
        """Return ``False`` if the call has waited enough.

        :raises NotIndexedYet: it is to wait where that holds up nobody, and to be made again.
        """
        if not self.is_over(indexing):
            raise NotIndexedYet(indexing)
        return False


Wait = Callable[[Indexing], bool]

_WAIT: ContextVar[Wait | None] = ContextVar("wait", default=None)


@contextmanager
def waiting(wait: Wait) -> Iterator[None]:
    """Let calls in this context wait in some way."""
    token = _WAIT.set(wait)
    try:
        yield
    finally:
        _WAIT.reset(token)


def way_to_wait(seconds: float | None) -> Wait:
    """Return how the call that runs in this context waits; by default it does so where it is.

    :param seconds: its patience.
    """
    return _WAIT.get() or Patience(seconds).wait
