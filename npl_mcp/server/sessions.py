"""The server of sessions: the clients of one user, each with its own documents and permissions.

A session declares itself in its first line, with its command line, environment and working directory. It then
speaks as over standard streams. Sessions share the index, caches, vocabulary and database.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from cachetools import LRUCache

from npl_index.errors import NPLError
from npl_mcp import __version__
from npl_mcp.app.app import App
from npl_mcp.app.state import SharedState
from npl_mcp.config import sessions
from npl_mcp.config.memory import used_memory
from npl_mcp.config.settings import Settings
from npl_mcp.config.sources import Origin
from npl_mcp.server.server import create_server, quiet_libraries, tool_calls
from npl_mcp.server.startup import new_loop
from npl_mcp.server.stdio import in_thread, kind_of, serve

logger = logging.getLogger(__name__)

IDLE_SECONDS = 180.0
"""Seconds without a session after which the server ends, at most twice as many."""

GREETING_SECONDS = 10.0
"""Seconds for a session to declare itself."""

GRACE_SECONDS = 1.0
"""Seconds of calls in flight after the signal to end."""

_BUFFER = 64 * 1024
_MAX_REFUSED = 20

ReadSettings = Callable[[Sequence[str], Origin], Settings]
"""Function that reads the settings of a command line."""


class RefusedError(Exception):
    """A session that needs a process of its own; the text is the reason."""


@dataclass(frozen=True, eq=False)
class Session:
    """A session.

    :param connection: connection to its pipe.
    :param settings: its settings.
    """

    connection: socket.socket
    settings: Settings
    since: float = field(default_factory=time.time)

    def as_dict(self) -> dict[str, object]:
        """Return what ``status`` shows."""
        pid, _ = sessions.owner(self.connection)
        return {
            "process": pid,
            "documents": self.settings.serves,
            "write": bool(self.settings.write and not self.settings.unwritable),
            "age_seconds": int(time.time() - self.since),
            "memory_bytes": used_memory(pid),
        }


class Sessions:
    """The sessions of this process.

    :param settings: settings with the values that all sessions share.
    :param read: function that reads the settings of a session.
    :param idle: seconds without a session after which to end.
    """

    def __init__(self, settings: Settings, read: ReadSettings, idle: float = IDLE_SECONDS) -> None:
        self._state, self._read, self._idle = SharedState(settings), read, idle
        self._common = {**sessions.common(), **settings.common}
        self._open: set[Session] = set()
        self._refused: LRUCache[str, str] = LRUCache(_MAX_REFUSED)  # with the reasons, by working directory
        self._ending = False

    def run(self, listener: socket.socket) -> None:
        """Serve until no session is left for a time, or a signal comes.

        :param listener: the socket of the data folder, which is the working directory.
        """
        quiet_libraries()
        listener.listen()  # from now on, the system names this process to clients
        anyio.run(self._serve, listener, backend_options={"loop_factory": new_loop})
        self._state.close()

    async def _serve(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end)
        async with anyio.create_task_group() as group:
            while not self._ending:
                with anyio.move_on_after(self._idle) as self._accepting:
                    connection, _ = await loop.sock_accept(listener)
                    group.start_soon(self._accept, connection)
                if self._accepting.cancelled_caught and not self._open:
                    break
            # In this order: a next server may listen as soon as this one does not.
            Path(sessions.SOCKET).unlink(missing_ok=True)
            listener.close()

    def _end(self) -> None:
        """End: answer the calls in flight, and no others."""
        self._ending = True
        self._accepting.cancel()
        for session in self._open:
            with suppress(OSError):
                session.connection.shutdown(socket.SHUT_RD)
        # A worker thread cannot be interrupted.
        last = threading.Timer(GRACE_SECONDS, partial(os._exit, 0))
        last.daemon = True
        last.start()

    async def _accept(self, connection: socket.socket) -> None:
        try:
            with (
                connection,
                connection.makefile("rb", _BUFFER) as source,
                connection.makefile("wb") as target,
            ):
                connection.settimeout(GREETING_SECONDS)
                line = await in_thread(source.readline, sessions.GREETING_BYTES)
                if not sessions.is_own(connection):
                    return
                declared = json.loads(line)
                if not declared:
                    target.write(self._description())
                    return
                try:
                    settings = await in_thread(self._settings, declared)
                except RefusedError as refused:
                    self._refused[str(declared.get("cwd"))] = str(refused)
                    target.write(_line({"refused": str(refused)}))
                    return
                session = Session(connection, settings)
                self._open.add(session)
                try:
                    await self._speak(session, source, target)
                finally:
                    self._open.discard(session)
        except (OSError, ValueError):  # no declaration, or the pipe is gone
            pass
        except Exception:
            logger.exception("a session failed")

    async def _speak(self, session: Session, source: Any, target: Any) -> None:
        app = App(session.settings, self._state.of_session(session.settings))
        calls = tool_calls(app)
        server = create_server(session.settings, calls)
        reading = {spec.name for spec in calls.specs if spec.read_only}
        former = [old for old, alias in calls.aliases.items() if alias.new in reading]
        target.write(_line({"version": __version__, "repeatable": [*reading, *former]}))
        target.flush()
        session.connection.settimeout(None)
        kind = await in_thread(kind_of, source)
        await serve(server, kind(source, target, session.settings.body_limit, _broken))

    def _settings(self, declared: Mapping[str, Any]) -> Settings:
        """Return the settings of a session.

        :raises RefusedError: it needs a process of its own.
        """
        self._compare(declared["common"])
        origin = Origin(declared["environment"], Path(declared["cwd"]))
        try:
            settings = self._read(declared["words"], origin)
        except NPLError as error:
            raise RefusedError(str(error)) from None
        self._compare(settings.common)
        return settings

    def _compare(self, common: Mapping[str, str | None]) -> None:
        if others := sessions.differing(common, self._common):
            raise RefusedError(f"the server has other values of {', '.join(others)}")

    def _description(self) -> bytes:
        shown = [session.as_dict() for session in sorted(self._open, key=lambda session: session.since)]
        own = {"process": os.getpid(), "memory_bytes": used_memory(os.getpid())}
        return _line({**own, "common": self._common, "sessions": shown, "refused": dict(self._refused)})


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _broken() -> None:
    raise anyio.BrokenResourceError
