"""Addresses of servers."""

# Without "from __future__ import annotations": a NamedTuple compiles annotations that are strings, and the
# first compilation costs a command two milliseconds.

import re
import socket
from typing import NamedTuple

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

    def same_as(self, *others: "Address | None") -> bool:
        """Return whether one of the others is the same address; their spelling does not count."""
        return any(other is not None and self[1:] == other[1:] for other in others)


def parse_address(text: str) -> Address | None:
    """Return the address of a server; ``None`` for other texts.

    :param text: ``http://host:port``, with or without ``/mcp`` at its end, ``https://…``, or ``unix:/path``.
    """
    if text.startswith("unix:"):
        usable = bool(text[5:]) and hasattr(socket, "AF_UNIX")  # not every system has such sockets
        return Address(text, "", 0, path=text[5:]) if usable else None
    found = _URL.fullmatch(text)
    if found is None:
        return None
    scheme, host, port, path = found.groups()
    number = int(port) if port else {"http": 80, "https": 443}[scheme]
    if not 0 < number < 65536:
        return None
    prefix = (path or "").rstrip("/").removesuffix("/mcp").rstrip("/")
    return Address(text, host.strip("[]").lower(), number, prefix=prefix, secure=scheme == "https")
