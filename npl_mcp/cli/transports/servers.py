"""A server that runs: where it is, whether it is ours, and what its tools answer.

A server proves first that it is there, ours and of our version, by what ``/healthz`` answers; the token and
the call go over the same connection afterwards. So a call is only sent to a server that answers, and one that
was not sent can be made elsewhere.
"""

# A path object costs more than the system call it is made for.
# ruff: noqa: PTH123

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from typing import Any, NamedTuple

from npl_mcp import __version__
from npl_mcp.cli.transports.far import FarLine
from npl_mcp.cli.transports.wire import Address, Answer, Line, WireError

GREETING = 1.0
"""Seconds a server has to prove itself."""

ANSWER = 600.0
"""Seconds a tool may take."""

LONGEST_STATE = 64 * 1024
"""Bytes of it."""


class State(NamedTuple):
    """What a server says of itself in its data folder.

    :param place: its address as text; see :func:`~npl_mcp.cli.transports.wire.address`.
    :param url: its URL, if it listens on a port.
    :param token: proves to it that the caller is the user who runs it.
    :param places: see :class:`~npl_mcp.config.connection.Reach`.
    """

    place: str
    url: str
    token: str
    places: str = ""


def read_state(path: str) -> State | None:
    """Read a state file.

    :returns: ``None`` if there is none, or one that others could have written.
    """
    try:
        with open(path, "rb") as file:
            if not _is_own(os.fstat(file.fileno())):
                return None
            body = _object(file.read(LONGEST_STATE))
    except OSError:
        return None
    texts = {name: value for name, value in body.items() if isinstance(value, str)}
    url, socket = texts.get("url", ""), texts.get("socket", "")
    if not (socket or url):
        return None
    place = f"unix:{socket}" if socket else url
    return State(place, url, texts.get("token", ""), texts.get("places", ""))


def _is_own(found: os.stat_result) -> bool:
    """Return whether a file is this user's and nobody else can write it."""
    if os.name == "nt":
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def check_version(version: str | None) -> None:
    """Make sure that who answers is a server of ours, and speaks as this client does.

    Versions that agree up to their second number have the same tools.

    :param version: as the server gave it; ``None`` if it gave none.
    :raises WireError: it is not.
    """
    if version is None:
        raise WireError("is no server of npl")
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise WireError(
            f"has version {version[:40]} and this is {__version__}: update the older, restart the server"
        )


def check_greeting(greeting: Answer) -> None:
    """Make sure of a server by its answer to ``GET /healthz``.

    :raises WireError: see :func:`check_version`, or it is not ready.
    """
    body = _object(greeting.body)
    version = body.get("version") if body.get("name") == "npl" else None
    check_version(version if isinstance(version, str) else None)
    if greeting.status != 200:
        raise WireError(f"is not ready (status {greeting.status})")


AT_THE_DOOR = (401, 413, 421, 429, 503)
"""Statuses of calls that were sent away before they were looked at."""


def envelope(answer: Answer) -> dict[str, Any]:
    """Read what a tool answered.

    :returns: ``{"success": True, "data": …}`` or ``{"success": False, "error": …, "error_code": …}``.
    :raises WireError: no tool answered; a call that was sent away counts as not sent.
    """
    body = _object(answer.body)
    error = body.get("error")
    failed = body.get("success") is False and isinstance(error, str) and "error_code" in body
    if answer.status in AT_THE_DOOR or "npl-cwd" in answer.headers:
        raise WireError(f"does not let the call in: {error if failed else f'status {answer.status}'}")
    if failed or (answer.status == 200 and body.get("success") is True and "data" in body):
        return body
    if answer.status == 404:
        raise WireError("does not know the tool")
    raise WireError(f"sent what is no answer of a tool (status {answer.status})", sent=True)


def _object(data: bytes) -> dict[str, Any]:
    """Read a JSON object; empty if it is none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def call(where: Address, tool: str, arguments: bytes, headers: Mapping[str, bytes]) -> dict[str, Any]:
    """Call a tool of a server.

    :param arguments: a JSON object.
    :param headers: of the call alone; the greeting says nothing of the caller.
    :returns: the envelope.
    :raises WireError: there is no answer of a tool.
    """
    line = Line(where) if where.local else FarLine(where)
    try:
        check_greeting(line.ask("GET", f"{where.prefix}/healthz", {}, b"", GREETING))
        given = {"Content-Type": b"application/json", "Connection": b"close", **headers}
        return envelope(line.ask("POST", f"{where.prefix}/mcp/tools/{tool}", given, arguments, ANSWER))
    finally:
        line.close()
