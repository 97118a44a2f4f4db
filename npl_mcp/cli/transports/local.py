"""HTTP to a server on this machine, over loopback or a Unix socket."""

# Not "from __future__ import annotations": a NamedTuple compiles annotations that are texts, and the first
# compilation costs a command two milliseconds.

import socket
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, NamedTuple

from npl_mcp import __version__
from npl_mcp.cli.transports.addresses import Address
from npl_mcp.cli.transports.base import TransportError

CONNECT_SECONDS = 0.25
MAX_BODY_BYTES = 64 * 1024 * 1024
"""Longest answer; the largest artifact fits several times."""

USER_AGENT = f"npl-cli/{__version__}"
_BLOCK = 64 * 1024


class Answer(NamedTuple):
    """What a server sent.

    :param status: HTTP status code.
    :param headers: their names, in small letters.
    :param body: its bytes.
    """

    status: int
    headers: frozenset[str]
    body: bytes


class LocalConnection:
    """A connection to a server on this machine. It uses no proxy, and never connects a second time.

    :param address: of the server.
    :raises TransportError: nothing listens there.
    """

    def __init__(self, address: Address) -> None:
        self._http = HTTPConnection(address.host or "localhost", address.port or None)
        # Otherwise a server that closes after the greeting would get the call over a new connection, where
        # another process may listen by then; for a Unix socket it would even be port 80.
        self._http.auto_open = 0
        try:
            self._http.sock = self._socket = _connected(address)
        except TimeoutError:
            raise TransportError(f"does not answer within {CONNECT_SECONDS:g} s") from None
        except (OSError, ValueError) as error:  # ValueError: an impossible host name, a path with a NUL
            reason = getattr(error, "strerror", None) or str(error)
            raise TransportError(f"cannot be reached: {reason}", absent=True) from None

    def close(self) -> None:
        """Close the connection."""
        self._http.close()
        self._socket.close()

    def request(
        self, method: str, path: str, headers: Mapping[str, bytes], body: bytes, seconds: float
    ) -> Answer:
        """Send a request and return its answer.

        :param headers: values without control characters; http.client adds ``Host`` and ``Content-Length``.
        :param seconds: for sending, and again for receiving.
        :raises TransportError: there is no answer, or it is too long.
        """
        sent = False
        try:
            self._socket.settimeout(seconds)
            self._http.request(method, path, body or None, {"User-Agent": USER_AGENT.encode(), **headers})
            sent = method != "GET"  # which changes nothing
            self._socket.deadline = time.monotonic() + seconds
            with self._http.getresponse() as response:
                names = frozenset(map(str.lower, response.headers))
                return Answer(response.status, names, _body(response))
        except TimeoutError:
            raise TransportError(f"does not answer within {seconds:g} s", sent=sent) from None
        except (OSError, HTTPException) as error:
            problem = f"closed the connection: {error or type(error).__name__}"
            raise TransportError(problem, sent=sent) from None
        except _TooLongError:
            raise TransportError(f"answers with more than {MAX_BODY_BYTES >> 20} MiB", sent=sent) from None


class _TooLongError(Exception):
    """The body is longer than :data:`MAX_BODY_BYTES`."""


class _Socket(socket.socket):
    """A socket that receives until a deadline. Its timeout alone would start again with every byte."""

    deadline = 0.0

    def recv_into(self, *arguments: Any) -> int:
        """Receive bytes; see :meth:`socket.socket.recv_into`."""
        self.settimeout(max(self.deadline - time.monotonic(), 0.001))
        return super().recv_into(*arguments)


def _connected(address: Address) -> _Socket:
    if address.host:
        connection = socket.create_connection((address.host, address.port), CONNECT_SECONDS)
        # http.client sends head and body one after the other; the system would hold the body back until the
        # server has acknowledged the head, which takes 40 ms.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _Socket(fileno=connection.detach())
    unix = _Socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        unix.settimeout(CONNECT_SECONDS)
        unix.connect(address.path)
    except BaseException:
        unix.close()
        raise
    return unix


def _body(response: HTTPResponse) -> bytes:
    """Read in small parts, so that the limit also holds for a body that announces a false length, or none."""
    if (response.length or 0) > MAX_BODY_BYTES:
        raise _TooLongError
    data = bytearray()
    while part := response.read1(_BLOCK):
        data += part
        if len(data) > MAX_BODY_BYTES:
            raise _TooLongError
    if response.length:  # read1 reports no missing bytes
        raise HTTPException("the answer is not complete")
    return bytes(data)
