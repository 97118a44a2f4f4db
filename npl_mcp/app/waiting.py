"""Calls that wait: for a set that is being indexed, or for new entries that others commit.

Such a call is a coroutine. Its parts run in threads; while it waits it holds none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from npl_mcp.stores.base import checks

if TYPE_CHECKING:
    from concurrent.futures import Future

    from npl_mcp.stores.base.database import Database, Transaction
    from npl_mcp.stores.commits import CommitNotifier, Position, Topic

P = ParamSpec("P")
T = TypeVar("T")

HURRY = 0.3
"""Seconds that a page waits for documents that are being indexed; it shows the others."""

MAX_SECONDS = 60
"""Maximum seconds that a call waits for new entries: many clients and proxies time out a little later."""


class OwnThread:
    """Runs the parts of a call in the thread that makes it, for commands; a wait blocks that thread."""

    lane = "heavy"

    async def run(self, part: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Run a part of the call."""
        return part(*given, **named)

    async def wait(self, ended: Future[None], left: Callable[[], float]) -> bool:
        """Wait for an event; return whether it has occurred.

        :param ended: future that the event ends; it is cancelled if the wait is over before.
        :param left: function that returns the seconds until its next call; the wait is over if there are
            none.
        :raises Exception: the event has failed.
        """
        from concurrent.futures import wait  # a tenth of a command's import time, and commands rarely wait

        while not ended.done() and (seconds := left()) > 0:
            wait([ended], seconds)
        return not ended.cancel() and ended.done() and ended.result() is None


def result_of(call: Coroutine[Any, Any, T]) -> T:
    """Return the result of a call whose parts run in :class:`OwnThread`: it is never suspended."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise AssertionError("a call of the server waits on its event loop")


class StoreUser(Protocol):
    """The context of a call that needs no documents; see :class:`~npl_mcp.app.context.Context`.

    :param database: database of the stores.
    :param news: notifier of commits.
    :param threads: threads of its call.
    """

    database: Database
    news: CommitNotifier
    threads: OwnThread

    @property
    def project(self) -> str:
        """The real path of the project's folder."""
        ...


@dataclass(frozen=True, slots=True)
class Pending:
    """The result of a part that has found nothing new.

    :param topic: topic to wait for.
    :param seen: position of the topic before the reading.
    """

    topic: Topic
    seen: Position


async def when_new(
    user: StoreUser,
    topic: Callable[[Transaction], Topic],
    seconds: float,
    read: Callable[[Transaction], T],
    empty: Callable[[T], bool],
    *,
    write: bool = False,
) -> T:
    """Return new entries: at once if there are any, else when they arrive, or after a time limit.

    :param topic: function that returns the topic of the entries.
    :param seconds: time limit.
    :param read: function that reads the entries; called in a new transaction after each change of the topic.
    :param empty: function that returns whether there are no new entries.
    :param write: whether reading changes the database.
    :raises InvalidRequestError: the time limit is out of range.
    """
    if not 0 <= seconds <= MAX_SECONDS:
        raise checks.invalid("wait", f"is {seconds:g}", f"give seconds, from 0 to {MAX_SECONDS}")
    until = time.monotonic() + seconds

    def look(known: Topic | None, last: bool) -> Pending | T:
        """Return the entries, or without entries the news to wait for."""
        seen: Position = None
        if not last:
            known = known or user.database.reading(topic)
            # The position is taken before reading: an entry that arrives in between wakes the call at once.
            seen = user.news.position(known)
        with user.database.write() if write else user.database.read() as tx:
            entries = read(tx)
        return entries if last or known is None or not empty(entries) else Pending(known, seen)

    found = await user.threads.run(look, None, not seconds)
    while isinstance(found, Pending):
        ended = user.news.expect(found.topic, found.seen)
        woken = await user.threads.wait(ended, lambda: until - time.monotonic())
        found = await user.threads.run(look, found.topic, not woken)
    return found
