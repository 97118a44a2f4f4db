"""Waiting calls: for a set that is being indexed, or for new entries that others commit.

Such a call is a coroutine whose steps run in threads, each once; while it waits it holds no thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import wraps
from types import coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from npl_index.errors import InvalidRequestError
from npl_mcp.app.progress import report_progress
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.commits import CommitNotifier, Topic

if TYPE_CHECKING:
    from concurrent.futures import Future

P = ParamSpec("P")
T = TypeVar("T")

HURRY = 0.3
"""Time that a page waits for documents that are being indexed; it shows the others."""

REPORT_SECONDS = 0.2
"""Time between two progress reports."""

MAX_SECONDS = 60
"""Time that a call may wait for new entries: many clients and proxies time out a little later."""


def _future() -> Future[None]:
    from concurrent.futures import Future  # a tenth of a command's import time, and commands rarely wait

    return Future()


@dataclass(eq=False)
class Awaited:
    """An event that a call waits for: ``await`` returns when it occurs, or when the call's wait is over.

    :param ended: set on success or failure; a disconnecting caller cancels only its own wait.
    :param until: value of ``time.monotonic()`` at which the wait is over; ``None`` leaves that to the call's
        patience.
    :param total: number of files of a set that is being indexed; 0 for another event.
    :param done: number of the indexed ones.
    :param began: start, in seconds of the monotonic clock.
    """

    ended: Future[None] = field(default_factory=_future)
    until: float | None = None
    total: int = 0
    done: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def progress(self) -> tuple[int, int] | None:
        """Number of indexed files and their total; ``None`` for another event."""
        return (self.done, self.total) if self.total else None

    @property
    def dispensable(self) -> bool:
        """Whether the call can be answered without it at this point, perhaps from the indexed files."""
        return not self.total or self.done > 0

    def __await__(self) -> Generator[Awaited, None, bool]:
        """Return whether it has occurred.

        :raises Exception: the reason why it failed.
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
"""A waiting call: each step runs in a thread; the waits between steps occupy none."""


class LongLane(Awaited):
    """Moves the call to the lane of long calls before its next step; it waits for no event."""

    def __init__(self) -> None:
        """Make no future, which nothing would set."""

    def __await__(self) -> Generator[Awaited, None, bool]:
        yield self
        return True


class NewsUser(Protocol):
    """A reader of other callers' commits.

    :param database: database with the commits.
    :param news: notifier of commits.
    """

    database: Database
    news: CommitNotifier


class Patience:
    """The total time that one call waits for sets that are being indexed, from now on.

    :param seconds: limit of the time; ``None`` for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._until = None if seconds is None else time.monotonic() + seconds

    def is_over(self, awaited: Awaited) -> bool:
        """Return whether the call should be answered with the part that is ready."""
        left = self._left(awaited)
        return left is not None and left <= 0 and awaited.dispensable

    def step(self, awaited: Awaited) -> float | None:
        """Return the seconds until the next progress report; ``None`` if there is no progress to report."""
        left = self._left(awaited)
        if awaited.progress is None:
            return left
        return REPORT_SECONDS if left is None else min(REPORT_SECONDS, max(0.01, left))

    def _left(self, awaited: Awaited) -> float | None:
        until = self._until if awaited.until is None else awaited.until
        return None if until is None else until - time.monotonic()


def step(call: Waiting[T]) -> Awaited | T:
    """Run the next step of a call; return the next event to wait for, or its result."""
    try:
        return call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result


@coroutine
def limit_wait(
    call: Waiting[T], seconds: float = HURRY, began: float | None = None
) -> Generator[Awaited, None, T]:
    """Limit the wait of a call for sets; after that it does without them.

    :param seconds: maximum wait, from the start of the call or of the index, the earlier of the two: later
        calls are answered at once with the part that is ready.
    :param began: start of the call, in seconds of the monotonic clock; by default now.
    """
    began = time.monotonic() if began is None else began
    while isinstance(outcome := step(call), Awaited):
        if not outcome.total:
            yield outcome
            continue
        yield Awaited(outcome.ended, min(began, outcome.began) + seconds)
    return outcome


def waited(call: Waiting[T], seconds: float | None = None) -> T:
    """Wait for a call in this thread, and return its result.

    :param seconds: time limit for sets that are being indexed.
    """
    from concurrent.futures import wait  # as above

    patience = Patience(seconds)
    while isinstance(outcome := step(call), Awaited):
        if isinstance(outcome, LongLane):
            continue
        ended = outcome.ended
        while not ended.done() and not patience.is_over(outcome):
            report_progress(outcome.progress)
            wait([ended], patience.step(outcome))
    return outcome


def waits(body: Callable[P, Waiting[T]]) -> Callable[P, T]:
    """Turn a coroutine function into a tool; ``result_or_call`` of its first argument waits for its calls."""

    @wraps(body)
    def function(*given: P.args, **named: P.kwargs) -> T:
        app: Any = given[0]
        result: T = app.result_or_call(body(*given, **named))
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
    before: Callable[[], None] = lambda: None,
    due: Callable[[Transaction], float | None] = lambda _: None,
) -> T:
    """Return new entries: at once if there are any, else when they arrive, or after a time limit.

    :param topic: function that returns the topic of the entries.
    :param seconds: time limit.
    :param read: function that reads the entries; called in a new transaction after each change of the topic.
    :param empty: function that returns whether there are no new entries.
    :param write: whether reading changes the database.
    :param before: function that is called before each reading.
    :param due: function that returns the seconds until the next reading without a commit.
    :raises InvalidRequestError: the time limit is out of range.
    """
    if not 0 <= seconds <= MAX_SECONDS:
        raise InvalidRequestError(
            f"wait is {seconds:g}", parameter="wait", hint=f"give seconds, from 0 to {MAX_SECONDS}"
        )
    begin = user.database.write if write else user.database.read
    before()
    if not seconds:
        with begin() as tx:
            return read(tx)
    with user.database.read() as tx:
        subject = topic(tx)
    until = time.monotonic() + seconds
    while True:
        # The position is taken before reading: an entry that arrives in between wakes the call at once.
        seen = user.news.position(subject)
        with begin() as tx:
            entries = read(tx)
            left = due(tx) if empty(entries) else None
        wake = until if left is None else min(until, time.monotonic() + left)
        if not empty(entries) or not (await Awaited(user.news.expect(subject, seen), wake) or wake < until):
            return entries
        before()
