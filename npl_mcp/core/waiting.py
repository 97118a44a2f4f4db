"""Calls that wait: for a set that is being indexed, or for something new that others commit.

Such a call is a coroutine whose steps run in threads, each once; while it waits it holds none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import wraps
from types import coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from npl_index.errors import InvalidRequestError
from npl_mcp.core.progress import tell_progress
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.changes import Changes, Position, Topic

if TYPE_CHECKING:
    from concurrent.futures import Future

P = ParamSpec("P")
T = TypeVar("T")

STEP = 0.2
"""Seconds between two looks at the progress."""

MOST_SECONDS = 60
"""How long a call may wait for something new: many clients and proxies give up a little later."""


class Awaited:
    """What a call waits for: ``await`` goes on when it is there, or when the call has waited enough.

    ``ended`` is set when it is there, or has failed. A caller that goes cancels it, which concerns no other.
    ``until`` is the value of ``time.monotonic()`` at which a call has waited enough; ``None`` where the
    call's patience says it.
    """

    ended: Future[None]
    until: float | None = None

    @property
    def progress(self) -> tuple[int, int] | None:
        """How many of its parts are there, and of how many; ``None`` if it has none."""
        return None

    @property
    def dispensable(self) -> bool:
        """Whether the call can be answered without it by now."""
        return True

    def __await__(self) -> Generator[Awaited, None, bool]:
        """Return whether it is there.

        :raises Exception: why it cannot be.
        """
        try:
            yield self
            if not self.ended.done() or self.ended.cancelled():
                return False
            self.ended.result()
            return True
        finally:
            self.ended.cancel()


Waiting = Coroutine[Awaited, None, T]
"""A call that may wait: steps that each run in a thread, and what it awaits between them in none."""


def _future() -> Future[None]:
    from concurrent.futures import Future  # a tenth of what a command line imports, which rarely waits

    return Future()


class Long(Awaited):
    """No wait: the next step may take long, so it takes its turn among the long calls."""

    def __await__(self) -> Generator[Awaited, None, bool]:
        yield self
        return True


@dataclass
class Indexing(Awaited):
    """A set that is being indexed in the background.

    :param total: its files that have to be looked at.
    :param done: how many of them are ready.
    :param ended: set when it is complete, or has failed.
    :param began: when, in seconds of the monotonic clock.
    """

    total: int
    done: int = 0
    ended: Future[None] = field(default_factory=_future)
    began: float = field(default_factory=time.monotonic)

    @property
    def progress(self) -> tuple[int, int]:
        """How many of its files are ready, and of how many."""
        return self.done, self.total

    @property
    def dispensable(self) -> bool:
        """Whether something is ready from which the call can be answered."""
        return self.done > 0


class News(Awaited):
    """Something new that one call waits for.

    :param changes: tells of it.
    :param topic: what it is about.
    :param seen: where the topic was before the call looked.
    :param until: see :class:`Awaited`.
    """

    def __init__(self, changes: Changes, topic: Topic, seen: Position, until: float) -> None:
        self.ended, self.until = changes.expect(topic, seen), until


class NewsUser(Protocol):
    """Whoever reads what others commit."""

    @property
    def database(self) -> Database:
        """Where it is committed."""
        ...

    @property
    def news(self) -> Changes:
        """Tells of commits."""
        ...


class Patience:
    """How long one call waits for sets that are being indexed, all in all, from now on.

    :param seconds: ``None`` for as long as it takes.
    """

    def __init__(self, seconds: float | None) -> None:
        self._until = None if seconds is None else time.monotonic() + seconds

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

    def _left(self, awaited: Awaited) -> float | None:
        until = self._until if awaited.until is None else awaited.until
        return None if until is None else until - time.monotonic()


def step(call: Waiting[T]) -> Awaited | T:
    """Run the next step of a call; return what it waits for then, or its result."""
    try:
        return call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result


@coroutine
def hurried(call: Waiting[T], began: float, seconds: float = 1.0) -> Generator[Awaited, None, T]:
    """Let a call wait for sets only a while: it does without them if need be.

    :param began: when the call did, in seconds of the monotonic clock.
    :param seconds: how long it waits, from then or from the beginning of the index, the earlier of the two:
        later calls are answered at once with what is ready.
    """
    while isinstance(outcome := step(call), Awaited):
        if not isinstance(outcome, Indexing):
            yield outcome
            continue
        short = Awaited()
        short.ended, short.until = outcome.ended, min(began, outcome.began) + seconds
        yield short
    return outcome


def waited(call: Waiting[T], seconds: float | None = None) -> T:
    """Return the result of a call, for which this thread waits.

    :param seconds: its patience with sets.
    """
    from concurrent.futures import wait  # as above

    patience = Patience(seconds)
    while isinstance(outcome := step(call), Awaited):
        if isinstance(outcome, Long):
            continue
        ended = outcome.ended
        while not ended.done() and not patience.is_over(outcome):
            tell_progress(outcome.progress)
            wait([ended], patience.step(outcome))
    return outcome


def waits(body: Callable[P, Waiting[T]]) -> Callable[P, T]:
    """Make a tool of a coroutine function; its first argument says where its calls wait (``finished``)."""

    @wraps(body)
    def function(*given: P.args, **named: P.kwargs) -> T:
        app: Any = given[0]
        result: T = app.finished(body(*given, **named))
        return result

    return function


async def when_new(
    user: NewsUser,
    topic: Callable[[Transaction], Topic],
    seconds: float,
    read: Callable[[Transaction], T],
    empty: Callable[[T], bool],
    *,
    write: bool = False,
) -> T:
    """Return what a caller reads: at once if there is something new, else when there is, or after a time.

    :param topic: returns what changes when there is something new to read.
    :param seconds: how long to wait.
    :param read: asked again when the topic has changed, in a transaction of its own.
    :param empty: returns whether there was nothing new.
    :param write: reading changes something.
    :raises InvalidRequestError: no call may wait that long.
    """
    if not 0 <= seconds <= MOST_SECONDS:
        raise InvalidRequestError(
            f"wait is {seconds:g}", parameter="wait", hint=f"give seconds, from 0 to {MOST_SECONDS}"
        )
    begin = user.database.write if write else user.database.read
    if not seconds:
        with begin() as tx:
            return read(tx)
    with user.database.read() as tx:
        about = topic(tx)
    until = time.monotonic() + seconds
    while True:
        # Asked before reading: what comes in between wakes the call at once.
        seen = user.news.position(about)
        with begin() as tx:
            found = read(tx)
        if not empty(found) or not await News(user.news, about, seen, until):
            return found
