"""Web pages of the origins that may call: what their browsers ask first, and what every answer tells them.

A browser lets a page send JSON or a token to another origin, and read the answer, only if the server says so
(Cross-Origin Resource Sharing, https://fetch.spec.whatwg.org/#http-cors-protocol).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import Message, Scope, Send

from npl_mcp.core.calls import FOLDER_HEADER

METHODS = "GET, POST, DELETE"
SENT = (
    "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, "
    f"Mcp-Session-Id, {FOLDER_HEADER}"
)
"""Headers that pages may send."""

READ = f"Mcp-Session-Id, Retry-After, WWW-Authenticate, {FOLDER_HEADER}"
"""Headers that pages may read, beside those that all may."""

REMEMBERED_SECONDS = 600

_ASKS = b"access-control-request-method"
_ASKS_FOR_LOCAL = b"access-control-request-private-network"


@dataclass(frozen=True, slots=True)
class Preflight:
    """The answer to a browser that asks what a page may send; it asks without the token.

    :param local: it also asks whether a page of the internet may call a machine of a local network.
    """

    local: bool

    async def send(self, send: Send) -> None:
        """Answer."""
        headers = [
            (b"access-control-allow-methods", METHODS.encode()),
            (b"access-control-allow-headers", SENT.encode()),
            (b"access-control-max-age", str(REMEMBERED_SECONDS).encode()),
        ]
        if self.local:
            headers.append((b"access-control-allow-private-network", b"true"))
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def preflight(scope: Scope, headers: Mapping[bytes, bytes]) -> Preflight | None:
    """Return the answer to a browser's question of a listed origin; ``None`` if the request is none."""
    if scope["method"] != "OPTIONS" or _ASKS not in headers:
        return None
    return Preflight(headers.get(_ASKS_FOR_LOCAL) == b"true")


def naming(origin: bytes, send: Send) -> Send:
    """Return what sends an answer and says in it that pages of an origin may read it."""

    async def send_and_name(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", READ.encode()),
                (b"vary", b"Origin"),
            ]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return send_and_name
