"""The protocol of transports, the addresses of servers, errors, and the reading of replies."""

# Without "from __future__ import annotations": a NamedTuple compiles annotations that are strings, and the
# first compilation costs a command two milliseconds.

import json
import re
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

from npl_mcp import __version__

CALL_SECONDS = 600.0
"""Time limit of a call."""

WORKLOG_TOOLS = "worklog_"
"""Prefix of the tools that need only the worklogs."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

# Only printable ASCII may reach the head of a request.
_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(/[!\"$->@-~]*)?")


class Address(NamedTuple):
    """The address of a server.

    :param text: address in the user's form.
    :param host: host name or number; empty for a Unix socket.
    :param port: TCP port.
    :param path: path of the Unix socket.
    :param prefix: path of the URL before ``/mcp``.
    :param secure: whether the server uses TLS.
    """

    text: str
    host: str
    port: int
    path: str = ""
    prefix: str = ""
    secure: bool = False

    @property
    def local(self) -> bool:
        """Whether the server is on this machine, without TLS."""
        return self.host in ("", *LOOPBACK) and not self.secure

    def same_in(self, others: "Iterable[Address]") -> "Address | None":
        """Return the first of some addresses that is the same; spelling does not count, nor ``localhost``."""
        host = "127.0.0.1" if self.host == "localhost" else self.host
        return next((other for other in others if self._replace(host=host)[1:] == other[1:]), None)


def parse_address(text: str) -> Address | None:
    """Return the address of a server; ``None`` for other texts.

    :param text: ``http://host:port``, with or without ``/mcp`` at its end, ``https://…``, or ``unix:/path``.
    """
    if text.startswith("unix:"):
        usable = bool(text[5:]) and hasattr(socket, "AF_UNIX")  # not every system has such sockets
        return Address(text, "", 0, path=text[5:]) if usable else None
    match = _URL.fullmatch(text)
    if match is None:
        return None
    scheme, host, port, path = match.groups()
    number = int(port) if port else {"http": 80, "https": 443}[scheme]
    if not 0 < number < 65536:
        return None
    prefix = (path or "").rstrip("/").removesuffix("/mcp").rstrip("/")
    return Address(text, host.strip("[]").lower(), number, prefix=prefix, secure=scheme == "https")


class Transport(ExitStack):
    """A way to call tools; its end releases what it has opened.

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
        raise NotImplementedError


class TransportError(Exception):
    """A server that cannot be reached, or whose answer cannot be used.

    :param problem: predicate of a sentence whose subject is the transport's name.
    :param sent: whether the whole call was sent, so that the tool may have run.
    :param absent: whether no server listens at the address.
    """

    def __init__(self, problem: str, *, sent: bool = False, absent: bool = False) -> None:
        self.problem, self.sent, self.absent = problem, sent, absent
        super().__init__(problem)


def check_version(version: object) -> None:
    """Check that a server is an npl server with the same tools as this client.

    Versions with equal first and second numbers have the same tools.

    :param version: version of the server; no text if it is not an npl server.
    :raises TransportError: the version differs, or it is not an npl server.
    """
    if not isinstance(version, str):
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
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
