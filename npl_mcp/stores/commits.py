"""Notification of waiting calls about commits of this process and others.

A topic is a room, a mailbox or a worklog. Its position changes with every new entry. A caller with a known
position wakes up at any other position. One thread polls, and only while calls wait: when the engine reports
a commit, one query reads the positions of all topics.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.engine import watch_commits
from npl_mcp.stores.base.errors import DatabaseError

if TYPE_CHECKING:
    from concurrent.futures import Future

PAUSE = 0.02
"""Seconds between two polls: two thirds of the time limit for waking a reader. The rest is for its answer."""

_IDLE = 10.0
_AFTER_A_FAILURE = 0.5

_AT_THE_END = 1.0
"""Maximum wait for the thread at shutdown, in seconds; an unresponsive server may block the thread."""

Key = int | str
Position = int | str | None


@dataclass(frozen=True, slots=True)
class Topic:
    """A source of new entries that calls can wait for.

    :param positions: the SQL query for ``key`` and ``position`` of each of ``:keys``.
    :param key: the identity among topics of the same kind.
    """

    positions: str
    key: Key


class CommitNotifier:
    """Notifies callers when the position of a topic differs from their known one.

    :param database: the database to watch for commits.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._waiting: dict[Future[None], tuple[Topic, Position]] = {}
        self._unseen = False
        self._thread: threading.Thread | None = None
        self._closed = False

    def position(self, topic: Topic) -> Position:
        """Return the current position of a topic; ``None`` if it has no entries."""
        return self._database.reading(_positions, [topic]).get(topic)

    def expect(self, topic: Topic, seen: Position) -> Future[None]:
        """Return a future that is set when the position of a topic differs from a known one; cancel it to
        stop waiting.
        """
        from concurrent.futures import Future  # a tenth of a command's import time, and commands rarely wait

        future: Future[None] = Future()
        with self._changed:
            if self._closed:
                future.set_result(None)
                return future
            self._waiting[future] = (topic, seen)
            self._unseen = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="npl-changes", daemon=True)
                self._thread.start()
            self._changed.notify()
        future.add_done_callback(self._forget)
        return future

    @property
    def waiting(self) -> int:
        """Number of waiting calls."""
        return len(self._waiting)

    def close(self) -> None:
        """Wake all waiting calls and stop polling."""
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(_AT_THE_END)
        self._wake(list(self._waiting))

    def _run(self) -> None:
        news = watch_commits(self._database.engine)
        while self._is_wanted():
            time.sleep(PAUSE)
            try:
                if next(news) or self._unseen:
                    self._look()
            except DatabaseError:
                news.close()
                news = watch_commits(self._database.engine)
                # The woken callers get the error when they retry. The pause limits the rate of retries.
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, _AFTER_A_FAILURE)
                self._wake(list(self._waiting))
        news.close()

    def _is_wanted(self) -> bool:
        """Wait for a waiting call; return whether the thread should continue."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, _IDLE)
            if self._waiting and not self._closed:
                return True
            self._thread = None
            return False

    def _look(self) -> None:
        """Wake the calls whose topics have new positions."""
        with self._changed:
            self._unseen = False
            waiting = dict(self._waiting)
        positions = self._database.reading(_positions, {topic for topic, _ in waiting.values()})
        self._wake([future for future, (topic, seen) in waiting.items() if positions.get(topic) != seen])

    def _wake(self, futures: Iterable[Future[None]]) -> None:
        for future in futures:
            if not future.done() and future.set_running_or_notify_cancel():
                future.set_result(None)

    def _forget(self, future: Future[None]) -> None:
        with self._changed:
            self._waiting.pop(future, None)


def _positions(tx: Transaction, topics: Iterable[Topic]) -> Mapping[Topic, Position]:
    kinds: dict[str, list[Key]] = {}
    for topic in topics:
        kinds.setdefault(topic.positions, []).append(topic.key)
    return {
        Topic(sql, row["key"]): row["position"]
        for sql, keys in kinds.items()
        for row in tx.all(sql, keys=keys)
    }
