"""Runs the HTTP application: sockets, limits on connections, and shutdown within two seconds."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from sse_starlette.sse import AppStatus
from uvicorn import Config, Server

from npl_mcp import __version__
from npl_mcp.config.server_state import ServerState, process_start
from npl_mcp.config.settings import Settings, search_places
from npl_mcp.http import service
from npl_mcp.http.app import create_app
from npl_mcp.http.guard import Guard
from npl_mcp.http.policy import ADMITTED_STATE, ENDING, STREAM_KEY, Policy, host_names
from npl_mcp.http.service import FolderLock
from npl_mcp.server.server import quiet_libraries
from npl_mcp.server.startup import GRACE_SECONDS, allow_files
from npl_mcp.stores.base.errors import StorageError, StoreError

K = TypeVar("K")

KEEP_ALIVE_SECONDS = 60
LAST_SECONDS = 1.8
"""Seconds from the signal to end to the unconditional end of the process."""

TELLING_SECONDS = 0.3
"""Seconds for callers without a result to read their refusal."""

HEAD_SECONDS = 10
"""Seconds for a request to arrive on a new connection, and after its first bytes on a used one."""

READ_SECONDS = 10
"""Maximum seconds of a caller without reading any part of its answer, on systems that can enforce it."""

MAX_CONNECTIONS = 4_000
"""Maximum open connections: a thousand callers may wait for new entries, while others are answered."""

MAX_IDLE = MAX_CONNECTIONS // 2
"""Maximum connections without a request; above it the oldest end, so that others can connect."""

MAX_STRANGERS = MAX_CONNECTIONS // 8
"""Maximum connections of a port without an admitted caller, where callers need tokens; the oldest end."""

STRANGER_SECONDS = 2
"""Minimum seconds for a caller to be admitted: a flood of connections does not end each new one."""

_IDLE, _BEGUN, _ANSWERED = "idle", "begun", "answered"
"""The phases of a connection: without a request, with a part of its head, with a request."""


def _phase(line: Any) -> str:
    if line.cycle is not None and not line.cycle.response_complete:
        return _ANSWERED
    return _BEGUN if line.timeout_keep_alive_task is None else _IDLE


def _is_stranger(line: Any) -> bool:
    """Return whether a connection comes from a port, and its last request was not admitted."""
    return line.client and not (line.cycle and ADMITTED_STATE in line.cycle.scope["state"])


def _aged(known: Mapping[K, float], present: set[K], now: float) -> dict[K, float]:
    """Return the times at which the present keys were first seen, the oldest first."""
    ages = ((key, known.get(key, now)) for key in present)
    return dict(sorted(ages, key=itemgetter(1)))


class _Server(Server):
    """uvicorn's server, which ends at a signal, or when it has lost its data folder.

    :param guard: the application.
    :param folder_lock: the lock of the data folder.
    :param ready: the callback once the server listens.
    :param socket: the Unix socket to remove at the end.
    """

    def __init__(
        self, guard: Guard, folder_lock: FolderLock, ready: Callable[[], None], socket: Path | None
    ) -> None:
        config = Config(
            guard,
            http="h11",
            loop="npl_mcp.server.startup:new_loop",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            # The caller's address comes from the connection, never from a header.
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        super().__init__(config)
        self._guard, self._folder_lock, self._ready, self._socket = guard, folder_lock, ready, socket
        self._states: dict[tuple[Any, Any, str], float] = {}  # with the times of their beginnings
        self._strangers: dict[Any, float] = {}
        self._until = 0.0
        self._told = threading.Event()  # set once every call in flight has an answer

    async def on_tick(self, counter: int) -> bool:
        """Return whether to end; uvicorn calls this ten times a second."""
        if counter % 10 == 0 and not self.should_exit and self._folder_lock.lost():
            self._end()
            self.should_exit = True
        if counter % 10 == 0 or len(self.server_state.connections) > MAX_STRANGERS:
            self._end_idle()
        return await super().on_tick(counter)

    def _end_idle(self) -> None:
        """End requests that do not arrive in time, and of too many connections the oldest.

        uvicorn ends only connections that have been used and are silent since.
        """
        lines: set[Any] = self.server_state.connections
        now = time.monotonic()
        self._states = _aged(self._states, {(line, line.cycle, _phase(line)) for line in lines}, now)
        self._strangers = _aged(self._strangers, {line for line in lines if _is_stranger(line)}, now)
        idle = [line for line, _, phase in self._states if phase != _ANSWERED]
        idle.sort(key=lambda line: line not in self._strangers)
        begun = [(line, since) for (line, _, phase), since in self._states.items() if phase == _BEGUN]
        ended = {line for line, since in begun if now - since >= HEAD_SECONDS}
        if self._guard.needs_tokens:
            slow = [line for line, since in self._strangers.items() if now - since >= STRANGER_SECONDS]
            ended.update(slow[: max(0, len(self._strangers) - MAX_STRANGERS)])
        for line in ended.union(idle[:-MAX_IDLE]):
            line.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, and first answer the calls that uvicorn would cut off with a bare 500 or nothing."""
        self._telling = asyncio.create_task(self._tell_callers())
        await super().shutdown(sockets)

    async def _tell_callers(self) -> None:
        await asyncio.sleep(self._until - time.monotonic())
        cycles: list[Any] = [getattr(line, "cycle", None) for line in self.server_state.connections]
        open_calls = [call for call in cycles if call and not call.response_complete]
        cut = [call for call in open_calls if not call.response_started or STREAM_KEY in call.scope["state"]]
        if cut:
            text = "the server is shutting down before %d calls are answered; it tells their callers"
            logging.getLogger(__name__).warning(text, len(cut))
        for call in cut:
            await ENDING.end(call.scope, call.receive, call.send, begun=call.response_started)
            call.disconnected = True
        self._told.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down in order at a signal."""
        if not self.should_exit:
            self._end()
        super().handle_exit(sig, frame)

    def _end(self) -> None:
        self._until = time.monotonic() + GRACE_SECONDS
        # Streams of calls get the time that other answers get.
        AppStatus.enable_automatic_graceful_drain = False
        # From now on, uvicorn would log a traceback of each request that it cuts off.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        # A worker thread cannot be interrupted, and Python waits for it: it may index a large file.
        threading.Thread(target=self._end_at_last, daemon=True).start()

    def _end_at_last(self) -> None:
        code = 2 if self._folder_lock.lost() else 0  # the lock may be released meanwhile
        self._told.wait(LAST_SECONDS - TELLING_SECONDS)
        time.sleep(TELLING_SECONDS)
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)
        self._folder_lock.remove_state()
        os._exit(code)


def serve(settings: Settings, announce: Callable[[ServerState], object]) -> None:
    """Serve until a signal.

    :param settings: settings that :func:`npl_mcp.http.service.check` has accepted.
    :param announce: the callback once the server listens.
    :raises NPLError: an address cannot be used, or the data folder has a server already.
    """
    quiet_libraries()
    allow_files(2 * MAX_CONNECTIONS)
    with service.hold(settings.data_folder) as folder_lock, _sockets(settings) as sockets:
        # The address of a Unix socket is a path.
        addresses = (listener.getsockname() for listener in sockets)
        port: int | None = next((address[1] for address in addresses if isinstance(address, tuple)), None)
        own_token = secrets.token_urlsafe(32)
        url, named = _url(settings, port), settings.web_url
        settings = replace(
            settings,
            token=settings.token or (own_token if service.needs_token(settings) else None),
            web=settings.web if url else "off",  # no browser reaches a socket
            web_url=named or url,
            own_url=named is None,
        )
        state = _state_of(settings, url, own_token)
        policy = Policy(settings, host_names(settings, port), own_token)

        def ready() -> None:
            service.write_state(settings.data_folder, state)
            announce(state)

        # uvicorn raises the signal again when it has ended; without handlers that would kill this process
        # before it has removed its files.
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGINT, lambda *_: None)
        _Server(create_app(policy), folder_lock, ready, settings.socket).run(sockets)
        if folder_lock.lost():
            raise StorageError(f"the data folder {settings.data_folder} was removed while the server ran")


def _state_of(settings: Settings, url: str | None, own_token: str) -> ServerState:
    """Return the state of this server, for programs that look for one."""
    return ServerState(
        url=url,
        socket=str(settings.socket.absolute()) if settings.socket else None,
        pid=os.getpid(),
        started=process_start(os.getpid()),
        since=time.time(),
        version=__version__,
        token=own_token,
        guarded=settings.token is not None or _closed(settings),
        places=search_places(),
        pages=settings.page_url,
        serves=settings.serves,
        given=settings.given,
    )


def _closed(settings: Settings) -> bool:
    """Return whether callers need tokens of their own, according to the database."""
    try:
        return service.has_tokens(settings)
    except StoreError:  # each request asks again
        return True


def _url(settings: Settings, port: int | None) -> str | None:
    if port is None:
        return None
    # A server that listens on every address is reached at the loopback address.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(settings.host, settings.host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _sockets(settings: Settings) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        sockets = []
        if settings.port is not None:
            sockets.append(stack.enter_context(bind_port(settings.host, settings.port)))
        if settings.socket is not None:
            sockets.append(stack.enter_context(service.bind_path(settings.socket)))
            stack.callback(settings.socket.unlink, missing_ok=True)
        yield sockets


def bind_port(host: str, port: int) -> socket.socket:
    """Listen on a port.

    :raises InvalidRequestError: the port cannot be used; the message gives the reason.
    """
    with service.listening_on(f"{host}:{port}", "choose another with --port; 0 means any free port"):
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, _, _, _, address = places[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listener = socket.create_server(address, family=family, backlog=service.BACKLOG, dualstack_ipv6=both)
        # Connections inherit both. Without the first, each answer, which is written in two parts, would wait
        # 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1_000 * READ_SECONDS)
        return listener
