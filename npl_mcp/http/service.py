"""One server per data folder: whether one runs, where it listens, and how it is stopped.

A server holds a lock on ``server.lock`` as long as it runs, so there are never two; the system releases the
lock however the server ends. ``server.json`` says where it listens; if nobody holds the lock, it is stale.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.library.files import Folder
from npl_index.library.locks import lock
from npl_mcp import __version__
from npl_mcp.config.connection import STATE_FILE, search_places
from npl_mcp.config.server_state import ServerState, read_state
from npl_mcp.config.settings import Listening

LOCK = "server.lock"
LOG = "server.log"

STOP_SECONDS = 6.0
"""How long ``stop`` waits. A server ends within five seconds."""

_ACQUIRE_SECONDS = 0.5
_PAUSE = 0.02

SHORTEST_TOKEN = 16


class AlreadyRunningError(NPLError):
    """Another server uses the data folder."""


def describe_server(url: str | None, socket: Path | None, token: str, guarded: bool) -> ServerState:
    """Return the state of this process as a server; see :class:`ServerState` for the parameters."""
    pid = os.getpid()
    return ServerState(
        url=url,
        socket=str(socket.absolute()) if socket else None,
        pid=pid,
        started=process_start(pid),
        since=time.time(),
        version=__version__,
        token=token,
        guarded=guarded,
        places=search_places(),
    )


def check(listening: Listening) -> None:
    """Make sure that not everyone on a network could call.

    :raises InvalidRequestError: a token is missing or cannot be used.
    """
    token = listening.token
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise InvalidRequestError(
            "the token cannot be used",
            hint=f"use {SHORTEST_TOKEN} or more printable ASCII characters, e.g. from: openssl rand -hex 24",
        )
    if listening.port is not None and not is_loopback(listening.host) and token is None:
        raise InvalidRequestError(
            f"{listening.host} can be reached from other machines, so callers need a token",
            hint="set NPL_MCP_TOKEN, or listen on 127.0.0.1",
        )


def is_loopback(host: str) -> bool:
    """Return whether an address or a name is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    """Make a token nobody can guess."""
    return secrets.token_urlsafe(32)


def process_start(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; ``None`` if the system does not tell.

    Source: proc(5), field 22 of ``/proc/PID/stat``.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        # The name in parentheses may hold anything.
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the data folder's lock, and remove its state file before and after.

    :param folder: created if it does not exist.
    :raises AlreadyRunningError: another server holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            # is_held() has a shared lock for a moment, so one failure does not mean that a server runs.
            lock(file, _ACQUIRE_SECONDS)
        except TimeoutError:
            raise AlreadyRunningError(
                f"a server of {folder} is running", hint="npl-mcp-server status shows it"
            ) from None
        (folder / STATE_FILE).unlink(missing_ok=True)
        try:
            yield
        finally:
            # Before the lock is released: afterwards the file may be another server's.
            (folder / STATE_FILE).unlink(missing_ok=True)
    finally:
        os.close(file)


def is_held(folder: Path) -> bool:
    """Return whether a server holds a data folder's lock."""
    try:
        file = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        can_lock = lock(file, 0, shared=True)
    except TimeoutError:
        return True
    finally:
        os.close(file)
    return not can_lock and (folder / STATE_FILE).exists()


def write_state(folder: Path, state: ServerState) -> None:
    """Write the state file; readers see all of it or nothing, and other users cannot read it."""
    with Folder.opened(folder) as place:
        place.remove_temporaries()
        # A file of this name would pass its permissions on, and the token is for this user alone.
        (folder / STATE_FILE).unlink(missing_ok=True)
        place.replace(STATE_FILE, json.dumps(state._asdict()).encode(), mode=0o600, durable=False)


def running(folder: Path) -> ServerState | None:
    """Return the running server of a data folder; ``None`` if there is none."""
    if not is_held(folder):
        return None
    state = read_state(folder)
    # The lock may be held by a server that has not yet written its own state: the file is then that of an
    # earlier one, whose process number another process can have by now. It must never be stopped.
    if state is None or process_start(state.pid) != state.started:
        return None
    return state


def stop(folder: Path) -> ServerState | None:
    """Stop the server of a data folder, and wait until it has ended.

    :returns: the server that was stopped; ``None`` if none ran.
    :raises TimeoutError: it has not ended.
    """
    state = running(folder)
    if state is None:
        return None
    os.kill(state.pid, signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS
    while is_held(folder):
        if time.monotonic() > end:
            raise TimeoutError(f"process {state.pid} has not ended")
        time.sleep(_PAUSE)
    return state


def answers(state: ServerState, seconds: float = 1.0) -> bool:
    """Return whether a server answers."""
    address = urlsplit(state.url or "http://localhost")
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=seconds)
    try:
        if state.url is None:
            connection.sock = _connected(state.socket or "", seconds)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _connected(path: str, seconds: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection
