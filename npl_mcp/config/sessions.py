"""The socket of a data folder's server of sessions: to declare a session, and to start the server.

Pipes import this module, so it imports the standard library alone.
"""

# ruff: noqa: PTH103, PTH109, PTH118, PTH120 - importing pathlib takes milliseconds

import json
import os
import socket
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

from npl_index.library.locks import lock
from npl_mcp import __version__
from npl_mcp.config.programs import SESSIONS, python

SOCKET, LOCK, LOG = "sessions.sock", "sessions.lock", "sessions.log"
POSSIBLE = sys.platform != "win32"
"""Whether Python has Unix sockets on this system."""

GREETING_BYTES = 1 << 20
"""Maximum bytes of a declaration, and of its answer."""

_START_SECONDS = 30.0

# Variables that mean the same to all sessions of a process.
_COMMON = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR", "TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")


class Meeting(NamedTuple):
    """A connection to the server, which has answered a declaration.

    :param answer: what the server says of itself, and whether it has ``accepted`` the session.
    """

    connection: socket.socket
    source: BinaryIO
    answer: dict[str, Any]


def common() -> dict[str, str | None]:
    """Return what all sessions of a server share, by name: the installed program, and variables."""
    program = {"version": __version__, "installation": os.path.dirname(__file__), "python": sys.executable}
    return {**program, **{name: os.environ.get(name) for name in _COMMON}}


def problem(folder: str) -> str | None:
    """Return why no server can listen in a data folder; ``None`` if it can."""
    path = os.path.join(folder, SOCKET)
    with suppress(OSError):
        return None if stat.S_ISSOCK(os.lstat(path).st_mode) else f"{path} is not a socket"
    return None if POSSIBLE else "there are no Unix sockets"


def meet(folder: str, words: Sequence[str], *, stays: bool = False, **more: Any) -> Meeting | None:
    """Declare a session to the server of a data folder; return ``None`` if none of this user answers.

    :param words: command line of the session, without the program's name.
    :param stays: whether messages follow; otherwise the server only describes itself.
    :param more: further parts of the declaration.
    """
    if sys.platform == "win32":
        return None
    own = {name: value for name, value in os.environ.items() if name.startswith("NPL_")}
    here, connection = os.getcwd(), socket.socket(socket.AF_UNIX)
    declared = {"common": common(), "words": [*words], "cwd": here, "environment": own}
    with suppress(OSError, ValueError):
        try:
            os.chdir(folder)  # the path of a socket has a hundred bytes at most
            connection.connect(SOCKET)
        finally:
            os.chdir(here)
        if is_own(connection):
            connection.settimeout(_START_SECONDS)
            line = json.dumps({**declared, **more, "process": os.getpid(), "stays": stays})
            connection.sendall(line.encode() + b"\n")
            source = connection.makefile("rb")
            answer = json.loads(source.readline(GREETING_BYTES))
            connection.settimeout(None)
            return Meeting(connection, source, answer)
    connection.close()
    return None


def ask(folder: str, **more: Any) -> dict[str, Any] | None:
    """Return what the server of a data folder says of itself; ``None`` if none answers.

    :param more: ``hints``, the arguments of ``npl_hints``, for its answer.
    """
    if (met := meet(folder, (), **more)) is None:
        return None
    with met.connection, met.source:
        return met.answer


def is_own(connection: socket.socket) -> bool:
    """Return whether this user is at the other end; without Linux, the mode of the socket must suffice."""
    if sys.platform != "linux":
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # unix(7): three integers
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.geteuid()


def start(folder: str, words: Sequence[str]) -> Meeting | None:
    """Declare a session to the server of a data folder, which starts now unless it runs.

    :param words: command line of the session, whose values of common settings the server has.
    :returns: ``None`` if the server does not start.
    :raises OSError: the folder cannot be used.
    """
    os.makedirs(folder, 0o700, exist_ok=True)
    child, end = None, time.monotonic() + _START_SECONDS
    while (met := meet(folder, words, stays=True)) is None and time.monotonic() < end:
        if child is not None and child.poll() is not None:
            break
        child = child or _spawn(folder, words)
        time.sleep(0.02)
    return met


def _spawn(folder: str, words: Sequence[str]) -> Any:
    """Start a server that holds the lock; return ``None`` while another one does."""
    import subprocess  # most sessions find a server

    file = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    log = os.open(os.path.join(folder, LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        lock(file, 0)
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        command = [*python(SESSIONS), *words]
        return subprocess.Popen(command, pass_fds=[file], start_new_session=True, **streams)
    except TimeoutError:
        return None
    finally:
        os.close(file)
        os.close(log)
