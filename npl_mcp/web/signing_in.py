"""Signing in: a token is given once in a form, and kept in a cookie that no script can read."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from npl_mcp.web.browsers import SIGN_IN, SIGNED_IN_SECONDS, TOKEN_COOKIE, as_cookie
from npl_mcp.web.routing import Action, Data, Page
from npl_mcp.web.visits import Visit


def _target(text: str) -> str:
    """Return a path of this server; another address would lead whoever signs in elsewhere."""
    inside = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if inside else "/"


async def sign_in_page(visit: Visit) -> Data:
    """Return where to go after signing in, and whether a token was refused just now."""
    refused = TOKEN_COOKIE in visit.cookies and visit.identity is None
    return {"next": _target(visit.text("next")), "refused": refused}


async def sign_in(visit: Visit) -> Response:
    """Keep a token; the next request shows whether it is accepted."""
    response = RedirectResponse(_target(visit.form.get("next", "")), 303)
    response.set_cookie(
        TOKEN_COOKIE,
        as_cookie(visit.form.get("token", "").strip()),
        max_age=SIGNED_IN_SECONDS,
        httponly=True,
        samesite="strict",
        secure=visit.is_secure,
    )
    return response


async def sign_out(_: Visit) -> Response:
    """Forget the token."""
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(TOKEN_COOKIE, httponly=True, samesite="strict")
    return response


DECLARED = (
    Page(SIGN_IN, sign_in_page, "sign_in.html"),
    Action(SIGN_IN, sign_in, writes=False),
    Action("/sign-out", sign_out, writes=False),
)
