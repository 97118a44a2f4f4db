"""Calls to a running server over HTTP.

The server must first answer ``GET /healthz`` on the same connection with its name and version; only then are
the token and the call sent. So a call goes only to a server that answers; an unsent call can run elsewhere.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

from npl_mcp import __version__
from npl_mcp.cli.transports import base
from npl_mcp.config.server_state import ServerState

GREETING_SECONDS = 1.0

RETRY_SECONDS = 0.5
"""Time before a call is sent again: another server may take over meanwhile."""

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Bytes of an answer, several times the largest artifact."""

REFUSED = (401, 413, 421, 429, 503)
"""Statuses of calls that a server refuses before it reads them."""

GATEWAY_FAILED = (502, 504)
"""Statuses of a proxy without an answer of its server."""

_BLOCK_BYTES = 64 * 1024

Headers = Mapping[str, bytes]


class HttpTransport(base.Transport):
    """A transport to a running server.

    :param address: address of the server.
    :param token: token of the caller; empty without one.
    :param project: folder of the worklogs; ``None`` means the working directory.
    """

    def __init__(self, address: base.Address, token: str, project: Path | None = None) -> None:
        super().__init__()
        self.address, self._token, self._project = address, token, project
        self.local = address.local
        self.name = f"the server at {address.text}"

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool; see :meth:`Transport.call <npl_mcp.cli.transports.base.Transport.call>`."""
        headers = {"Content-Type": b"application/json", "Connection": b"close"}
        if self._token:
            headers["Authorization"] = b"Bearer " + self._token.encode("ascii")
        # A server on another machine uses its own folders.
        if self.local:
            project = self._project if tool.startswith(base.WORKLOG_TOOLS) else None
            headers["NPL-Cwd"] = _folder_header(project or Path.cwd())
        # ASCII with escapes: a lone surrogate arrives unchanged and is refused, as in this process.
        body = json.dumps({**arguments, "request_id": os.urandom(16).hex()}).encode("ascii")
        try:
            answer, content = self._sent(tool, headers, body)
        except base.TransportError as error:
            if not error.sent:
                raise
            # The answer was lost. The server runs calls with the same request_id only once.
            time.sleep(RETRY_SECONDS)
            try:
                answer, content = self._sent(tool, headers, body)
            except base.TransportError:
                raise error from None
        if answer.status == 200 and arguments.get("format") == "markdown":
            return {"success": True, "data": content.decode("utf-8", "replace")}
        reply = base.reply_of(content)
        if answer.status in REFUSED or "npl-cwd" in answer.headers:
            reason = (reply or {}).get("error") or f"status {answer.status}"
            raise base.TransportError(f"refused the call: {reason}")
        if reply is not None and (answer.status == 200 or not reply["success"]):
            return reply
        if answer.status == 404:
            raise base.TransportError("does not have the tool")
        raise base.TransportError(f"sent no reply of a tool (status {answer.status})", sent=True)

    def _sent(self, tool: str, headers: Headers, body: bytes) -> tuple[HTTPResponse, bytes]:
        with closing(connect_verified(self.address)) as connection:
            path = f"{self.address.prefix}/mcp/tools/{tool}"
            answer, content = request(connection, "POST", path, headers, body, base.CALL_SECONDS)
        if "npl-unfinished" in answer.headers:
            raise base.TransportError("ended before it answered", sent=True)
        if answer.status in GATEWAY_FAILED:
            raise base.TransportError(f"sent no reply of a tool (status {answer.status})", sent=True)
        return answer, content


def problem_of(state: ServerState) -> str | None:
    """Return why a server cannot be called, as a predicate; ``None`` if it can."""
    address = base.parse_address(state.place)
    if address is None:
        return "has no usable address"
    try:
        connect_verified(address).close()
    except base.TransportError as error:
        return error.problem
    return None


def connect_verified(address: base.Address) -> HTTPConnection:
    """Return a connection to an npl server of this version.

    :raises TransportError: no such server answers.
    """
    connection = connect(address)
    try:
        answer, content = request(connection, "GET", f"{address.prefix}/healthz", {}, None, GREETING_SECONDS)
        body = base.json_object(content)
        base.check_version(body.get("version") if body.get("name") == "npl" else None)
        if answer.status != 200:
            raise base.TransportError(f"is not ready (status {answer.status})")
    except base.TransportError:
        connection.close()
        raise
    return connection


def connect(address: base.Address) -> HTTPConnection:
    """Return an open connection that never reconnects.

    :raises TransportError: the server cannot be reached.
    """
    seconds = 0.25 if address.local else 1.0
    kind = HTTPSConnection if address.secure else HTTPConnection
    connection = kind(address.host or "localhost", address.port or None, timeout=seconds)
    try:
        if address.host:
            connection.connect()
        else:
            connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.sock.settimeout(seconds)
            connection.sock.connect(address.path)
    except TimeoutError:
        connection.close()
        raise base.TransportError(f"does not answer within {seconds:g} s") from None
    except (OSError, ValueError) as error:  # ValueError: an impossible host name, a path with a NUL
        connection.close()
        reason = getattr(error, "strerror", None) or error
        raise base.TransportError(f"cannot be reached: {reason}", absent=True) from None
    # Otherwise, if a server closes after the greeting, the call would go over a new connection, and another
    # process may listen by then.
    connection.auto_open = 0
    return connection


def request(
    connection: HTTPConnection, method: str, path: str, headers: Headers, body: bytes | None, seconds: float
) -> tuple[HTTPResponse, bytes]:
    """Send a request and return its answer with its content.

    :param headers: values without control characters; http.client adds ``Host`` and ``Content-Length``.
    :param seconds: time limit for each part of the answer.
    :raises TransportError: no answer came, or it is longer than :data:`MAX_BODY_BYTES`.
    """
    sent = False
    try:
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        connection.request(method, path, body, {"User-Agent": f"npl-cli/{__version__}", **headers})
        sent = method != "GET"  # a GET changes nothing
        with connection.getresponse() as answer:
            content = bytearray()
            # In parts, so that the limit holds even if the announced length is false or missing.
            while max(len(content), answer.length or 0) <= MAX_BODY_BYTES:
                if part := answer.read1(_BLOCK_BYTES):
                    content += part
                elif answer.length:  # read1 reports no missing bytes
                    raise HTTPException("the answer is not complete")
                else:
                    return answer, bytes(content)
    except TimeoutError:
        raise base.TransportError(f"does not answer within {seconds:g} s", sent=sent) from None
    except (OSError, HTTPException) as error:
        problem = f"closed the connection: {error or type(error).__name__}"
        raise base.TransportError(problem, sent=sent) from None
    raise base.TransportError(f"answers with more than {MAX_BODY_BYTES >> 20} MiB", sent=sent)


def _folder_header(folder: Path) -> bytes:
    """Return the header value for a folder.

    :raises TransportError: its name has control characters.
    """
    here = os.fsencode(folder)
    if here != here.strip() or any(byte < 0x20 or byte == 0x7F for byte in here):
        raise base.TransportError("was not called: the name of the working directory has control characters")
    return here
