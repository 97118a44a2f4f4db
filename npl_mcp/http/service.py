"""One server per data folder: who runs, where it listens, and how it is stopped.

A server holds a lock on ``server.lock`` as long as it lives, so that two cannot run; the system frees it
however the server ends. ``server.json`` says where it listens; without the lock it is a left-over.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from npl_index.errors import InvalidRequestError, NPLError
from npl_mcp import __version__
from npl_mcp.config.connection import Reach
from npl_mcp.config.settings import Listening

if sys.platform != "win32":
    import fcntl

STATE = "server.json"
LOCK = "server.lock"
LOG = "server.log"

STOP_SECONDS = 6.0
"""How long a stop waits; a server ends within five seconds."""

_ACQUIRE_SECONDS = 0.5
_PAUSE = 0.02

SHORTEST_TOKEN = 16


class AlreadyRunningError(NPLError):
    """Another server has the data folder."""


@dataclass(frozen=True, slots=True)
class State:
    """A running server.

    :param url: of its port, without a path.
    :param socket: path of its Unix socket.
    :param pid: its process.
    :param started: when the process started, in clock ticks since the machine did; ``None`` where the system
        does not tell. Tells the process from a later one of the same number.
    :param since: when the server began to listen, in seconds since the epoch.
    :param version: of the server.
    :param token: proves that a caller can read the state file.
    :param guarded: callers of the port need a token.
    :param places: where its environment looks for files; see :class:`~npl_mcp.config.connection.Reach`.
    """

    url: str | None
    socket: str | None
    pid: int
    started: int | None
    since: float
    version: str
    token: str = field(repr=False)
    guarded: bool = False
    places: str = ""

    @classmethod
    def now(cls, url: str | None, socket: Path | None, token: str, guarded: bool) -> State:
        """Describe this process.

        :param url: see :class:`State`.
        :param socket: see :class:`State`.
        :param token: see :class:`State`.
        :param guarded: see :class:`State`.
        """
        pid = os.getpid()
        place = str(socket.absolute()) if socket else None
        places = Reach.from_env().places
        return cls(url, place, pid, process_start(pid), time.time(), __version__, token, guarded, places)


def check(listening: Listening) -> None:
    """Refuse to listen where everyone could call.

    :raises InvalidRequestError: says what is missing.
    """
    token = listening.token
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise InvalidRequestError(
            "the token cannot be used",
            hint=f"give {SHORTEST_TOKEN} or more printable ASCII characters, e.g. from: openssl rand -hex 24",
        )
    if listening.port is not None and not is_loopback(listening.host) and token is None:
        raise InvalidRequestError(
            f"{listening.host} can be reached from other machines, so callers must bring a token",
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
    """Return when a process started, in clock ticks since the machine did; see proc(5)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        # The name in parentheses may hold anything.
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Be the one server of a data folder.

    :param folder: made if it is not there.
    :raises AlreadyRunningError: another one is.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _lock(file):
            raise AlreadyRunningError(
                f"a server of {folder} is running", hint="npl-mcp-server status shows it"
            )
        (folder / STATE).unlink(missing_ok=True)
        try:
            yield
        finally:
            # Before the lock is free: afterwards the file may be another server's.
            (folder / STATE).unlink(missing_ok=True)
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    """Take the lock; a question whether it is held, which takes a moment, does not stand in the way."""
    if sys.platform == "win32":
        return True
    end = time.monotonic() + _ACQUIRE_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_PAUSE)
        else:
            return True


def is_held(folder: Path) -> bool:
    """Return whether a server has a data folder."""
    if sys.platform == "win32":
        return (folder / STATE).exists()
    try:
        file = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def write_state(folder: Path, state: State) -> None:
    """Say where a server listens; readers see all of it or nothing, and nobody else's user reads it."""
    fresh = folder / f".{STATE}.new"
    fresh.unlink(missing_ok=True)
    with os.fdopen(
        os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        json.dump(asdict(state), file)
    fresh.replace(folder / STATE)


def read_state(folder: Path) -> State | None:
    """Return what the state file says; ``None`` if there is none, or it is no such file."""
    try:
        return State(**json.loads((folder / STATE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def running(folder: Path) -> State | None:
    """Return the server of a data folder; ``None`` if none listens."""
    if not is_held(folder):
        return None
    state = read_state(folder)
    if state is None or process_start(state.pid) != state.started:
        return None
    return state


def stop(folder: Path) -> State | None:
    """Ask the server of a data folder to end, and wait until it has.

    :returns: the server that ran; ``None`` if none did.
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


def answers(state: State, seconds: float = 1.0) -> bool:
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
