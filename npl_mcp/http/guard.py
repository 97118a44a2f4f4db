"""Limits on concurrent requests of the HTTP server's callers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from npl_mcp.app.call_reports import ADMITTED_KEY, CALLER, CALLER_KEY, FOLDER_HEADER, Caller
from npl_mcp.app.lanes import lane
from npl_mcp.calls.messages import exceeded
from npl_mcp.http import policy
from npl_mcp.http.policy import SECONDS, Identities, Policy, Refusal
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.web.browsers import FORM_KEY, SIGN_IN, wants_html, with_headers

MAX_BODIES = 4
"""Maximum bodies of the greatest length in memory at one time; several copies of each are made."""

# Delay before a call is refused: immediate retries would consume the server's time.
BUSY_SECONDS = 0.5

TURN_SECONDS = 10.0
"""Maximum seconds that the only call of a caller waits for a slot in a crowd. Without tokens each connection
is a caller, and a quiet one looks like the others.
"""

# The share of the greatest length for each caller's bodies while others fill the memory.
SMALL_BODY = 1 / 256

# The factor by which calls in flight may exceed their limit if each of their callers has few.
CROWD = 8

MAX_ANSWERS = 4
"""Maximum answers of the greatest length that wait for their readers at one time."""

LARGE_ANSWER = 1024 * 1024
"""Minimum bytes of an answer that needs room in memory. Answers of writing tools are shorter: after a write,
the caller must not be told to try again.
"""

READ_AT_ONCE = 64 * 1024
"""Bytes of an answer that the connection buffers before its reader reads them."""

BODY_SECONDS = 10.0
"""Maximum seconds of a body to arrive, and one more for each :data:`BODY_RATE` bytes that have arrived."""

BODY_RATE = 256 * 1024

CHECK_SECONDS = 4.0
"""Maximum seconds that a part of an answer waits for the check of its token."""

_LARGE_BODY = 256 * 1024

# Methods and headers for web pages of listed origins, in addition to those for all pages.
_METHODS = ("GET", "POST", "DELETE")
_READ = ("Mcp-Session-Id", "Retry-After", "WWW-Authenticate", FOLDER_HEADER)

Body = bytes | bytearray


class Shares:
    """Counts the amount of each caller, and limits it.

    One caller may have at most three quarters of the resource. A caller may always have a small amount, even
    if the others use everything: a busy caller is refused before a quiet one.

    :param most: the amount of the resource.
    :param little: the guaranteed amount of each caller.
    :param ceiling: the maximum amount of all callers together, including the guaranteed amounts.
    """

    def __init__(self, most: int, little: int, ceiling: int) -> None:
        self.most, self._little, self._ceiling = most, little, ceiling
        self._own: Counter[Hashable] = Counter()
        self._total = 0

    def has_room(self, caller: Hashable, amount: int = 1) -> bool:
        """Return whether a caller may take an amount more."""
        own, total = self._own[caller] + amount, self._total + amount
        if own <= self._little:
            return total <= self._ceiling
        return total <= self.most and own <= self.most - self.most // 4

    def has_any(self, caller: Hashable) -> bool:
        """Return whether a caller has an amount."""
        return self._own[caller] > 0

    def take(self, caller: Hashable, amount: int = 1) -> None:
        """Add an amount to a caller's; a negative amount is given back."""
        self._own[caller] += amount
        self._total += amount
        if not self._own[caller]:
            del self._own[caller]


class Guard:
    """Passes a request to the application once it is allowed and complete.

    A call holds a slot until its answer is sent, or until it begins to wait for new entries.
    :class:`Shares` divides the slots among callers.

    :param app: the application, which receives each body in one message.
    :param conditions: the conditions of admission.
    :param identities: the tokens of single callers; ``None`` without such tokens.
    """

    def __init__(self, app: ASGIApp, conditions: Policy, identities: Identities | None = None) -> None:
        self._app = app
        self._identities = identities
        self._policy = conditions
        calls, limit = conditions.settings.max_calls, conditions.settings.body_limit
        answers = MAX_ANSWERS * limit
        self._slots = Shares(calls, max(1, calls // CROWD), CROWD * calls)
        self._body_bytes = Shares(MAX_BODIES * limit, int(SMALL_BODY * limit), (MAX_BODIES + 1) * limit)
        self._answer_bytes = Shares(answers, 0, answers)
        self._serve: ASGIApp = self._admit
        if conditions.settings.origins:
            self._serve = CORSMiddleware(
                self._admit,
                allow_origins=conditions.settings.origins,
                allow_methods=_METHODS,
                allow_headers=("*",),
                allow_private_network=True,
                expose_headers=_READ,
            )

    @property
    def needs_tokens(self) -> bool:
        """Whether callers of a port need tokens, as far as the requests until now have shown."""
        known = self._identities
        return self._policy.settings.token is not None or (known is not None and known.closed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._policy.is_page(scope):
            send = with_headers(send)
        refusal = self._policy.origin_refusal(scope, dict(scope["headers"]))
        await (self._serve if refusal is None else refusal.response)(scope, receive, send)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request if its caller is admitted."""
        headers = dict(scope["headers"])
        admission = await self._policy.admit(scope, headers, self._identities)
        is_form = scope["method"] == "POST" and wants_html(headers)
        if admission is policy.NO_TOKEN and self._policy.is_page(scope) and is_form:
            # Signing in needs no token; that page shows the typed text.
            scope = {**scope, "path": SIGN_IN, "raw_path": SIGN_IN.encode(), FORM_KEY: True}
            admission = await self._policy.admit(scope, headers, self._identities)
        elif scope["path"] == policy.READY and not self._slots.has_room(policy.READY):
            admission = policy.BUSY
        if isinstance(admission, Refusal):
            await admission.response(scope, receive, send)
            return
        CALLER.set(admission)
        scope = {**scope, CALLER_KEY: admission}
        if admission.identity is not None:  # the SDK finds a session for its owner alone
            token = AccessToken(token="", client_id=admission.identity.name, scopes=[])
            scope["user"] = AuthenticatedUser(token)
        scope[ADMITTED_KEY] = partial(self._still_admits, admission, scope, headers)
        if self._policy.is_page(scope) and scope["method"] != "POST":
            await self._in_slot(scope, receive, send)
        else:
            await self._with_body(scope, receive, send)

    async def _still_admits(self, caller: Caller, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether the request would still be admitted for the same caller, as far as that can be
        checked.

        A call may have written before the database became unavailable: its caller must get the result.
        """
        admission: Caller | Refusal = policy.NOT_CHECKED
        with anyio.move_on_after(CHECK_SECONDS):
            admission = await self._policy.admit(scope, headers, self._identities)
        if isinstance(admission, Caller):
            return admission.identity == caller.identity
        ended = caller.identity is not None and not caller.identity.is_valid()
        return not ended and isinstance(admission, Refusal) and admission.code is policy.NOT_CHECKED.code

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body first: a slow sender holds no slot of the calls in flight.

        The SDK reads the body of any method, without a deadline.
        """
        body, key = bytearray(), scope[CALLER_KEY].key
        try:
            refusal = await self._read(body, receive, key)
            if refusal is None and not self._policy.is_page(scope):
                long = len(body) > _LARGE_BODY
                if problem := await lane("bodies").run(exceeded, body) if long else exceeded(body):
                    # It would take too much memory to parse.
                    text = f"the message has {problem}; send less at a time"
                    refusal = Refusal(400, ErrorCode.INVALID_PARAMETER, text)
            if refusal is not None:
                await refusal.response(scope, receive, send)
                return
            read = iter([{"type": "http.request", "body": body}])

            async def replay() -> Message:
                return next(read, None) or await receive()

            if scope["method"] == "POST":
                await self._in_slot(scope, replay, send, body)
            else:
                await self._app(scope, replay, self._sending(scope, replay, send))
        except ClientDisconnect:
            return
        finally:
            self._body_bytes.take(key, -len(body))

    async def _in_slot(self, scope: Scope, receive: Receive, send: Send, body: Body = b"") -> None:
        """Have the application answer a call or a page, which takes a slot.

        :param body: the complete body of the request.
        """
        caller = scope[CALLER_KEY]
        until = time.monotonic() + (BUSY_SECONDS if self._slots.has_any(caller.key) else TURN_SECONDS)
        while not self._slots.has_room(caller.key):
            if time.monotonic() >= until:
                await policy.BUSY.response(scope, receive, send)
                return
            await anyio.sleep(BUSY_SECONDS)
        self._slots.take(caller.key)
        with ExitStack() as place:
            place.callback(self._slots.take, caller.key, -1)
            scope[CALLER_KEY] = replace(caller, slot=place)
            await self._app(scope, receive, self._sending(scope, receive, send, body))

    def _sending(self, scope: Scope, receive: Receive, send: Send, body: Body = b"") -> Send:
        """Return a function that sends an answer and waits until it is read.

        It refuses the rest of an answer after the caller has lost its admission, and a long answer without
        room in memory. A page tells its reader about the token's end.
        """
        caller, is_page = scope[CALLER_KEY], self._policy.is_page(scope)
        start, checked, begun, over = None, time.monotonic(), False, False

        async def send_bounded(message: Message) -> None:
            nonlocal start, checked, begun, over
            if over:
                return
            if message["type"] == "http.response.start":
                if any(name.lower() == b"content-length" for name, _ in message.get("headers", ())):
                    start = message  # sent with the body, which may have no room
                    return
                if body:
                    scope["state"][policy.STREAM_KEY] = body
            size, refusal = len(message.get("body", b"")), None
            # The known tokens may be as old as that; the expiry of a token is exact.
            old = time.monotonic() - checked >= SECONDS
            if not is_page and (old or not (caller.identity is None or caller.identity.is_valid())):
                refusal, checked = None if await scope[ADMITTED_KEY]() else policy.NO_TOKEN, time.monotonic()
            taken = min(size, self._answer_bytes.most // 2) if size >= LARGE_ANSWER else 0
            if taken and not self._answer_bytes.has_room(caller.key, taken):
                refusal = refusal or policy.BUSY
            if refusal is not None:
                over = True
                await refusal.end(scope, receive, send, begun=begun)
                return
            begun = True
            self._answer_bytes.take(caller.key, taken)
            try:
                if start is not None:
                    await send(start)
                    start = None
                if size > READ_AT_ONCE:
                    await send({**message, "more_body": True})
                    # The server takes the next part when this one is read.
                    message = {**message, "body": b""}
                await send(message)
            finally:
                self._answer_bytes.take(caller.key, -taken)

        return send_bounded

    async def _read(self, body: bytearray, receive: Receive, caller: Hashable) -> Refusal | None:
        """Read a body into ``body`` within the limits; return the refusal, if any.

        Bodies that never end would hold their memory until every other caller is refused.

        :raises ClientDisconnect: the caller disconnected.
        """
        with anyio.move_on_after(BODY_SECONDS) as clock:
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientDisconnect
                part = message.get("body", b"")
                if len(body) + len(part) > self._policy.settings.body_limit:
                    return self._policy.too_long
                if not self._body_bytes.has_room(caller, len(part)):
                    return policy.BUSY
                self._body_bytes.take(caller, len(part))
                body += part
                clock.deadline += len(part) / BODY_RATE
                if not message.get("more_body", False):
                    return None
        return policy.TOO_SLOW
