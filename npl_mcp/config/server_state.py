"""The state file of a data folder: where its server listens, and how the server is recognised.

A server holds a lock on ``server.lock`` as long as it runs, so there are never two; the system releases the
lock however the server ends. If nobody holds it the state file is stale, and where it points to somebody else
may listen by now.
"""

# Not "from __future__ import annotations": a NamedTuple compiles annotations that are texts, and the first
# compilation costs a command two milliseconds.

import json
import os
import stat
from typing import NamedTuple

from npl_index.library.locks import lock

STATE_FILE = "server.json"
LOCK = "server.lock"

_MAX_BYTES = 64 * 1024


# A named tuple, and no data class: those take longer to import than a server takes to answer.
class ServerState(NamedTuple):
    """A running server, as it describes itself.

    :param url: of its port, without a path.
    :param socket: path of its Unix socket.
    :param pid: its process.
    :param started: when the process started, in clock ticks since boot; ``None`` where the system
        does not tell. It tells the process from a later one with the same number.
    :param since: when the server began to listen, in seconds since the epoch.
    :param version: of the server.
    :param token: proves to the server that a caller can read this file.
    :param guarded: callers of the port need a token.
    :param places: where the server looks for files; see :func:`npl_mcp.config.settings.search_places`.
    :param pages: address of the pages for people, if there are any; without a final slash.
    :param serves: see :attr:`~npl_mcp.config.settings.Settings.serves`.
    :param flags: what it was started with, as an object of JSON that means the same in any folder.
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
    flags: str = "{}"

    def __repr__(self) -> str:
        """Leave out the token, which must not get into a log."""
        return f"ServerState(url={self.url!r}, socket={self.socket!r}, pid={self.pid})"


def read_state(folder: str | os.PathLike[str], *, only_own: bool = False) -> ServerState | None:
    """Read the state file of a data folder.

    :param only_own: do not trust a file that another user owns or can write: it could send this user's calls
        to somebody else's server.
    :returns: ``None`` if there is none that can be read.
    """
    try:
        # A path object costs more than the system call it is made for.
        with open(os.path.join(folder, STATE_FILE), "rb") as file:  # noqa: PTH118, PTH123
            if only_own and not _is_own(os.fstat(file.fileno())):
                return None
            body = json.loads(file.read(_MAX_BYTES))
        # A server of another version may write more fields.
        state = ServerState(**{name: body[name] for name in ServerState._fields if name in body})
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return state if _is_usable(state) else None


def _is_own(found: os.stat_result) -> bool:
    if os.name == "nt":
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_usable(state: ServerState) -> bool:
    texts: tuple[object, ...] = (state.url or "", state.socket or "", state.pages or "", state.token)
    texts += (state.places, state.serves, state.flags)
    addressed = bool(state.url or state.socket)
    return addressed and isinstance(state.pid, int) and all(isinstance(text, str) for text in texts)


def running_server(folder: str | os.PathLike[str], *, only_own: bool = False) -> ServerState | None:
    """Return the running server of a data folder; ``None`` if there is none.

    :param only_own: as for :func:`read_state`.
    """
    if not is_held(folder):
        return None
    state = read_state(folder, only_own=only_own)
    # The lock may be held by a server that has not yet written its own state: the file is then that of an
    # earlier one, whose process number another process can have by now. It must never be stopped.
    if state is None or process_start(state.pid) != state.started:
        return None
    return state


def is_held(folder: str | os.PathLike[str]) -> bool:
    """Return whether a server holds a data folder's lock."""
    try:
        file = os.open(os.path.join(folder, LOCK), os.O_RDWR)  # noqa: PTH118 - see read_state
    except OSError:
        return False
    try:
        can_lock = lock(file, 0, shared=True)
    except TimeoutError:
        return True
    finally:
        os.close(file)
    # Where nothing can be locked the process alone must do.
    return not can_lock and os.path.exists(os.path.join(folder, STATE_FILE))  # noqa: PTH110, PTH118


def process_start(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; ``None`` if the system does not tell.

    Source: proc(5), field 22 of ``/proc/PID/stat``.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            # The name in parentheses may hold anything.
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
