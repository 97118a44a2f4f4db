"""Who may call the HTTP server, and how much at once.

A page in the user's browser can reach every port of the machine: under the name of a foreign host that it
lets point to this machine (DNS rebinding), or simply by sending a form. So a request must name the server by
a known name (``Host``), must not come from a page (``Origin``), and must have a content type that no form can
send (JSON).
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import quote, urlencode

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from npl_mcp.config.settings import Listening
from npl_mcp.core.calls import ADMITTED_KEY, CALLER, CALLER_KEY, FOLDER_HEADER, HTTP, UNIX, Caller
from npl_mcp.http.answers import ABORT_KEY, Answers, noting
from npl_mcp.http.identities import SECONDS, Identities, owner
from npl_mcp.http.origins import Preflight, naming, preflight
from npl_mcp.http.shares import Place, Shares
from npl_mcp.server.lanes import Turns, lane
from npl_mcp.server.messages import excess
from npl_mcp.stores.base.errors import StoreError
from npl_mcp.tools.errors import ErrorCode
from npl_mcp.tools.responses import Failure, as_dict, encode
from npl_mcp.web.browsers import (
    FORM_KEY,
    SIGN_IN,
    is_form,
    is_from_elsewhere,
    is_page,
    needs_nobody,
    protecting,
    signed_in,
    wants_html,
)

READY = "/readyz"

OPEN = ("/healthz", READY)
"""Paths that need no token."""

HELD_BODIES = 4
"""Bodies of the greatest length that may be in memory at one time; several copies of each are made."""

# How long a call waits to be refused: a caller that tries again at once takes the server's time.
BUSY_SECONDS = 0.5

# The part of the greatest length that bodies of each caller may have while others fill the memory.
SMALL_BODY = 1 / 256

# How many times the calls in flight there may be if each of their callers has few.
CROWD = 8

HELD_ANSWERS = 4
"""Answers of the greatest length that may wait for their readers at one time."""

DOOR_CALLS = 3
"""Calls that may be on their way to a lane at one time: a crowd must not lengthen the event loop's rounds."""

BODY_SECONDS = 10.0
"""How long the next part of a body may take."""

CHECK_SECONDS = 4.0
"""How long a part of an answer waits to know whether its token still counts; less than WRITE_SECONDS."""

_LARGE_BODY = 256 * 1024

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def names(listening: Listening, port: int | None) -> frozenset[str]:
    """Return what a ``Host`` header may say.

    :param port: the port listened on.
    """
    own = (*_LOOPBACK, f"[{listening.host}]" if ":" in listening.host else listening.host)
    known = {f"{name}:{port}".lower() for name in own}
    if port == 80:
        known.update(name.lower() for name in own)
    for name in listening.hosts:
        known.add(name.lower())
        known.add(f"{name}:{port}".lower())
    return frozenset(known)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused.

    :param status: of HTTP.
    :param code: of the envelope.
    :param message: what is wrong, and what to do instead.
    :param headers: added to the answer.
    """

    status: int
    code: ErrorCode
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send) -> None:
        """Answer with the envelope."""
        body = encode(as_dict(Failure(error=self.message, error_code=self.code.value))).encode()
        length = (b"content-length", str(len(body)).encode())
        headers = [(b"content-type", b"application/json"), length, *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


BUSY = Refusal(
    503,
    ErrorCode.OPERATION_FAILED,
    "too many calls are in flight; try again in a second",
    ((b"retry-after", b"1"),),
)
ENDING = Refusal(
    503,
    ErrorCode.OPERATION_FAILED,
    "the server ends, and the call may have been done in part or whole; look, then try again",
    ((b"retry-after", b"1"), (b"connection", b"close")),
)
TOO_SLOW = Refusal(
    408,
    ErrorCode.INVALID_PARAMETER,
    "the body did not arrive in time; send it whole",
    ((b"connection", b"close"),),
)
NO_TOKEN = Refusal(
    401,
    ErrorCode.PERMISSION_DENIED,
    "the bearer token is missing or wrong; send Authorization: Bearer TOKEN",
    ((b"www-authenticate", b"Bearer"),),
)
NOT_CHECKED = Refusal(503, ErrorCode.DATABASE_ERROR, "who calls cannot be checked", ((b"retry-after", b"1"),))
FROM_ELSEWHERE = Refusal(
    403, ErrorCode.PERMISSION_DENIED, "pages answer only their own origin; open the address itself"
)
NOT_JSON = Refusal(
    400,
    ErrorCode.INVALID_PARAMETER,
    "the content type must be application/json; send Content-Type: application/json",
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a request must fulfil.

    :param hosts: what ``Host`` may say; see :func:`names`.
    :param origins: what ``Origin`` may say.
    :param token: callers of a port must send it, where there are no tokens of single callers.
    :param own_token: proves that the caller can read this user's files; accepted in place of any other.
    :param body_limit: bytes of the longest body.
    :param max_calls: calls in flight at one time; a caller that has few may have more of them.
    :param has_pages: there are pages for people, whose browsers show who they are by a cookie.
    """

    hosts: frozenset[str]
    origins: tuple[str, ...]
    token: str | None = field(repr=False)
    own_token: str = field(repr=False)
    body_limit: int
    max_calls: int
    has_pages: bool = False

    async def judge(
        self, scope: Scope, headers: Mapping[bytes, bytes], identities: Identities | None
    ) -> Caller | Refusal | Preflight:
        """Return who calls, or what the request is answered instead.

        :param identities: the tokens of single callers.
        """
        # A Unix socket has no port number. Browsers cannot reach one, and its file mode says who may call.
        unix = scope["server"] is not None and scope["server"][1] is None
        host = headers.get(b"host", b"").decode("latin-1")
        if not unix and host.lower() not in self.hosts:
            return Refusal(
                421,
                ErrorCode.PERMISSION_DENIED,
                f"this server is not called {json.dumps(host[:100])}; a name is added by --allow-host",
            )
        page = self.is_page(scope)
        if page and is_from_elsewhere(scope["method"], headers):
            return FROM_ELSEWHERE
        origin = headers.get(b"origin")
        if not page and origin is not None:
            if origin.decode("latin-1") not in self.origins:
                return Refusal(
                    403,
                    ErrorCode.PERMISSION_DENIED,
                    "web pages may not call this server; an origin is added by --allow-origin",
                )
            if (asked := preflight(scope, headers)) is not None:
                return asked
        caller = Caller(UNIX if unix else HTTP, trusted=False, key=scope.get(ABORT_KEY))
        if scope["path"] not in OPEN:
            given = _bearer(headers) or (signed_in(headers) if page else b"")
            admitted = await self._admit(caller, given, identities)
            if isinstance(admitted, Caller):
                caller = admitted
            elif not (page and needs_nobody(scope["path"]) and (admitted is NO_TOKEN or not given)):
                return _to_sign_in(scope, headers) if page and admitted is NO_TOKEN else admitted
        if scope["method"] == "POST" and not page and not _is_json(headers):
            return NOT_JSON
        if _declared(headers) > self.body_limit:
            return self.too_long
        agent = headers.get(b"user-agent", b"").decode("latin-1").split(" ", 1)[0]
        name, _, version = agent.partition("/")
        folder = headers.get(FOLDER_HEADER.lower().encode())
        return replace(
            caller,
            name=name or None,
            version=version or None,
            folder=folder.decode("utf-8", "surrogateescape") if folder is not None else None,
        )

    async def _admit(self, caller: Caller, given: bytes, identities: Identities | None) -> Caller | Refusal:
        """Return a caller with what its token proves.

        A shared token and a socket say nothing about who acts: once there are tokens of single callers, only
        these count, and the one that proves to be the user who runs the server.
        """
        if hmac.compare_digest(given, self.own_token.encode()):
            return replace(caller, trusted=True)
        try:
            known = await identities.known() if identities is not None else None
        except StoreError as error:
            return replace(NOT_CHECKED, message=f"who calls cannot be checked: {error}")
        if known is not None:
            identity = owner(known, given)
            return NO_TOKEN if identity is None else replace(caller, identity=identity, key=identity.name)
        trusted = caller.transport == UNIX
        allowed = trusted or self.token is None or hmac.compare_digest(given, self.token.encode())
        return replace(caller, trusted=trusted) if allowed else NO_TOKEN

    def is_page(self, scope: Scope) -> bool:
        """Return whether a request is for a page."""
        return self.has_pages and is_page(scope["path"])

    def listed_origin(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        """Return the origin of the page that calls, if it may."""
        origin = headers.get(b"origin")
        return origin if origin is not None and origin.decode("latin-1") in self.origins else None

    @property
    def too_long(self) -> Refusal:
        """The answer to a body above the limit."""
        limit = (
            f"the request is longer than {self.body_limit} bytes; set NPL_MCP_MAX_BODY_BYTES to allow more"
        )
        return Refusal(413, ErrorCode.INVALID_PARAMETER, limit)


def _session_owner(caller: Caller) -> dict[str, object]:
    """Return what tells the SDK whose a session is: one that another began is not there for a caller."""
    if caller.identity is None:
        return {}
    token = AccessToken(token="", client_id=caller.identity.name, scopes=[])
    return {"user": AuthenticatedUser(token)}


def _to_sign_in(scope: Scope, headers: Mapping[bytes, bytes]) -> Refusal:
    """Return where a browser is led that shows a page; programs are told what is missing."""
    if scope["method"] != "GET" or not wants_html(headers):
        return NO_TOKEN
    if headers.get(b"sec-fetch-site") == b"cross-site" and not signed_in(headers):
        # The browser sends the cookie only if our own page asks.
        return replace(NO_TOKEN, headers=(*NO_TOKEN.headers, (b"refresh", b"0")))
    place = f"{SIGN_IN}?{urlencode({'next': _asked(scope)})}"
    return replace(NO_TOKEN, status=303, headers=((b"location", place.encode()),))


def _asked(scope: Scope) -> str:
    """Return the address that a browser asked for."""
    query = scope["query_string"].decode("latin-1")
    return quote(scope["path"], errors="replace") + (f"?{query}" if query else "")


def _bearer(headers: Mapping[bytes, bytes]) -> bytes:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _is_json(headers: Mapping[bytes, bytes]) -> bool:
    kind = headers.get(b"content-type", b"").partition(b";")[0]
    return kind.strip().lower() == b"application/json"


def _declared(headers: Mapping[bytes, bytes]) -> int:
    text = headers.get(b"content-length", b"0")
    return int(text) if text.isdigit() else 0


class Guard:
    """Passes a request to the application once it is allowed and has arrived whole.

    A call takes one of the places until its answer is sent, or until it begins to wait for something new.
    Callers share the places as :class:`~npl_mcp.http.shares.Shares` says. A caller that finds
    no place loses an answer of its own that it does not read, if it has one.

    :param app: gets each body in one message.
    :param identities: the tokens of single callers; ``None`` if there are none.
    """

    def __init__(self, app: ASGIApp, policy: Policy, identities: Identities | None = None) -> None:
        self._app = app
        self._identities = identities
        self._policy = policy
        calls, bodies = policy.max_calls, HELD_BODIES * policy.body_limit
        self._places = Shares(calls, max(1, calls // CROWD), CROWD * calls)
        self._held = Shares(bodies, int(SMALL_BODY * policy.body_limit), bodies + policy.body_limit)
        self._answers = Answers(HELD_ANSWERS * policy.body_limit)
        self._door = Turns(DOOR_CALLS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._policy.is_page(scope):
            send = protecting(send)
        headers = dict(scope["headers"])
        judged = await self._policy.judge(scope, headers, self._identities)
        if judged is NO_TOKEN and self._policy.is_page(scope) and is_form(scope["method"], headers):
            # Signing in needs no token; what was typed is kept there.
            scope = {**scope, "path": SIGN_IN, "raw_path": SIGN_IN.encode(), FORM_KEY: _asked(scope)}
            judged = await self._policy.judge(scope, headers, self._identities)
        origin = self._policy.listed_origin(headers)
        if origin is not None:
            send = naming(origin, send)
        if not isinstance(judged, Caller):
            await judged.send(send)
            return
        if scope["path"] == READY and not self._places.has_room(READY):
            await BUSY.send(send)
            return
        CALLER.set(judged)
        scope = {**scope, CALLER_KEY: judged, **_session_owner(judged)}
        scope[ADMITTED_KEY] = partial(self._still_admits, judged, scope, headers)
        if scope["method"] == "POST":
            await self._post(scope, receive, send)
        elif self._policy.is_page(scope):
            await self._show(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _still_admits(self, caller: Caller, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether a request would be that of the same caller now, as far as that can be checked.

        A call may have written before the database went away: the caller has to be told that it did.
        """
        judged: Caller | Refusal | Preflight = NOT_CHECKED
        with anyio.move_on_after(CHECK_SECONDS):
            judged = await self._policy.judge(scope, headers, self._identities)
        if isinstance(judged, Caller):
            return judged.identity == caller.identity
        ended = caller.identity is not None and not caller.identity.is_valid()
        return not ended and isinstance(judged, Refusal) and judged.code is NOT_CHECKED.code

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body first: a caller that is slow to send it takes no place among the calls in flight."""
        body, held = bytearray(), 0
        key = scope[CALLER_KEY].key
        try:
            refusal = await self._read(body, receive, key)
            held = len(body)
            if refusal is None and not self._policy.is_page(scope):
                refusal = await _measured(body)
            if refusal is not None:
                await refusal.send(send)
                return
            whole = bytes(body)
            body.clear()
            await self._show(scope, _replayed(whole, receive), noting(scope, whole, send))
        except ClientDisconnect:
            return
        finally:
            self._held.take(key, -(held or len(body)))

    async def _show(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a call or a page be answered, which takes a place."""
        caller = scope[CALLER_KEY]
        if not (self._places.has_room(caller.key) or self._answers.drop_stalled(caller.key)):
            await anyio.sleep(BUSY_SECONDS)
            await self._door.begin(caller.key)  # a crowd is told one after the other
            try:
                await BUSY.send(send)
            finally:
                self._door.end(caller.key)
            return
        place = Place(self._places, caller.key, self._door)
        scope[CALLER_KEY] = replace(caller, place=place)
        try:
            await self._door.begin(caller.key)
            place.has_turn = True
            await self._answer(scope, receive, place.sending(send))
        finally:
            place.leave()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer, as fast as the caller reads."""
        if not self._policy.is_page(scope):  # a page tells its reader what became of the token
            send = _while_admitted(scope, send)
        answer = self._answers.begin(send, scope.get(ABORT_KEY), scope[CALLER_KEY].key)
        await self._app(scope, receive, answer.send)
        if answer.refused:
            await BUSY.send(send)

    async def _read(self, body: bytearray, receive: Receive, caller: Hashable) -> Refusal | None:
        """Read a body into ``body`` no further than the limits; return why it is refused, if it is.

        Bodies that never end would hold their memory until every other caller is refused.

        :raises ClientDisconnect: the caller is gone.
        """
        while True:
            message = None
            with anyio.move_on_after(BODY_SECONDS):
                message = await receive()
            if message is None:
                return TOO_SLOW
            if message["type"] != "http.request":
                raise ClientDisconnect
            part = message.get("body", b"")
            if len(body) + len(part) > self._policy.body_limit:
                return self._policy.too_long
            if not self._held.has_room(caller, len(part)):
                return BUSY
            self._held.take(caller, len(part))
            body += part
            if not message.get("more_body", False):
                return None


def _while_admitted(scope: Scope, send: Send) -> Send:
    """Return what sends an answer as long as its caller is let in: who waits may do so for longer."""
    checked, begun, over = time.monotonic(), False, False
    identity = scope[CALLER_KEY].identity

    async def send_if_admitted(message: Message) -> None:
        nonlocal checked, begun, over
        if over:
            return
        # What is known of tokens may be as old as that; when one ends is known.
        fresh = time.monotonic() - checked < SECONDS and (identity is None or identity.is_valid())
        if fresh or await scope[ADMITTED_KEY]():
            begun, checked = True, checked if fresh else time.monotonic()
            await send(message)
            return
        over = True
        if not begun:
            await NO_TOKEN.send(send)
        elif ABORT_KEY in scope:
            scope[ABORT_KEY]()

    return send_if_admitted


async def _measured(body: bytearray) -> Refusal | None:
    """Return why a body is refused before it is parsed: it would take too much memory then."""
    problem = await lane("bodies").run(excess, body) if len(body) > _LARGE_BODY else excess(body)
    if problem is None:
        return None
    return Refusal(400, ErrorCode.INVALID_PARAMETER, f"the message has {problem}; send less at a time")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return the body as one message, then what comes after it."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
