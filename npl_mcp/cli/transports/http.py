"""Calls to a running server over HTTP.

Before a call is sent, the server has to answer ``GET /healthz`` on the same connection with its name and
version; only then does it see the token and the call. So a call goes only to a server that answers, and one
that was not sent can be made elsewhere.
"""

from __future__ import annotations

import json
import os
from typing import Any

from npl_mcp.cli.transports.addresses import Address
from npl_mcp.cli.transports.base import CALL_SECONDS, WORKLOG_TOOLS, TransportError, check_version
from npl_mcp.cli.transports.local import Answer, LocalConnection
from npl_mcp.config.server_state import ServerState

GREETING_SECONDS = 1.0

REFUSED = (401, 413, 421, 429, 503)
"""Statuses of calls that a server refuses before it looks at them."""


class HttpTransport:
    """Calls the tools of a running server.

    :param address: of the server.
    :param token: proves who calls; empty for none.
    :param project: path of the folder whose worklogs are meant; ``None`` means the working directory.
    :param state: what the server says of itself, if it is the one of the data folder.
    """

    def __init__(
        self, address: Address, token: str, project: str | None = None, state: ServerState | None = None
    ) -> None:
        self.address, self._token, self.state = address, token, state
        self._project = project
        self.name = f"the server at {address.text}"

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool; see :meth:`Transport.call <npl_mcp.cli.transports.base.Transport.call>`."""
        headers = {"Content-Type": b"application/json", "Connection": b"close", **self._caller(tool)}
        # In ASCII, so that half of a surrogate pair arrives as such and is refused, as it is in this process.
        body = json.dumps(arguments).encode("ascii")
        prefix = self.address.prefix
        connection = _connection(self.address)
        try:
            _greet(connection, prefix)
            path = f"{prefix}/mcp/tools/{tool}"
            answer = connection.request("POST", path, headers, body, CALL_SECONDS)
            if answer.status == 200 and arguments.get("format") == "markdown":
                return {"success": True, "data": answer.body.decode("utf-8", "replace")}
            return _reply(answer)
        finally:
            connection.close()

    def close(self) -> None:
        """Do nothing: each call has a connection of its own."""

    def _caller(self, tool: str) -> dict[str, bytes]:
        """Return the headers that say who calls, and from which folder, or for which."""
        headers: dict[str, bytes] = {}
        if self._token:
            if not (self._token.isascii() and self._token.isprintable()) or " " in self._token:
                raise TransportError("was not called: the token has characters that no token has")
            headers["Authorization"] = b"Bearer " + self._token.encode("ascii")
        # Another machine has other folders; its server uses its own.
        if self.address.local:
            headers["NPL-Cwd"] = _folder(self._project if tool.startswith(WORKLOG_TOOLS) else None)
        return headers


def greet(address: Address) -> None:
    """Make sure that an npl server of this version answers.

    :raises TransportError: none does.
    """
    connection = _connection(address)
    try:
        _greet(connection, address.prefix)
    finally:
        connection.close()


def _greet(connection: Any, prefix: str) -> None:
    _check_greeting(connection.request("GET", f"{prefix}/healthz", {}, b"", GREETING_SECONDS))


def _connection(address: Address) -> Any:
    if address.local:
        return LocalConnection(address)
    from npl_mcp.cli.transports.remote import RemoteConnection

    return RemoteConnection(address)


def _folder(project: str | None) -> bytes:
    """Return a project's folder, or else the working directory, as the value of a header."""
    try:
        here = os.fsencode(project or os.getcwd())  # noqa: PTH109 - a path object is not needed
    except OSError:
        raise TransportError("was not called: the working directory does not exist") from None
    if here != here.strip() or any(byte < 0x20 or byte == 0x7F for byte in here):
        raise TransportError("was not called: the name of the working directory has control characters")
    return here


def _check_greeting(greeting: Answer) -> None:
    """Check the answer to ``GET /healthz``."""
    body = _object(greeting.body)
    version = body.get("version") if body.get("name") == "npl" else None
    check_version(version if isinstance(version, str) else None)
    if greeting.status != 200:
        raise TransportError(f"is not ready (status {greeting.status})")


def _reply(answer: Answer) -> dict[str, Any]:
    """Return a tool's reply.

    :raises TransportError: it is none; a call that was refused counts as not sent.
    """
    body = _object(answer.body)
    error = body.get("error")
    failed = body.get("success") is False and isinstance(error, str) and "error_code" in body
    if answer.status in REFUSED or "npl-cwd" in answer.headers:
        raise TransportError(f"refused the call: {error if failed else f'status {answer.status}'}")
    if failed or (answer.status == 200 and body.get("success") is True and "data" in body):
        return body
    if answer.status == 404:
        raise TransportError("does not have the tool")
    raise TransportError(f"sent no reply of a tool (status {answer.status})", sent=True)


def _object(data: bytes) -> dict[str, Any]:
    """Read a JSON object; empty if it is none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
