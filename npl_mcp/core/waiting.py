"""Calls that wait: for a set that is being indexed, or for something new that somebody commits.

Such a call holds no thread. It leaves by an exception, waits where that holds up nobody, and is made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from npl_index.errors import InvalidRequestError
from npl_mcp.core.progress import tell_progress
from npl_mcp.stores.changes import Changes, Position, Topic

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

STEP = 0.2
"""Seconds between two looks at how far it is."""

MOST_SECONDS = 60
"""How long a call may wait for something new: many clients and proxies give up a little later."""


class Awaited(Protocol):
    """What a call waits for."""

    @property
    def ended(self) -> Future[None]:
        """Set when it is there, or has failed. A caller that goes cancels it, which concerns no other."""
        ...

    @property
    def progress(self) -> tuple[int, int] | None:
        """How many of its parts are there, and of how many; ``None`` if it has none."""
        ...

    @property
    def dispensable(self) -> bool:
        """Whether the call can be answered without it by now."""
        ...

    def patience(self, default: float | None) -> float | None:
        """Return how many seconds a call waits for it; ``None`` for as long as it takes.

        :param default: what the settings say.
        """
        ...


def _future() -> Future[None]:
    from concurrent.futures import Future  # a tenth of what a command line imports, which rarely waits

    return Future()


@dataclass
class Indexing:
    """A set that is being indexed in the background.

    :param total: its files that have to be looked at.
    :param done: how many of them are ready.
    :param ended: set when it is complete, or has failed.
    """

    total: int
    done: int = 0
    ended: Future[None] = field(default_factory=_future)

    @property
    def progress(self) -> tuple[int, int]:
        """How many of its files are ready, and of how many."""
        return self.done, self.total

    @property
    def dispensable(self) -> bool:
        """Whether something is ready from which the call can be answered."""
        return self.done > 0

    def patience(self, default: float | None) -> float | None:
        """Return what the settings say."""
        return default


class News:
    """Something new that one call waits for.

    :param changes: tells of it.
    :param topic: what it is about.
    :param seen: where the topic was before the call looked.
    :param seconds: how long the call may take in all.
    """

    progress = None
    dispensable = True

    def __init__(self, changes: Changes, topic: Topic, seen: Position, seconds: float) -> None:
        self._changes, self._topic, self._seen = changes, topic, seen
        self._seconds = seconds

    @cached_property
    def ended(self) -> Future[None]:
        """Set when the topic is elsewhere; from the first look on somebody waits for that."""
        return self._changes.expect(self._topic, self._seen)

    def patience(self, default: float | None) -> float:  # noqa: ARG002 - the call itself says it
        """Return what the call asked for."""
        return self._seconds


class NotYet(Exception):  # noqa: N818 - no failure: the call is made again
    """A call needs what is not there yet."""

    def __init__(self, awaited: Awaited) -> None:
        self.awaited = awaited
        super().__init__(f"{awaited.progress}")


class Patience:
    """How long one call waits, all in all, from now on.

    :param seconds: for sets that are being indexed; ``None`` for as long as it takes.
    """

    def __init__(self, seconds: float | None) -> None:
        self._began = time.monotonic()
        self._seconds = seconds

    def is_over(self, awaited: Awaited) -> bool:
        """Tell whether the call is to be answered with what there is."""
        left = self._left(awaited)
        return left is not None and left <= 0 and awaited.dispensable

    def step(self, awaited: Awaited) -> float | None:
        """Return how many seconds to wait before looking again; ``None`` if there is nothing to look at."""
        left = self._left(awaited)
        if awaited.progress is None:
            return left
        return STEP if left is None else min(STEP, max(0.01, left))

    def wait(self, awaited: Awaited) -> bool:
        """Wait here; return whether it is there.

        :raises Exception: why it cannot be.
        """
        from concurrent.futures import wait  # as above

        ended = awaited.ended
        try:
            while not ended.done():
                if self.is_over(awaited):
                    return False
                tell_progress(awaited.progress)
                wait([ended], self.step(awaited))
            ended.result()
            return True
        finally:
            ended.cancel()

    def wait_elsewhere(self, awaited: Awaited) -> bool:
        """Return ``False`` if the call has waited enough.

        :raises NotYet: it is to wait where that holds up nobody, and to be made again.
        """
        if not self.is_over(awaited):
            raise NotYet(awaited)
        return False

    def _left(self, awaited: Awaited) -> float | None:
        most = awaited.patience(self._seconds)
        return None if most is None else self._began + most - time.monotonic()


Wait = Callable[[Awaited], bool]

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

    :param seconds: its patience with sets.
    """
    return _WAIT.get() or Patience(seconds).wait


def when_new(
    changes: Changes,
    topic: Callable[[], Topic],
    seconds: float,
    read: Callable[[], T],
    empty: Callable[[T], bool],
) -> T:
    """Return what a caller reads: at once if there is something new, else when there is, or after a time.

    :param topic: returns what changes when there is something new to read.
    :param seconds: how long to wait.
    :param read: asked again when the topic has changed.
    :param empty: returns whether there was nothing new.
    :raises InvalidRequestError: nobody may wait that long.
    """
    if not 0 <= seconds <= MOST_SECONDS:
        raise InvalidRequestError(
            f"wait is {seconds:g}", parameter="wait", hint=f"give seconds, from 0 to {MOST_SECONDS}"
        )
    if not seconds:
        return read()
    wait, about = way_to_wait(None), topic()
    while True:
        # Asked before reading: what comes in between wakes the call at once.
        seen = changes.position(about)
        found = read()
        if not empty(found) or not wait(News(changes, about, seen, seconds)):
            return found
