"""The server of sessions in commands: what it says of itself, and its end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from npl_mcp.config import sessions
from npl_mcp.http.service import STOP_SECONDS

_PAUSE = 0.02


def session_lines(server: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about the server of sessions, each session, and each that needs a process of its own.

    :param server: value of :func:`npl_mcp.config.sessions.ask`.
    """
    rows = server["sessions"]
    yield f"{_counted(len(rows))} in process {server['process']}{_memory(server)}"
    for row in rows:
        writes = ", writes" if row["write"] else ""
        age = f"{row['age_seconds'] // 60} min"
        yield f"  {row['documents']}{writes}: pipe {row['process']}{_memory(row)}, {age}"
    for folder, reason in server["refused"].items():
        yield f"  {folder}: has a process of its own, because {reason}"


def _counted(number: int) -> str:
    return f"{number} session" if number == 1 else f"{number} sessions"


def _memory(row: Mapping[str, Any]) -> str:
    used = row["memory_bytes"]
    return "" if used is None else f", {used / 1e6:.0f} MB"


def stop_sessions(folder: Path) -> str | None:
    """End the server of sessions of a data folder; return what has ended, ``None`` without such a server.

    :raises TimeoutError: it has not ended.
    :raises OSError: it does not answer, or is another user's.
    """
    server = sessions.ask(str(folder))
    if server is None:
        return None
    pid = server["process"]
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS
    # The next message of a client starts another one.
    while (other := sessions.ask(str(folder))) is not None and other["process"] == pid:
        if time.monotonic() > end:
            raise TimeoutError(f"process {pid} has not ended")
        time.sleep(_PAUSE)
    return f"{_counted(len(server['sessions']))} (process {pid})"
