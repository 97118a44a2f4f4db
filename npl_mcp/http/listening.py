"""Runs the HTTP application: sockets, limits of connections, and an end within five seconds."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from npl_index.errors import InvalidRequestError
from npl_mcp.config.connection import STATE_FILE
from npl_mcp.config.server_state import ServerState
from npl_mcp.config.settings import Listening, Settings
from npl_mcp.http.app import create_app
from npl_mcp.http.guard import Policy, names
from npl_mcp.http.service import check, describe_server, hold, new_token, write_state
from npl_mcp.server.server import quiet_fastmcp

READ_SECONDS = 10.0
"""A request must be there whole by then, or come at :data:`SLOWEST` at least."""

SLOWEST = 10_000
"""Bytes per second."""

KEEP_ALIVE_SECONDS = 60
GRACE_SECONDS = 2
LAST_SECONDS = 4.5
"""When a server that was told to end does so, whatever is at work."""

MAX_CONNECTIONS = 1_000

_BACKLOG = 2048

_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class TimedProtocol(H11Protocol):
    """Closes a connection whose request is not there whole in time; uvicorn waits for ever."""

    _deadline: asyncio.TimerHandle | None = None
    _read = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on; the time runs from the first byte of a request to its last."""
        if self._deadline is None:
            self._wait()
        self._read += len(data)
        super().data_received(data)
        if not self._is_halfway():
            self._cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End what no call is at work for; a call has a moment left."""
        if self._is_halfway() or (self.cycle is not None and _is_stream(self.scope)):
            self.transport.close()
        else:
            super().shutdown()

    def _is_halfway(self) -> bool:
        """Return whether a request has begun and has not ended."""
        state = self.conn.their_state
        return state is h11.SEND_BODY or (state is h11.IDLE and bool(self.conn.trailing_data[0]))

    def _wait(self) -> None:
        self._read = 0
        self._deadline = self.loop.call_later(READ_SECONDS, self._give_up)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._read >= SLOWEST * READ_SECONDS:
            self._wait()
            return
        answered = self.cycle is not None and self.cycle.response_started
        if self._is_halfway() and not answered:
            self.transport.write(_TIMED_OUT)
        self.transport.close()


def _is_stream(scope: Mapping[str, Any]) -> bool:
    """Return whether an answer ends only when the client leaves: it waits for events."""
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


class _Server(Server):
    """A server that says when it listens, and ends when it is told to.

    :param config: see uvicorn.
    :param ready: called once it listens.
    :param last: called when it has to end without having finished.
    """

    def __init__(self, config: Config, ready: Callable[[], None], last: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._last = last

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order at a signal; uvicorn would raise it again, and nothing after it would be tidied up."""
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, self._end)
        yield

    def _end(self, number: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            timer = threading.Timer(LAST_SECONDS, self._last)
            timer.daemon = True
            timer.start()
        self.handle_exit(number, frame)


def serve(settings: Settings, announce: Callable[[ServerState], None]) -> None:
    """Serve until a signal ends it.

    :param settings: see :class:`~npl_mcp.config.settings.Settings`.
    :param announce: called once it listens.
    :raises InvalidRequestError: everyone could call, or an address cannot be listened on.
    :raises AlreadyRunningError: a server of the data folder runs.
    """
    listening = settings.listening
    check(listening)
    quiet_fastmcp()
    with hold(settings.data_folder), _sockets(listening) as sockets:
        # That of a Unix socket is a path.
        port = next((name[1] for one in sockets if isinstance(name := one.getsockname(), tuple)), None)
        own_token = new_token()
        state = describe_server(
            _url(listening, port), listening.socket, own_token, listening.token is not None
        )
        policy = Policy(
            hosts=names(listening, port),
            origins=listening.origins,
            token=listening.token,
            own_token=own_token,
            body_limit=settings.body_limit,
            max_calls=listening.max_calls,
        )

        def ready() -> None:
            write_state(settings.data_folder, state)
            announce(state)

        def last() -> None:
            if listening.socket is not None:
                listening.socket.unlink(missing_ok=True)
            (settings.data_folder / STATE_FILE).unlink(missing_ok=True)
            os._exit(0)

        _Server(_config(create_app(settings, policy)), ready, last).run(sockets)


def _config(app: Any) -> Config:
    return Config(
        app,
        http=TimedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # Who calls is taken from the connection, never from a header.
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _url(listening: Listening, port: int | None) -> str | None:
    if port is None:
        return None
    # What listens on every address is reached by the machine's own.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(listening.host, listening.host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _sockets(listening: Listening) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        sockets = []
        if listening.port is not None:
            sockets.append(stack.enter_context(bind_port(listening.host, listening.port)))
        if listening.socket is not None:
            sockets.append(stack.enter_context(bind_path(listening.socket)))
            stack.callback(listening.socket.unlink, missing_ok=True)
        yield sockets


def bind_port(host: str, port: int) -> socket.socket:
    """Listen on a port.

    :raises InvalidRequestError: it cannot be listened on; says why.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        # Without the protocol's number asyncio does not take the socket for TCP, and each answer, which is
        # written in two parts, waits 40 ms for the client's system.
        one = socket.socket(family, kind, protocol)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(address)
            one.listen(_BACKLOG)
        except OSError:
            one.close()
            raise
        return one
    except OSError as error:
        raise InvalidRequestError(
            f"{host}:{port} cannot be listened on: {error.strerror}",
            hint="give another by --port; 0 means any that is free",
        ) from None


def bind_path(path: Path) -> socket.socket:
    """Listen on a Unix socket that this user alone can reach.

    :param path: a socket nobody listens on any more is replaced; nothing else is.
    :raises InvalidRequestError: the path cannot be used; says why.
    """
    folder = path.absolute().parent
    try:
        mode = folder.stat().st_mode
        if mode & 0o022 and not mode & stat.S_ISVTX:
            raise InvalidRequestError(
                f"others may write to the folder of {path}", hint="choose a folder of your own"
            )
        if path.is_socket() and not _is_listened_on(path):
            path.unlink()
        return _bound(path)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "choose a shorter path of a new file, at most 100 bytes"
        raise InvalidRequestError(f"{path} cannot be listened on: {reason}", hint=hint) from None


def _bound(path: Path) -> socket.socket:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The file is never there with a wider mode, not for a moment.
    before = os.umask(0o177)
    try:
        one.bind(str(path))
        one.listen(_BACKLOG)
    except OSError:
        one.close()
        raise
    finally:
        os.umask(before)
    return one


def _is_listened_on(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.settimeout(1)
        return one.connect_ex(str(path)) == 0
