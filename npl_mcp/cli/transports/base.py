"""The protocol of transports, their errors, and the reading of replies."""

from __future__ import annotations

import json
from typing import Any, Protocol

from npl_mcp import __version__

CALL_SECONDS = 600.0
"""Time limit of a call."""

WORKLOG_TOOLS = "worklog_"
"""Prefix of the tools that need only the worklogs."""


LIBRARY_TOOLS = "library_"
"""Prefix of the tools that need only the libraries."""


class Transport(Protocol):
    """A way to call tools.

    :param name: name for messages, as the subject of a sentence.
    :param local: whether it works on the data of this machine.
    """

    name: str
    local: bool

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool.

        :returns: ``{"success": True, "data": …}`` or ``{"success": False, "error": …, "error_code": …}``.
        :raises TransportError: no reply came.
        """
        ...

    def close(self) -> None:
        """Release the resources of the transport."""
        ...


class TransportError(Exception):
    """A server that cannot be reached, or whose answer cannot be used.

    :param problem: predicate of a sentence whose subject is the transport's name.
    :param sent: whether the whole call was sent, so that the tool may have run.
    :param absent: whether no server listens at the address.
    """

    def __init__(self, problem: str, *, sent: bool = False, absent: bool = False) -> None:
        self.problem, self.sent, self.absent = problem, sent, absent
        super().__init__(problem)


def check_version(version: str | None) -> None:
    """Check that a server is an npl server with the same tools as this client.

    Versions with equal first and second numbers have the same tools.

    :param version: version of the server; ``None`` if it is not an npl server.
    :raises TransportError: the version differs, or it is not an npl server.
    """
    if version is None:
        raise TransportError("is not an npl server")
    if version.split(".")[:2] != __version__.split(".")[:2]:
        advice = "update the older one and restart the server"
        raise TransportError(f"has version {version[:40]}, but this client has {__version__}: {advice}")


def reply_of(text: str | bytes) -> dict[str, Any] | None:
    """Return the reply of a tool; ``None`` for other texts."""
    body = json_object(text)
    failed = body.get("success") is False and isinstance(body.get("error"), str) and "error_code" in body
    return body if failed or (body.get("success") is True and "data" in body) else None


def json_object(text: str | bytes) -> dict[str, Any]:
    """Read a JSON object; other texts give an empty one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
