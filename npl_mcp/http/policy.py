"""The admission of callers to the HTTP server.

A page in the user's browser can reach every port of the machine: under the name of a foreign host that points
to this machine (DNS rebinding), or simply by a form. So a request must have a known name of the server
(``Host``), must not come from a page (``Origin``), and must have a content type that no form can send (JSON).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

import anyio.to_thread
from mcp_types import CONNECTION_CLOSED
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from npl_mcp.app.call_reports import FOLDER_HEADER, HTTP, UNIX, Caller
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import Identity, token_digest
from npl_mcp.stores.base.errors import StoreError
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.tools.contract.responses import FailedReply, as_dict, encode
from npl_mcp.web.browsers import SIGN_IN, is_from_elsewhere, is_page, needs_no_sign_in, signed_in, wants_html

READY = "/readyz"

OPEN = ("/healthz", READY)
"""Paths that need no token."""

STREAM_KEY = "npl.stream"
"""Key in the state of a request with a started stream as its answer; the value is the request's body."""

ADMITTED_STATE = "npl.admitted"
"""Key in the state of a request whose caller has proved that it may call."""

Headers = Mapping[bytes, bytes]
"""The headers of a request, by lower-case name."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def host_names(settings: Settings, port: int | None) -> frozenset[str]:
    """Return the accepted values of a ``Host`` header.

    :param port: the port of the listening socket.
    """
    own = (*_LOOPBACK, f"[{settings.host}]" if ":" in settings.host else settings.host)
    with_port = (f"{host}:{port}" for host in (*own, *settings.hosts))
    return frozenset(map(str.lower, (*settings.hosts, *with_port, *(own if port == 80 else ()))))


@dataclass(frozen=True, slots=True)
class Refusal:
    """The refusal of a request.

    :param status: the status code of HTTP.
    :param code: the error code of the envelope.
    :param message: the mistake and its remedy.
    :param headers: additional headers of the answer.
    """

    status: int
    code: ErrorCode
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def response(self) -> Response:
        """The envelope as an answer."""
        text = encode(as_dict(FailedReply(error=self.message, error_code=self.code.value)))
        return Response(text, self.status, self.headers, "application/json")

    async def end(self, scope: Scope, receive: Receive, send: Send, *, begun: bool) -> None:
        """Send this answer instead of the application's; end a stream that has begun with a protocol error.

        :param begun: the headers of another answer were sent.
        """
        if not begun:
            await self.response(scope, receive, send)
            return
        event = b""
        if asked := scope["state"].get(STREAM_KEY):
            error = {"code": CONNECTION_CLOSED, "message": self.message}
            message = json.dumps({"jsonrpc": "2.0", "id": json.loads(asked)["id"], "error": error})
            event = f"event: message\r\ndata: {message}\r\n\r\n".encode()
        await send({"type": "http.response.body", "body": event})


SOON = {"retry-after": "1"}
_CLOSE = {"connection": "close"}

BUSY = Refusal(503, ErrorCode.OPERATION_FAILED, "too many calls are in flight; try again in a second", SOON)
ENDING = Refusal(
    503,
    ErrorCode.OPERATION_FAILED,
    "the server is shutting down, and the call may have been done in part or whole; check, then try again",
    # By this header our command lines tell a cut call from one that was refused before it began.
    SOON | _CLOSE | {"npl-unfinished": "1"},
)
TOO_SLOW = Refusal(408, ErrorCode.INVALID_PARAMETER, "the body did not arrive in time; send it whole", _CLOSE)
NO_TOKEN = Refusal(
    401,
    ErrorCode.PERMISSION_DENIED,
    "the bearer token is missing or wrong; send Authorization: Bearer TOKEN",
    {"www-authenticate": "Bearer"},
)
NOT_CHECKED = Refusal(503, ErrorCode.DATABASE_ERROR, "the caller cannot be checked", SOON)
_FORBIDDEN = partial(Refusal, 403, ErrorCode.PERMISSION_DENIED)
FROM_ELSEWHERE = _FORBIDDEN("pages answer only their own origin; open the address itself")
NOT_LISTED = _FORBIDDEN("web pages may not call this server; allow an origin with --allow-origin")
SOME_DOMAINS = _FORBIDDEN("metrics count calls of all domains; use a token of all domains")
NOT_JSON = Refusal(
    400, ErrorCode.INVALID_PARAMETER, "the content type is not JSON; send Content-Type: application/json"
)


@dataclass(frozen=True, slots=True)
class Policy:
    """The conditions of admission.

    :param settings: the server's settings. Their token is the required one of callers of a port, without
        tokens of single callers. Browsers of people identify them by a cookie, if there are pages.
    :param hosts: the accepted values of ``Host``; see :func:`host_names`.
    :param own_token: a proof that the caller can read this user's files; accepted instead of any other.
    """

    settings: Settings
    hosts: frozenset[str]
    own_token: str = field(repr=False)

    def origin_refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Return the refusal of a request for its ``Host`` or its ``Origin``, independent of the caller.

        Starlette's middleware for hosts compares no ports and has its own form of answers.
        """
        host = headers.get(b"host", b"").decode("latin-1")
        if not _is_unix(scope) and host.lower() not in self.hosts:
            message = f"this server is not called {json.dumps(host[:100])}; allow a name with --allow-host"
            return Refusal(421, ErrorCode.PERMISSION_DENIED, message)
        if self.is_page(scope):
            return FROM_ELSEWHERE if is_from_elsewhere(scope["method"], headers) else None
        origin = headers.get(b"origin")
        return None if origin is None or origin.decode("latin-1") in self.settings.origins else NOT_LISTED

    async def admit(self, scope: Scope, headers: Headers, identities: Identities | None) -> Caller | Refusal:
        """Return the caller, or the refusal of the request.

        :param identities: the tokens of single callers.
        """
        page = self.is_page(scope)
        # The address of a connection's other end; a Unix socket has none.
        key = scope.get("client") or object()
        caller = Caller(UNIX if _is_unix(scope) else HTTP, trusted=False, key=key)
        if scope["path"] not in OPEN:
            given = _bearer(headers) or (signed_in(headers) if page else b"")
            admitted = await self._identified(caller, given, identities)
            if isinstance(admitted, Caller):
                caller = admitted
                scope["state"][ADMITTED_STATE] = True
            elif not (page and needs_no_sign_in(scope["path"]) and (admitted is NO_TOKEN or not given)):
                return _to_sign_in(scope, headers) if page and admitted is NO_TOKEN else admitted
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["method"] == "POST" and not page and kind != b"application/json":
            return NOT_JSON
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.settings.body_limit:
            return self.too_long
        agent = headers.get(b"user-agent", b"").decode("latin-1").split(" ", 1)[0]
        name, _, version = agent.partition("/")
        folder = headers.get(FOLDER_HEADER.lower().encode())
        place = None if folder is None else folder.decode("utf-8", "surrogateescape")
        return replace(caller, name=name or None, version=version or None, folder=place)

    async def _identified(
        self, caller: Caller, given: bytes, identities: Identities | None
    ) -> Caller | Refusal:
        """Return a caller with the identity that its token proves, or the refusal.

        A shared token and a socket do not identify an actor. Once single callers have tokens, only these
        count, and the token that proves access to the files of the server's own user.
        """
        if hmac.compare_digest(given, self.own_token.encode()):
            return replace(caller, trusted=True)
        try:
            known = await identities.get() if identities is not None else None
        except StoreError as error:
            return replace(NOT_CHECKED, message=f"the caller cannot be checked: {error}")
        if known is not None:
            # The lookup is by digest, so its time reveals nothing about existing tokens.
            identity = known.get(token_digest(given))
            if identity is None or not identity.is_valid():
                return NO_TOKEN
            return replace(caller, identity=identity, key=identity.name)
        trusted, token = caller.transport == UNIX, self.settings.token
        allowed = trusted or token is None or hmac.compare_digest(given, token.encode())
        return replace(caller, trusted=trusted) if allowed else NO_TOKEN

    def is_page(self, scope: Scope) -> bool:
        """Return whether a request is for a page."""
        return self.settings.page_url is not None and is_page(scope["path"])

    @property
    def too_long(self) -> Refusal:
        """The answer to a body above the limit."""
        limit = self.settings.body_limit
        text = f"the request is longer than {limit} bytes; set NPL_MCP_MAX_BODY_BYTES to allow more"
        return Refusal(413, ErrorCode.INVALID_PARAMETER, text)


def _is_unix(scope: Scope) -> bool:
    """Return whether a request came over a Unix socket, which has no port number.

    Browsers cannot reach a Unix socket, and its file mode gives access.
    """
    return scope["server"] is not None and scope["server"][1] is None


def _to_sign_in(scope: Scope, headers: Headers) -> Refusal:
    """Return the redirection of a browser to the sign-in page; for programs, the error about the token."""
    if scope["method"] != "GET" or not wants_html(headers):
        return NO_TOKEN
    if headers.get(b"sec-fetch-site") == b"cross-site" and not signed_in(headers):
        # The browser sends the cookie only if our own page asks.
        return replace(NO_TOKEN, headers={**NO_TOKEN.headers, "refresh": "0"})
    address = f"{SIGN_IN}?{urlencode({'next': address_of(scope)})}"
    return replace(NO_TOKEN, status=303, headers={"location": address})


def address_of(scope: Scope) -> str:
    """Return the requested address."""
    query = scope["query_string"].decode("latin-1")
    return quote(scope["path"], errors="replace") + (f"?{query}" if query else "")


def _bearer(headers: Headers) -> bytes:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


T = TypeVar("T")

SECONDS = 1.0
"""Maximum seconds for which a revoked token is still accepted, and a new one still refused. The database is
queried no more often, for any number of calls and tokens.
"""


class Refreshed(Generic[T]):
    """A value that is refreshed in a thread when it is requested and the last one is old.

    Concurrent callers share one refresh, and its failure: otherwise a database that is slow to fail would be
    queried by one caller after the other.

    :param ask: the function that returns a new value; it may wait, and fail.
    :param seconds: the maximum age of the value.
    """

    def __init__(self, ask: Callable[[], T], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds
        self._last: asyncio.Task[T] | None = None
        self._asked_at = 0.0

    async def get(self) -> T:
        """Return the value, at most ``seconds`` old.

        :raises Exception: the reason of a failed refresh.
        """
        is_old = time.monotonic() - self._asked_at >= self._seconds
        if self._last is None or (self._last.done() and (is_old or _failed(self._last))):
            self._asked_at = time.monotonic()
            self._last = asyncio.create_task(anyio.to_thread.run_sync(self._ask))
            self._last.add_done_callback(_failed)
        # A disconnecting caller does not cancel the refresh for the others.
        return await asyncio.shield(self._last)


def _failed(ended: asyncio.Task[T]) -> bool:
    return ended.cancelled() or ended.exception() is not None


class Identities(Refreshed[Mapping[str, Identity] | None]):
    """The identities of callers by the digests of their tokens; ``None`` if callers need no token.

    Once a server has seen a token, callers need one until it ends: an unavailable database grants no access.
    ``closed`` is whether it has.

    :param ask: the function that returns the tokens.
    """

    def __init__(self, ask: Callable[[], Mapping[str, Identity] | None]) -> None:
        super().__init__(self._read, SECONDS)
        self._read_tokens, self.closed = ask, False

    def _read(self) -> Mapping[str, Identity] | None:
        identities = self._read_tokens()
        self.closed = self.closed or identities is not None
        return {} if identities is None and self.closed else identities
