"""Wakes calls that wait for something new, whoever commits it: this process or another.

What may be waited for is a topic: a room, a mailbox, a worklog. Its position changes with everything new, so
that a caller who saw one position is woken by any other, however long ago the two parted. One thread looks,
only while somebody waits, and asks once for all of them when the engine says that something was committed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.errors import DatabaseError

if TYPE_CHECKING:
    from concurrent.futures import Future

PAUSE = 0.01
"""Seconds between two looks. A third of what a reader may take to wake: the other two are for its answer."""

AT_ONCE = 500
"""Topics of one statement; databases take a limited number of parameters."""

_IDLE = 10.0
_AFTER_A_FAILURE = 0.5

_AT_THE_END = 1.0
"""Seconds for the thread to end: it may wait for a server that says nothing."""

Key = int | str
Position = int | str | None


@dataclass(frozen=True, slots=True)
class Topic:
    """What may be waited for.

    :param positions: SQL that returns ``key`` and ``position`` of each of ``:keys``.
    :param key: which one of its kind.
    """

    positions: str
    key: Key


class Changes:
    """Tells callers that a topic is not where they saw it any more.

    :param database: where everything is committed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = threading.Condition()
        self._waiting: dict[Topic, dict[Future[None], Position]] = {}
        self._unseen = False
        self._thread: threading.Thread | None = None
        self._closed = False

    def position(self, topic: Topic) -> Position:
        """Return where a topic is now; ``None`` where there is nothing yet."""
        with self._database.read() as tx:
            return _positions(tx, [topic]).get(topic)

    def expect(self, topic: Topic, seen: Position) -> Future[None]:
        """Return what is set once a topic is elsewhere than it was seen; cancel it to wait no longer."""
        from concurrent.futures import Future  # a tenth of what a command line imports, which rarely waits

        future: Future[None] = Future()
        with self._changed:
            if self._closed:
                future.set_result(None)
                return future
            self._waiting.setdefault(topic, {})[future] = seen
            self._unseen = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="npl-changes", daemon=True)
                self._thread.start()
            self._changed.notify()
        future.add_done_callback(partial(self._forget, topic))
        return future

    @property
    def waiting(self) -> int:
        """How many wait."""
        with self._changed:
            return sum(map(len, self._waiting.values()))

    def close(self) -> None:
        """Wake everybody and look no longer."""
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(_AT_THE_END)
        self._wake(self._waiters())

    def _run(self) -> None:
        commits = self._database.commits()
        try:
            while self._is_wanted():
                try:
                    if commits.wait(PAUSE) or self._unseen:
                        self._look()
                except DatabaseError:
                    # Whoever asks again is told what is wrong; but not as fast as can be asked.
                    with self._changed:
                        self._changed.wait_for(lambda: self._closed, _AFTER_A_FAILURE)
                    self._wake(self._waiters())
        finally:
            commits.close()

    def _is_wanted(self) -> bool:
        """Wait until somebody waits; return whether this thread is to go on."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, _IDLE)
            if self._waiting and not self._closed:
                return True
            self._thread = None
            return False

    def _look(self) -> None:
        """Wake those whose topics are elsewhere by now."""
        with self._changed:
            self._unseen = False
            topics = list(self._waiting)
        with self._database.read() as tx:
            found = _positions(tx, topics)
        with self._changed:
            moved = [
                future
                for topic in topics
                for future, seen in self._waiting.get(topic, {}).items()
                if found.get(topic) != seen
            ]
        self._wake(moved)

    def _waiters(self) -> list[Future[None]]:
        with self._changed:
            return [future for waiting in self._waiting.values() for future in waiting]

    def _wake(self, futures: Sequence[Future[None]]) -> None:
        for future in futures:
            if future.set_running_or_notify_cancel():
                future.set_result(None)

    def _forget(self, topic: Topic, future: Future[None]) -> None:
        with self._changed:
            waiting = self._waiting.get(topic, {})
            waiting.pop(future, None)
            if not waiting:
                self._waiting.pop(topic, None)


def _positions(tx: Transaction, topics: Sequence[Topic]) -> Mapping[Topic, Position]:
    kinds: dict[str, list[Key]] = {}
    for topic in topics:
        kinds.setdefault(topic.positions, []).append(topic.key)
    return {
        Topic(sql, row["key"]): row["position"]
        for sql, keys in kinds.items()
        for at in range(0, len(keys), AT_ONCE)
        for row in tx.all(sql, keys=keys[at : at + AT_ONCE])
    }
