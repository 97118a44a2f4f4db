"""The connections of the PostgreSQL engine, in psycopg's pool."""

from __future__ import annotations

from typing import Any

from npl_mcp.stores.base.engine import BUSY_MILLISECONDS, TOO_MANY_CALLS, BusyError, CallDeadline

UNUSED_SECONDS = 1.0
"""Seconds after which one of the unused connections is closed, since another process may need it."""


class PostgresPool:
    """Connections that a thread of psycopg's pool opens.

    :param engine: the engine that opens them.
    :param most: the maximum number of connections.
    """

    def __init__(self, engine: Any, most: int) -> None:
        from psycopg_pool import ConnectionPool, PoolTimeout

        self._engine, self._timeout = engine, PoolTimeout
        connects: Any = self
        self._pool = ConnectionPool(
            connection_class=connects,
            min_size=0,
            max_size=most,
            open=True,
            max_idle=UNUSED_SECONDS,
            reconnect_timeout=BUSY_MILLISECONDS / 1000,
            num_workers=1,
        )

    def connect(self, _conninfo: str) -> Any:
        """Open a connection for the pool."""
        return self._engine.connect(CallDeadline(), read_only=False)

    def take(self, deadline: CallDeadline) -> Any:
        """Return a connection outside a transaction.

        :raises DatabaseError: no connection is free before the deadline.
        """
        while True:
            try:
                raw = self._pool.getconn(deadline.seconds)
            except self._timeout:
                raise self._engine.failure or BusyError(TOO_MANY_CALLS) from None
            if self._engine.is_alive(raw):
                return raw
            raw.close()
            self._pool.putconn(raw)

    def put_back(self, raw: Any) -> None:
        """Take back a connection; one that is not sound is closed."""
        if not self._engine.is_idle(raw):
            raw.close()
        self._pool.putconn(raw)

    def close(self) -> None:
        """Close the connections; one in use is closed when it comes back."""
        self._pool.close(timeout=0)
