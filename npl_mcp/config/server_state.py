"""The state file of a data folder: the address of its server, and the proof that it runs.

A server holds a lock on ``server.lock`` while it runs, so a folder never has two servers; at its end, the
system releases the lock. Without the lock the state file is stale, and another program may listen at the
address.
"""

# Without "from __future__ import annotations": a NamedTuple compiles annotations that are strings, and the
# first compilation costs a command two milliseconds.

import json
import os
import stat
from typing import NamedTuple

from npl_index.library.locks import lock

STATE_FILE = "server.json"
LOCK = "server.lock"

_MAX_BYTES = 64 * 1024


# Not a dataclass: importing dataclasses takes longer than a server's answer.
class ServerState(NamedTuple):
    """A running server's description of itself.

    :param url: address of its port, without a path.
    :param socket: path of its Unix socket.
    :param pid: number of its process.
    :param started: start of the process in clock ticks since boot, which distinguishes it from a later
        process with the same number; ``None`` on systems without this number.
    :param since: time when the server began to listen, in seconds since the epoch.
    :param version: version of the server.
    :param token: token of callers that can read this file.
    :param guarded: whether callers of the port need a token.
    :param places: value of :func:`npl_mcp.config.settings.search_places` in the server.
    :param pages: address of the pages for people without a final slash; ``None`` without pages.
    :param serves: value of :attr:`~npl_mcp.config.settings.Settings.serves`.
    :param given: value of :attr:`~npl_mcp.config.settings.Settings.given`; empty of earlier versions.
    """

    url: str | None
    socket: str | None
    pid: int
    started: int | None
    since: float
    version: str
    token: str
    guarded: bool = False
    places: str = ""
    pages: str | None = None
    serves: str = ""
    given: str = ""

    @property
    def place(self) -> str:
        """The address for calls. The mode of a socket's file limits who can connect, so it comes first."""
        return f"unix:{self.socket}" if self.socket else str(self.url)

    def __repr__(self) -> str:
        """Return a text without the token, which must not get into a log."""
        return f"ServerState(url={self.url!r}, socket={self.socket!r}, pid={self.pid})"


def read_state(folder: str | os.PathLike[str], *, only_own: bool = False) -> ServerState | None:
    """Read the state file of a data folder.

    :param only_own: whether to ignore a file that another user owns or can write: it could send this user's
        calls to a foreign server.
    :returns: ``None`` without a valid file.
    """
    try:
        # A path object costs more than the system call.
        with open(os.path.join(folder, STATE_FILE), "rb") as file:  # noqa: PTH118, PTH123
            if only_own and not _is_own(os.fstat(file.fileno())):
                return None
            body = json.loads(file.read(_MAX_BYTES))
        # Servers of other versions may write more fields.
        state = ServerState(**{name: body[name] for name in ServerState._fields if name in body})
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return state if _is_usable(state) else None


def _is_own(status: os.stat_result) -> bool:
    if os.name == "nt":
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_usable(state: ServerState) -> bool:
    texts: tuple[object, ...] = (state.url or "", state.socket or "", state.pages or "", state.token)
    texts += (state.places, state.serves, state.given)
    addressed = bool(state.url or state.socket)
    return addressed and isinstance(state.pid, int) and all(isinstance(text, str) for text in texts)


def running_server(folder: str | os.PathLike[str], *, only_own: bool = False) -> ServerState | None:
    """Return the running server of a data folder; ``None`` without one.

    :param only_own: see :func:`read_state`.
    """
    if not is_locked(folder):
        return None
    state = read_state(folder, only_own=only_own)
    # A server that has the lock may not have written its state yet: then the file is from an earlier server,
    # and another process, which must never be stopped, may have that server's process number.
    if state is None or process_start(state.pid) != state.started:
        return None
    return state


def is_locked(folder: str | os.PathLike[str], name: str = LOCK) -> bool:
    """Return whether a server holds a data folder's lock.

    :param name: name of the lock's file.
    """
    try:
        file = os.open(os.path.join(folder, name), os.O_RDWR)  # noqa: PTH118 - see read_state
    except OSError:
        return False
    try:
        can_lock = lock(file, 0, shared=True)
    except TimeoutError:
        return True
    finally:
        os.close(file)
    # On a file system without locks, only the process number remains as a proof.
    return not can_lock and os.path.exists(os.path.join(folder, STATE_FILE))  # noqa: PTH110, PTH118


def process_start(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot; ``None`` on systems without ``/proc``.

    Source: proc(5), field 22 of ``/proc/PID/stat``.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            # The name in parentheses may have any characters.
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
