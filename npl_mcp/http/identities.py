"""Answers of the database that are cached for many requests: the known tokens, for a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import anyio.to_thread

from npl_mcp.stores.access import Identity, token_digest

T = TypeVar("T")

SECONDS = 1.0
"""Maximum seconds for which a revoked token is still accepted, and a new one still refused. The database is
queried no more often, for any number of calls and tokens.
"""


class Refreshed(Generic[T]):
    """A value that is refreshed in a thread when it is requested and the last one is old.

    Concurrent callers share one refresh, and its failure: otherwise a database that is slow to fail would be
    queried by one caller after the other.

    :param ask: the function that returns a new value; it may wait, and fail.
    :param seconds: the maximum age of the value.
    """

    def __init__(self, ask: Callable[[], T], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds
        self._last: asyncio.Task[T] | None = None
        self._asked_at = 0.0

    async def get(self) -> T:
        """Return the value, at most ``seconds`` old.

        :raises Exception: the reason of a failed refresh.
        """
        is_old = time.monotonic() - self._asked_at >= self._seconds
        if self._last is None or (self._last.done() and (is_old or _failed(self._last))):
            self._asked_at = time.monotonic()
            self._last = asyncio.create_task(anyio.to_thread.run_sync(self._ask))
            self._last.add_done_callback(_failed)
        # A disconnecting caller does not cancel the refresh for the others.
        return await asyncio.shield(self._last)


def _failed(ended: asyncio.Task[T]) -> bool:
    return ended.cancelled() or ended.exception() is not None


class Identities(Refreshed[Mapping[str, Identity] | None]):
    """The identities of callers by the digests of their tokens; ``None`` if callers need no token.

    Once a server has seen a token, callers need one until it ends: an unavailable database grants no access.
    ``closed`` is whether it has.

    :param ask: the function that returns the tokens.
    """

    def __init__(self, ask: Callable[[], Mapping[str, Identity] | None]) -> None:
        super().__init__(self._read, SECONDS)
        self._read_tokens, self.closed = ask, False

    def _read(self) -> Mapping[str, Identity] | None:
        identities = self._read_tokens()
        self.closed = self.closed or identities is not None
        return {} if identities is None and self.closed else identities


def identity_of(known: Mapping[str, Identity], token: bytes) -> Identity | None:
    """Return the identity of a token; ``None`` if it is unknown or has expired.

    The lookup is by digest, so its time reveals nothing about existing tokens.
    """
    identity = known.get(token_digest(token))
    return identity if identity is not None and identity.is_valid() else None
