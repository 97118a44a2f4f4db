"""Declarations of pages, and the routes made from them.

A page is a function from a visit to JSON data. A template shows the data; the same address with ``.json``
after its path returns them unchanged, and with ``.csv`` all rows of the page's table (``_table``).
All formats are rendered in a thread outside the event loop, together with the functions that a template
calls: pictures, Markdown, differences.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.tools.contract.responses import FailedReply, Reply, as_dict, encode
from npl_mcp.web.browsers import (
    FORM_KEY,
    NAME_COOKIE,
    SESSION_COOKIE,
    SIGNED_IN_SECONDS,
    TOKEN_COOKIE,
    as_cookie,
    cookie_text,
    form_token,
    is_page,
)
from npl_mcp.web.rendering import in_thread, render
from npl_mcp.web.tables import Table
from npl_mcp.web.visits import FORM_TOKEN, CallError, Visit, read_form

Data = dict[str, Any]

Respond = Callable[[Visit], Awaitable[Response]]

COMPRESSED = Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
"""Compression of pages and their data. No other site can request a page as a visitor and measure its size."""

TEAM = "Team"
"""Entry of the navigation for the work of agents: sessions, rooms, artifacts, worklogs, change requests."""

TYPED = ("title", "description", "text", "others", "message", "comment", "overall_comment")
"""Fields with the words of a visitor."""


class _Id(IntegerConvertor):
    """A number in a path; Python refuses to parse very long ones."""

    regex = "[0-9]{1,18}"


register_url_convertor("id", _Id())


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page for reading.

    :param path: the path in Starlette's form.
    :param data: the function that returns the data; keys with a leading ``_`` are for
        the template alone. A slow part of the data is a function that the template calls.
    :param template: the template for the data.
    :param domain: the domain of the required tools; visitors without these tools do not find the page.
    :param title: the title in the navigation, which leaves out pages without one.
    :param entry: the entry of the navigation that has the page as a tab; by default its title.
    """

    path: str
    data: Callable[[Visit], Awaitable[Data]]
    template: str
    domain: str | None = None
    title: str | None = None
    entry: str | None = None


@dataclass(frozen=True, slots=True)
class FormPage:
    """The answer of an action that stays on its page: a page with the problem.

    :param template: the template of the page.
    :param data: the data of the page.
    :param status: the HTTP status.
    :param token: the token for the browser to keep.
    """

    template: str
    data: Data
    status: int = 409
    token: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """The action of a form.

    :param path: the path in Starlette's form.
    :param run: the function that performs the action, and returns the address of the next page.
    :param domain: the domain of the required tools; visitors without these tools do not find the action.
    :param writes: whether read-only pages and tokens refuse the action.
    """

    path: str
    run: Callable[[Visit], Awaitable[str | FormPage | Response]]
    domain: str | None
    writes: bool = True


@dataclass(frozen=True, slots=True)
class Download:
    """A file to download.

    :param path: the path in Starlette's form.
    :param answer: the function that returns the response.
    """

    path: str
    answer: Respond


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An entry of the navigation.

    :param pages: its pages that the visitor may see; several are tabs.
    :param is_current: whether the present page belongs to it.
    """

    title: str
    pages: Sequence[WebPage]
    is_current: bool


Declared = WebPage | Action | Download


@dataclass
class Site:
    """The web pages of a server.

    :param calls: the tools, with the application of the server.
    :param declared: the declarations in the order of route matching.
    """

    calls: ToolCalls
    declared: Sequence[Declared]

    def routes(self) -> Iterator[BaseRoute]:
        """Return the routes of all pages."""
        for declared in self.declared:
            if isinstance(declared, WebPage):
                for suffix in ("json", "csv"):
                    path = f"{declared.path.rstrip('/') or '/index'}.{suffix}"
                    data = self._serving(partial(_data, declared, suffix), as_json=True)
                    yield Route(path, data, middleware=[COMPRESSED])
                page = self._serving(partial(self._page, declared))
                yield Route(declared.path, page, middleware=[COMPRESSED])
            elif isinstance(declared, Action):
                yield Route(declared.path, self._serving(partial(self._action, declared)), methods=["POST"])
            else:
                yield Route(declared.path, self._serving(declared.answer))

    def _visit(self, request: Request) -> Visit:
        return Visit(request, self.calls)

    def _serving(self, answer: Respond, *, as_json: bool = False) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that answers a visit, or with the reason of a failure.

        :param as_json: whether a failure is answered as JSON.
        """

        async def serve(request: Request) -> Response:
            visit = self._visit(request)
            try:
                if request.method == "POST":
                    visit = replace(visit, form=await read_form(request))
                return await answer(visit)
            except CallError as error:
                return await self.render_error(visit, error, as_json)

        return serve

    async def _page(self, page: WebPage, visit: Visit) -> Response:
        _check_domain(visit, page.domain)
        try:
            data = await page.data(visit)
        except CallError as error:
            if error.form is None:
                raise
            return await self.render_page(visit, page.template, error.form, error.status)
        return await self.render_page(visit, page.template, data)

    async def _action(self, action: Action, visit: Visit) -> Response:
        done: str | FormPage | Response
        fields = visit.form.multi_items()
        _check_domain(visit, action.domain)
        if (sent_to := visit.request.scope.get(FORM_KEY)) is not None:
            done = resend_page(visit, sent_to, fields, signs_in=True)
        elif action.writes and not visit.may_write:
            raise CallError("these pages only show; nothing is changed here", ErrorCode.PERMISSION_DENIED)
        elif _is_ours(visit):
            done = await action.run(visit)
        elif action.writes:
            done = resend_page(visit, visit.here(), fields)
        else:  # nothing was typed
            message = "the form is too old, or not of this page; go back, reload the page and send it again"
            raise CallError(message, ErrorCode.PERMISSION_DENIED)
        if isinstance(done, Response):
            return done
        if isinstance(done, FormPage):
            response = await self.render_page(visit, done.template, done.data, done.status)
            if done.token:
                set_cookie(visit, response, TOKEN_COOKIE, done.token)
            return response
        response = RedirectResponse(done, 303)
        if visit.who and not visit.identity and not cookie_text(visit.cookies, NAME_COOKIE):
            set_cookie(visit, response, NAME_COOKIE, visit.who)
        return response

    async def not_found(self, request: Request, _: Exception) -> Response:
        """Answer a request for an unknown address."""
        return await self._refusal(request, _no_page(request), "Not Found")

    async def server_error(self, request: Request, _: Exception) -> Response:
        """Answer a request that met a defect; the HTTP server logs the exception."""
        message = "this page failed because of a defect in this server; its log has the details"
        error = CallError(message, ErrorCode.INTERNAL_ERROR)
        return await self._refusal(request, error, "Internal Server Error")

    async def _refusal(self, request: Request, error: CallError, plain: str) -> Response:
        """Return the reason why a request has no answer; programs get the text of Starlette's answer."""
        if not is_page(request.url.path):
            return PlainTextResponse(plain, error.status)
        return await self.render_error(self._visit(request), error, request.url.path.endswith(".json"))

    async def render_page(self, visit: Visit, template: str, data: Data, status: int = 200) -> Response:
        """Return a page.

        :param template: the template for the data and the common parts of pages.
        """
        html = await in_thread(render, template, visit=visit, menu=self._menu(visit), **data)
        return _in_session(visit, Response(html, status, media_type="text/html"))

    def _menu(self, visit: Visit) -> list[MenuEntry]:
        """Return the navigation: pages with the same entry are its tabs."""
        pages: dict[str, list[WebPage]] = {}
        current = ""
        for page in self.declared:
            if isinstance(page, WebPage) and (page.domain is None or visit.sees(page.domain)):
                entry = page.entry or page.title or ""
                if entry and visit.place.split("/")[1] == page.path.split("/")[1]:
                    current = entry
                if page.title:
                    pages.setdefault(entry, []).append(page)
        return [MenuEntry(title, own, title == current) for title, own in pages.items()]

    async def render_error(self, visit: Visit, error: CallError, as_json: bool) -> Response:
        """Return a page or JSON with the reason of a failure."""
        if as_json:
            return await _json(FailedReply(error=error.message, error_code=error.code.value), error.status)
        data = {"message": error.message, "status": error.status, "next_page": "/"}
        return await self.render_page(visit, "error.html", data, error.status)


async def _data(page: WebPage, suffix: str, visit: Visit) -> Response:
    """Return the data of a page as JSON, or all rows of its table as CSV.

    :raises CallError: the page has no table.
    """
    _check_domain(visit, page.domain)
    data = await page.data(replace(visit, all_rows=suffix == "csv"))
    if suffix == "json":
        return await _json(Reply(data={name: data[name] for name in data if not name.startswith("_")}))
    table: Table | None = data.get("_table")
    if table is None:
        raise CallError(f"the page {visit.request.url.path[:100]!r} has no table", ErrorCode.NOT_FOUND)
    text = await in_thread(table.csv)
    return Response(text, headers={"Content-Disposition": "attachment"}, media_type="text/csv")


async def _json(body: Reply[Any] | FailedReply, status: int = 200) -> Response:
    text = await in_thread(lambda: encode(as_dict(body)))
    return Response(text, status, media_type="application/json")


def _check_domain(visit: Visit, domain: str | None) -> None:
    if domain is not None and not visit.sees(domain):
        raise _no_page(visit.request)


def _no_page(request: Request) -> CallError:
    """Return the failure of a page that is not there, or that the visitor may not see."""
    return CallError(f"there is no page {request.url.path[:100]!r}", ErrorCode.NOT_FOUND)


def _is_ours(visit: Visit) -> bool:
    """Return whether a form was sent to this browser."""
    given = visit.form.get(FORM_TOKEN, "").encode()
    is_known = bool(visit.cookies.get(SESSION_COOKIE))
    return is_known and hmac.compare_digest(given, visit.form_token.encode())


def resend_page(
    visit: Visit, to: str, fields: Sequence[tuple[str, str]], *, signs_in: bool = False, token: str = ""
) -> FormPage:
    """Return a page that keeps the fields of a form, for its sender to send again.

    :param to: the address of the form's action.
    :param signs_in: whether the sender must sign in first.
    :param token: the token with which the sender has just signed in.
    """
    kept = [(name, value) for name, value in fields if name != FORM_TOKEN]
    proof = form_token(visit.session, as_cookie(token)) if token else visit.form_token
    typed = "\n\n".join(value for name, value in kept if name in TYPED)
    data = {"to": to, "fields": kept, "signs_in": signs_in, "proof": proof, "typed": typed}
    return FormPage("again.html", data, 401 if signs_in else 200 if token else 403, token)


_CONFINED: dict[str, Any] = {"httponly": True, "samesite": "strict"}
"""Options of cookies that no script reads and no other site makes a browser send."""


def _in_session(visit: Visit, response: Response) -> Response:
    """Return a response that begins the visitor's session, unless the browser has one."""
    if not visit.cookies.get(SESSION_COOKIE):
        response.set_cookie(SESSION_COOKIE, visit.session, secure=visit.is_secure, **_CONFINED)
    return response


def set_cookie(visit: Visit, response: Response, cookie: str, text: str) -> None:
    """Let a browser keep a text: the visitor's token, or the visitor's chosen name."""
    response.set_cookie(cookie, as_cookie(text), SIGNED_IN_SECONDS, secure=visit.is_secure, **_CONFINED)
