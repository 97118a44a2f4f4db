"""The socket of a data folder's server of sessions: to declare a session, start the server, and ask it.

Pipes import this module, so it imports the standard library alone.
"""

# ruff: noqa: PTH103, PTH108, PTH109, PTH116, PTH120 - importing pathlib takes milliseconds

import json
import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from npl_index.library.locks import lock
from npl_mcp import __version__
from npl_mcp.config.programs import SESSIONS, python

SOCKET, LOCK, LOG = "sessions.sock", "sessions.lock", "sessions.log"

GREETING_BYTES = 1 << 20
"""Maximum bytes of the first line of a connection, and of its answer."""

START_SECONDS = 30.0
"""Seconds for a server to start, and to take a session."""

POSSIBLE = hasattr(socket, "AF_UNIX")
"""Whether the system has Unix sockets."""

_ASK_SECONDS = 2.0
_BACKLOG = 128

# Variables that mean the same to all sessions of a process.
_COMMON = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR", "TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")


def common() -> dict[str, str | None]:
    """Return what all sessions of a server share, by name: the installed program, and variables."""
    program = {"version": __version__, "installation": os.path.dirname(os.path.dirname(__file__))}
    return {**program, "interpreter": sys.executable, **{name: os.environ.get(name) for name in _COMMON}}


def differing(common: Mapping[str, str | None], other: Mapping[str, str | None]) -> list[str]:
    """Return the names of common values that differ from another process's."""
    return [name for name, value in common.items() if other.get(name) != value]


def declaration(words: Sequence[str]) -> bytes:
    """Return the first line of a session.

    :param words: command line of the session, without the program's name.
    """
    own = {name: value for name, value in os.environ.items() if name.startswith("NPL_")}
    line = {"common": common(), "words": [*words], "cwd": os.getcwd(), "environment": own}
    return json.dumps(line).encode() + b"\n"


def owner(connection: socket.socket) -> tuple[int | None, int | None]:
    """Return the process and the user at the other end; ``None`` where the system does not tell."""
    if sys.platform != "linux":
        return None, None
    size = struct.calcsize("3i")
    pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid, user


def is_own(connection: socket.socket) -> bool:
    """Return whether this user is at the other end, as far as the system tells."""
    return owner(connection)[1] in (None, os.geteuid())


@contextmanager
def inside(folder: str) -> Iterator[None]:
    """Change to a folder for a while: the path of a socket may have a hundred bytes."""
    before = os.open(os.curdir, getattr(os, "O_PATH", os.O_RDONLY))
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def connect(folder: str) -> socket.socket | None:
    """Connect to the server of sessions of a data folder; return ``None`` if none runs.

    :raises OSError: the server is not this user's alone, or does not answer.
    """
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), inside(folder):
        return _connected()
    return None


def _connected() -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_ASK_SECONDS)
        connection.connect(SOCKET)
        if not is_own(connection):
            raise OSError("another user listens in the data folder")
        _check_folder()
        connection.settimeout(None)
        return connection
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError:
        connection.close()
        raise


def _check_folder() -> None:
    status = os.stat(os.curdir)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise OSError("others may write to the data folder")


def start(folder: str, words: Sequence[str]) -> socket.socket | None:
    """Start the server of a data folder unless it runs; return a connection, which it accepts later.

    This process listens until the server does: so of many that start at once, only the first starts it.

    :param words: command line of the first session; the server has its settings of the whole process.
    :raises OSError: the folder cannot be used.
    """
    import subprocess  # most sessions find a server

    os.makedirs(folder, 0o700, exist_ok=True)
    here = os.getcwd()
    with inside(folder):
        _check_folder()
        file = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock(file, START_SECONDS)
            if (connection := _connected()) is not None:
                return connection
            with suppress(FileNotFoundError):
                os.unlink(SOCKET)
            before = os.umask(0o177)
            try:
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(SOCKET)
            finally:
                os.umask(before)
            listener.listen(_BACKLOG)
            log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with listener:
                subprocess.Popen(
                    [*python(SESSIONS), str(listener.fileno()), *words],
                    cwd=here,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[listener.fileno()],
                    start_new_session=True,
                )
                os.close(log)
                return _connected()
        finally:
            os.close(file)


def ask(folder: str) -> dict[str, Any] | None:
    """Return what the server of a data folder says of itself and its sessions; ``None`` without one.

    :raises OSError: it does not answer.
    """
    connection = connect(folder) if POSSIBLE else None
    if connection is None:
        return None
    with connection, connection.makefile("rb") as source:
        connection.settimeout(_ASK_SECONDS)
        connection.sendall(b"{}\n")
        try:
            answer: dict[str, Any] = json.loads(source.readline(GREETING_BYTES))
        except ValueError:
            raise ConnectionError("the server of sessions gives no answer") from None
        return answer
