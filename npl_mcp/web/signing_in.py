"""Signing in: a form takes a token once, and a cookie that no script can read keeps it."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from npl_mcp.web.browsers import NAME_COOKIE, SIGN_IN, TOKEN_COOKIE, as_cookie
from npl_mcp.web.routing import Action, Data, WebPage, set_cookie
from npl_mcp.web.visits import Visit

MAX_NAME = 200


def local_path(text: str) -> str:
    """Return a path of this server; any other address would lead the visitor to another site."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local else "/"


async def sign_in_page(visit: Visit) -> Data:
    """Return the next page after signing in, and whether a token was just refused."""
    refused = TOKEN_COOKIE in visit.cookies and visit.identity is None
    return {"next": local_path(visit.text("next")), "refused": refused}


async def sign_in(visit: Visit) -> Response:
    """Keep a token; the next request checks it."""
    return _keeping(visit, TOKEN_COOKIE, visit.form.get("token", "").strip())


async def choose_name(visit: Visit) -> Response:
    """Keep the chosen name of a visitor without a token."""
    return _keeping(visit, NAME_COOKIE, visit.form.get("name", "").strip()[:MAX_NAME])


def _keeping(visit: Visit, cookie: str, text: str) -> Response:
    response = RedirectResponse(local_path(visit.form.get("next", "")), 303)
    set_cookie(visit, response, cookie, as_cookie(text))
    return response


async def sign_out(_: Visit) -> Response:
    """Forget the token."""
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(TOKEN_COOKIE, httponly=True, samesite="strict")
    return response


DECLARED = (
    WebPage(SIGN_IN, sign_in_page, "sign_in.html"),
    Action(SIGN_IN, sign_in, None, writes=False),
    Action("/name", choose_name, None, writes=False),
    Action("/sign-out", sign_out, None, writes=False),
)
