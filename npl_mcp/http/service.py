"""One server per data folder: its lock, its state file, the need for a token, and its end."""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.library.files import Folder
from npl_index.library.locks import lock
from npl_mcp.config import sessions
from npl_mcp.config.server_state import LOCK, STATE_FILE, ServerState, is_locked, running_server
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base.errors import StorageError, StoreError
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.data_folder import Stores

LOG = "server.log"

BACKLOG = 2048
"""Connections that may wait to be accepted."""

STOP_SECONDS = 6.0
"""Maximum seconds that ``stop`` waits; a server ends within two seconds."""

_ACQUIRE_SECONDS = 0.5
_PAUSE = 0.02

FIRST_PERSON = 1_000
"""The lowest user number of people; lower numbers belong to the system and its services."""

_NO_SHELLS = ("/nologin", "/false", "/sync", "/true")


class AlreadyRunningError(NPLError):
    """Another server uses the data folder."""


def check(settings: Settings) -> None:
    """Make sure that access is not open to a whole network, and that the database is that of the project.

    :raises InvalidRequestError: a token is missing, or the database stores another project.
    """
    _check_project(settings)
    if _is_public(settings) and settings.token is None and not has_tokens(settings):
        problem = f"{settings.host} can be reached from other machines, so callers need a token"
        hint = "make some with npl-mcp token add, set NPL_MCP_TOKEN, or listen on 127.0.0.1"
        raise InvalidRequestError(problem, hint=hint)


def _check_project(settings: Settings) -> None:
    """Refuse to share a database with servers of another project; the first one to start stores its own.

    :raises InvalidRequestError: the database stores another project.
    """
    if settings.database_url is None:
        return
    project = str(settings.worklog_project)
    # The server starts without its database, and waits for it.
    with suppress(StoreError), closing(database_of(settings.data_folder, settings.database_url)) as database:
        with database.write() as tx:
            known = tx.value("SELECT project FROM deployment") or project
            tx.insert("deployment", "project", "project", project=known)
        if known != project:
            problem = f"the database is for the project {known}, and this server is for {project}"
            raise InvalidRequestError(problem, hint=f"set NPL_PROJECT={known}")


def has_tokens(settings: Settings) -> bool:
    """Return whether single callers have tokens; this creates no data folder.

    :raises DatabaseError: the database cannot be read.
    """
    with closing(Stores(settings.data_folder, settings.database_url)) as stores:
        return stores.identities() is not None


def needs_token(settings: Settings) -> bool:
    """Return whether callers of the port need a token although the settings have no token.

    A port is open to every account of the machine; the state file with its token is open to this one only.
    """
    is_open = settings.port is not None and not settings.no_token
    return _is_public(settings) or (is_open and _others_log_in())


def _is_public(settings: Settings) -> bool:
    return settings.port is not None and not is_loopback(settings.host)


def _others_log_in() -> bool:
    """Return whether people other than this user have an account."""
    if sys.platform == "win32":
        return False
    import pwd  # not everywhere

    people = (account for account in pwd.getpwall() if account.pw_uid >= FIRST_PERSON)
    others = (account for account in people if account.pw_uid != os.geteuid())
    return not all(account.pw_shell.endswith(_NO_SHELLS) for account in others)


def is_loopback(host: str) -> bool:
    """Return whether an address or a name is reachable only from this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return host == "localhost"


class FolderLock:
    """A data folder's lock, while this process holds it.

    :param folder: the data folder.
    :param file: the folder's open lock file.
    """

    def __init__(self, folder: Path, file: int) -> None:
        self._folder, self._file = folder, file

    def lost(self) -> bool:
        """Return whether the folder or the lock file is gone: another server may then start in its place."""
        try:
            return not os.path.samestat((self._folder / LOCK).stat(), os.fstat(self._file))
        except OSError:
            return True

    def remove_state(self) -> None:
        """Remove the state file, unless another server may own it."""
        if not self.lost():
            with suppress(OSError):
                (self._folder / STATE_FILE).unlink(missing_ok=True)


@contextmanager
def hold(folder: Path) -> Iterator[FolderLock]:
    """Hold the data folder's lock, and remove its state file before and after.

    :param folder: the data folder, created if it does not exist.
    :raises AlreadyRunningError: another server holds the lock.
    :raises StorageError: the folder cannot be used.
    """
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    with ExitStack() as stack:
        stack.callback(os.close, file)
        try:
            # is_locked() has a shared lock for a moment, so one failure does not mean that a server runs.
            lock(file, _ACQUIRE_SECONDS)
        except TimeoutError:
            hint = "npl-mcp-server status shows it"
            raise AlreadyRunningError(f"a server of {folder} is running", hint=hint) from None
        with writing_to(folder):
            (folder / STATE_FILE).unlink(missing_ok=True)
        folder_lock = FolderLock(folder, file)
        stack.callback(folder_lock.remove_state)
        yield folder_lock


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn the system's errors about a data folder into messages.

    :raises StorageError: the folder cannot be written.
    """
    try:
        yield
    except OSError as error:
        problem = f"the data folder {folder} cannot be written: {error.strerror or type(error).__name__}"
        raise StorageError(problem, hint="choose another with --data-dir") from None


def write_state(folder: Path, state: ServerState) -> None:
    """Write the state file atomically, without access for other users.

    :raises StorageError: the folder cannot be used.
    """
    with writing_to(folder), Folder.opened(folder) as place:
        place.remove_temporaries()
        # An existing file of this name would keep its permissions, and the token is only for this user.
        (folder / STATE_FILE).unlink(missing_ok=True)
        place.replace(STATE_FILE, json.dumps(state._asdict()).encode(), mode=0o600, durable=False)


def stop(folder: Path) -> ServerState | None:
    """Stop the server of a data folder, and wait until it has ended.

    :returns: the stopped server; ``None`` if the folder had no server.
    :raises TimeoutError: the server has not ended.
    """
    state = running_server(folder)
    if state is not None:
        _end(state.pid, partial(is_locked, folder))
    return state


def bind_path(path: Path) -> socket.socket:
    """Listen on a Unix socket that only this user can reach.

    :param path: the socket's path; an abandoned socket there is replaced, any other file is kept.
    :raises InvalidRequestError: the path cannot be used; the message gives the reason.
    """
    with listening_on(str(path), "choose a shorter path of a new file, at most 100 bytes"):
        mode = path.absolute().parent.stat().st_mode
        if mode & 0o022 and not mode & stat.S_ISVTX:
            problem = f"others may write to the folder of {path}"
            raise InvalidRequestError(problem, hint="choose a folder of your own")
        if path.is_socket() and not _is_listened_on(path):
            path.unlink()
        # A umask, since with chmod afterwards others could connect for a moment.
        before = os.umask(0o177)
        try:
            return socket.create_server(str(path), family=socket.AF_UNIX, backlog=BACKLOG)
        finally:
            os.umask(before)


@contextmanager
def listening_on(address: str, hint: str) -> Iterator[None]:
    """Turn the system's errors about an address into messages.

    :param hint: a remedy.
    :raises InvalidRequestError: the address cannot be used.
    """
    try:
        yield
    except OSError as error:
        # Python adds the address to the system's message.
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise InvalidRequestError(f"{address} cannot be listened on: {reason}", hint=hint) from None


def _is_listened_on(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        return client.connect_ex(str(path)) == 0


def stop_sessions(folder: Path) -> dict[str, Any] | None:
    """Stop the server of sessions of a data folder; return what it said of itself, ``None`` without one.

    :raises TimeoutError: it has not ended.
    """
    server = sessions.ask(str(folder))
    if server is not None:
        process, runs = server["process"], partial(is_locked, folder, sessions.LOCK)
        # The next message of a client starts another one.
        _end(process, lambda: runs() and (sessions.ask(str(folder)) or server)["process"] == process)
    return server


def _end(process: int, runs: Callable[[], bool]) -> None:
    os.kill(process, signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS
    while runs():
        if time.monotonic() > end:
            raise TimeoutError(f"process {process} has not ended")
        time.sleep(_PAUSE)
