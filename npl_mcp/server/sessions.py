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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from cachetools import LRUCache

from npl_index.errors import NPLError, escaped
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import Caller
from npl_mcp.app.state import COMMON, SharedState
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config import sessions
from npl_mcp.config.memory import used_memory
from npl_mcp.config.settings import Settings
from npl_mcp.config.sources import Origin
from npl_mcp.server.server import create_server, quiet_libraries, tool_calls
from npl_mcp.server.startup import GRACE_SECONDS, new_loop
from npl_mcp.server.stdio import in_thread, kind_of, serve

logger = logging.getLogger(__name__)

IDLE_SECONDS = 180.0
"""Seconds without a session after which the server ends, at most twice as many."""

GREETING_SECONDS = 10.0
"""Seconds for a session to declare itself."""

_MAX_REFUSED = 20
_PAUSE = 0.1

ReadSettings = Callable[[Sequence[str], Origin], Settings]
"""Function that reads the settings of a command line."""


class Sessions:
    """The sessions of this process.

    :param settings: settings with the values that all sessions share.
    :param read: function that reads the settings of a session.
    :param idle: seconds without a session after which to end.
    """

    def __init__(self, settings: Settings, read: ReadSettings, idle: float = IDLE_SECONDS) -> None:
        self._settings, self._read, self._idle = settings, read, idle
        self._state = SharedState(settings)
        # By connection: the process of the pipe, the tools, the beginning.
        self._open: dict[socket.socket, tuple[int, ToolCalls, float]] = {}
        self._refused: LRUCache[str, str] = LRUCache(_MAX_REFUSED)  # the reasons, by working directory

    def run(self, listener: socket.socket) -> None:
        """Serve until no session is left for a time, or a signal comes: then end as at the end of all inputs.

        :param listener: the socket of the data folder, which is the working directory.
        """
        quiet_libraries()
        anyio.run(self._serve, listener, backend_options={"loop_factory": new_loop})
        self._state.close()

    async def _serve(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        loop, waiting = asyncio.get_running_loop(), None
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as listening:
                loop.add_signal_handler(signal.SIGTERM, listening.cancel)
                while waiting is None or self._open or not waiting.cancelled_caught:
                    with anyio.move_on_after(self._idle) as waiting:
                        try:
                            group.start_soon(self._accept, (await loop.sock_accept(listener))[0])
                        except OSError:  # too many open files: the sessions go on
                            await anyio.sleep(_PAUSE)
            # In this order: a next server may listen as soon as this one does not.
            Path(sessions.SOCKET).unlink(missing_ok=True)
            listener.close()
            if listening.cancel_called:
                signal.alarm(GRACE_SECONDS)  # this signal ends the process: no thread can be interrupted
                for connection in self._open:
                    with suppress(OSError):  # the pipe is gone
                        connection.shutdown(socket.SHUT_RD)  # as at the end of a client's input

    async def _accept(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(GREETING_SECONDS)
            with connection, connection.makefile("rb") as source, connection.makefile("wb") as target:
                declared = json.loads(await in_thread(source.readline, sessions.GREETING_BYTES))
                if sessions.is_own(connection):
                    await self._speak(declared, connection, source, target)
        except (OSError, ValueError):  # no declaration, or the pipe is gone
            pass
        except Exception:
            logger.exception("a session failed")
        finally:
            self._open.pop(connection, None)

    async def _speak(
        self, declared: Mapping[str, Any], connection: socket.socket, source: Any, target: Any
    ) -> None:
        repeatable, server = list[str](), None
        if declared["stays"]:
            try:
                settings = await in_thread(self._settings_of, declared)
                calls = tool_calls(App(settings, self._state.of_session(settings)))
                server = create_server(settings, calls)
                self._open[connection] = declared["process"], calls, time.time()
                reading = {spec.name for spec in calls.specs if spec.read_only}
                repeatable = [*reading, *(old for old, to in calls.aliases.items() if to.new in reading)]
            except NPLError as error:
                self._refused[declared["cwd"]] = str(error)
        own = {"process": os.getpid(), "sessions": len(self._open), "lines": [*map(escaped, self._lines())]}
        answer = {**own, "repeatable": repeatable, "accepted": server is not None}
        if question := declared.get("hints"):
            answer["hints"] = await self._hints(question)
        target.write(json.dumps(answer).encode() + b"\n")
        target.flush()
        if server is not None:
            connection.settimeout(None)
            kind = await in_thread(kind_of, source)
            client = kind(source, target, settings.body_limit)
            client.gone = _broken
            await serve(server, client)

    async def _hints(self, question: Mapping[str, Any]) -> str:
        """Return what the first session with an answer says of a prompt."""
        for calls in {calls.app.settings.serves: calls for _, calls, _ in self._open.values()}.values():
            outcome = await calls.invoke("npl_hints", Caller(reads="values"), question)
            if hints := outcome.body.get("data"):
                return str(hints)
        return ""

    def _settings_of(self, declared: Mapping[str, Any]) -> Settings:
        """Return the settings of a session.

        :raises NPLError: it needs a process of its own.
        """
        others = [name for name, value in sessions.common().items() if value != declared["common"].get(name)]
        if not others:
            origin = Origin(declared["environment"], Path(declared["cwd"]))
            settings = self._read(declared["words"], origin)
            others = [name for name in COMMON if getattr(settings, name) != getattr(self._settings, name)]
        if others:
            raise NPLError(f"the process of the others has another value of {', '.join(others)}")
        return settings

    def _lines(self) -> Iterator[str]:
        """Yield lines about this process, its sessions, and those with a process of their own."""
        yield f"{len(self._open)} in {_process(os.getpid())}"
        for process, calls, since in self._open.values():
            settings = calls.app.settings
            writes = ", writes" if settings.write and not settings.unwritable else ""
            yield f"{settings.serves}{writes}: {_process(process)}, {(time.time() - since) / 60:.0f} min"
        for folder, reason in self._refused.items():
            yield f"in {folder}: a process of its own, because {reason}"


def _process(pid: int) -> str:
    used = used_memory(pid)
    return f"process {pid}" if used is None else f"process {pid}, {used / 1e6:.0f} MB"


def _broken() -> None:
    raise anyio.BrokenResourceError
