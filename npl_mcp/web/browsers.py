"""What a request of a browser proves: that it comes from our own pages, who is signed in, whose form it is.

Sources: Fetch Metadata (https://www.w3.org/TR/fetch-metadata/) and cookies (RFC 6265bis).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.types import Message, Send

TOKEN_COOKIE = "npl_token"
"""Holds the token of who is signed in; no script can read it, and no other site makes a browser send it."""

SESSION_COOKIE = "npl_session"
"""Holds a random text that the tokens of forms are made from."""

NAME_COOKIE = "npl_name"
"""Holds the name that a visitor without a token acts by."""

SEEN_COOKIE = "npl_seen"
"""Holds when the visit before this one ended, and when the first page was looked at last."""

SIGNED_IN_SECONDS = 30 * 24 * 3600

STATIC = "/static/"
SIGN_IN = "/sign-in"

FORM_KEY = "npl.form"
"""Key of the scope of a request to sign in with the path that a form was sent to."""

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
"""Of every answer for a browser, whoever makes it."""

_PROGRAMS = ("/mcp", "/metrics", "/healthz", "/readyz")


def is_page(path: str) -> bool:
    """Return whether a path is one of the pages, and not of what programs call."""
    return not any(path == one or path.startswith(f"{one}/") for one in _PROGRAMS)


def needs_nobody(path: str) -> bool:
    """Return whether a page is shown before anybody has signed in."""
    return path == SIGN_IN or path.startswith(STATIC)


def wants_html(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a person sees the answer: programs ask for anything, or for JSON."""
    return b"text/html" in headers.get(b"accept", b"")


def is_form(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a person sends a form."""
    return method == "POST" and wants_html(headers)


def is_from_elsewhere(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether another site makes a browser send a request, other than by a link that somebody follows.

    :param headers: by lower-case name.
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


def protecting(send: Send) -> Send:
    """Return what sends an answer with :data:`HEADERS`, except those that it has."""

    async def send_protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            there = {name.lower() for name, _ in headers}
            more = ((name.lower().encode(), value.encode()) for name, value in HEADERS.items())
            message = {**message, "headers": [*headers, *(one for one in more if one[0] not in there)]}
        await send(message)

    return send_protected


def cookies(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return the cookies of a request.

    In ours nothing is escaped. :mod:`http.cookies` reads what is; some versions take minutes for a line.
    """
    pairs = (one.partition("=") for one in headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return {name.strip(): value.strip(' "') for name, _, value in pairs}


def signed_in(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the token of who is signed in; empty if nobody is."""
    return _held(cookies(headers).get(TOKEN_COOKIE, ""))


def kept_in(kept: Mapping[str, str], cookie: str) -> str:
    """Return the text that a cookie holds; empty without it.

    :param kept: cookies.
    """
    return _held(kept.get(cookie, "")).decode("utf-8", "replace").strip()


def _held(cookie: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(cookie)
    except (binascii.Error, ValueError):
        return b""


def as_cookie(token: str) -> str:
    """Return a token as a cookie can hold it."""
    return base64.urlsafe_b64encode(token.encode()).decode()


def new_session() -> str:
    """Return a text that nobody can guess."""
    return secrets.token_urlsafe(24)


def form_token(session: str, token: str) -> str:
    """Return what a form must send back: only pages that were sent to this browser know it.

    :param session: its cookie.
    :param token: the cookie of who is signed in: a form of somebody else is refused.
    """
    return hmac.new(session.encode(), b"form:" + token.encode(), "sha256").hexdigest()
