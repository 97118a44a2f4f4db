"""What all transports have in common."""

from __future__ import annotations

import json
from typing import Any, Protocol

from npl_mcp import __version__

CALL_SECONDS = 600.0
"""How long a tool may take."""

WORKLOG_TOOLS = "worklog_"
"""Prefix of the tools that need the worklogs and nothing else."""


class Transport(Protocol):
    """One way to run a tool.

    :param name: for messages, as the subject of a sentence.
    :param local: it works on the data of this machine.
    """

    name: str
    local: bool

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool.

        :returns: ``{"success": True, "data": …}`` or ``{"success": False, "error": …, "error_code": …}``.
        :raises TransportError: there is no reply.
        """
        ...

    def close(self) -> None:
        """Release what the transport holds."""
        ...


class TransportError(Exception):
    """A server cannot be reached, or its answer cannot be used.

    :param problem: what is wrong; follows the transport's name in messages.
    :param sent: the whole call was sent, so it may have been carried out.
    :param absent: nothing listens there.
    """

    def __init__(self, problem: str, *, sent: bool = False, absent: bool = False) -> None:
        self.problem, self.sent, self.absent = problem, sent, absent
        super().__init__(problem)


def check_version(version: str | None) -> None:
    """Make sure that a server is an npl server with the same tools as this client.

    Versions that agree up to their second number have the same tools.

    :param version: what the server says; ``None`` if it is no npl server.
    :raises TransportError: it is not.
    """
    if version is None:
        raise TransportError("is not an npl server")
    if version.split(".")[:2] != __version__.split(".")[:2]:
        advice = "update the older one and restart the server"
        raise TransportError(f"has version {version[:40]}, but this client has {__version__}: {advice}")


def reply_of(text: str | bytes) -> dict[str, Any] | None:
    """Return the reply of a tool; ``None`` if the text is not a reply."""
    body = json_object(text)
    failed = body.get("success") is False and isinstance(body.get("error"), str) and "error_code" in body
    return body if failed or (body.get("success") is True and "data" in body) else None


def json_object(text: str | bytes) -> dict[str, Any]:
    """Read a JSON object; return an empty one if the text is not an object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
