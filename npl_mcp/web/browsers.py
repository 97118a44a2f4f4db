"""Proofs in a browser's request: its origin in our own pages, the signed-in caller, the form's recipient.

Sources: Fetch Metadata (https://www.w3.org/TR/fetch-metadata/) and cookies (RFC 6265bis).
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

TOKEN_COOKIE = "npl_token"
"""The cookie with the caller's token. No script can read it, and no other site makes a browser send it."""

SESSION_COOKIE = "npl_session"
"""The cookie with a random text, the source of form tokens."""

NAME_COOKIE = "npl_name"
"""The cookie with the name of a visitor without a token."""

SIGNED_IN_SECONDS = 30 * 24 * 3600

STATIC = "/static/"
SIGN_IN = "/sign-in"

FORM_KEY = "npl.form"
"""Scope key of a form that arrived without a token and became a request to sign in."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer to a browser, from any part of the server."""

_PROGRAMS = ("/mcp", "/metrics", "/healthz", "/readyz")


def is_page(path: str) -> bool:
    """Return whether a path belongs to the pages, and not to the interfaces for programs."""
    return not any(path == place or path.startswith(f"{place}/") for place in _PROGRAMS)


def needs_no_sign_in(path: str) -> bool:
    """Return whether a page needs no signed-in caller."""
    return path == SIGN_IN or path.startswith(STATIC)


def wants_html(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a person sees the answer: programs accept anything, or JSON."""
    return b"text/html" in headers.get(b"accept", b"")


def is_from_elsewhere(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether another site makes a browser send a request, except through a followed link.

    :param headers: the headers by lower-case name.
    """
    origin = headers.get(b"origin")
    if origin is not None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        return _host_of(origin.decode("latin-1")) != host
    if headers.get(b"sec-fetch-site", b"none") in (b"same-origin", b"none"):
        return False
    followed = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    return method not in ("GET", "HEAD") or not followed


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def with_headers(send: Send) -> Send:
    """Return a function that sends an answer and adds its missing :data:`HEADERS`."""

    async def send_protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_protected


def cookies(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return the cookies of a request.

    Our cookies contain no escapes. :mod:`http.cookies` decodes escapes, and some of its versions need minutes
    for one line.
    """
    pairs = (pair.partition("=") for pair in headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return {name.strip(): value.strip(' "') for name, _, value in pairs}


def signed_in(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the token of the signed-in caller; empty without one."""
    return _decoded(cookies(headers).get(TOKEN_COOKIE, ""))


def cookie_text(values: Mapping[str, str], cookie: str) -> str:
    """Return the text of a cookie; empty without it.

    :param values: all cookies.
    """
    return _decoded(values.get(cookie, "")).decode("utf-8", "replace").strip()


def _decoded(cookie: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(cookie)
    except (binascii.Error, ValueError):
        return b""


def as_cookie(token: str) -> str:
    """Return a token in the encoding of a cookie."""
    return base64.urlsafe_b64encode(token.encode()).decode()


def form_token(session: str, token: str) -> str:
    """Return the token of a form, known only to pages that this browser received.

    :param session: the value of the session cookie.
    :param token: the cookie of the signed-in caller: a form of another caller is refused.
    """
    return hmac.new(session.encode(), b"form:" + token.encode(), "sha256").hexdigest()
