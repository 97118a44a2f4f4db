"""Declarations of pages, and the routes made from them.

A page is a function from a visit to JSON data. A template shows the data; the same address with ``.json``
after its path returns them unchanged, and with ``.csv`` all rows of the page's table (``_table``). A page
without a template returns its own response.
All formats are rendered in a thread outside the event loop, together with the functions that a template
calls: pictures, Markdown, differences.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.tools.contract.responses import FailedReply, Reply, as_dict, encode
from npl_mcp.web import browsers
from npl_mcp.web.rendering import in_thread, render
from npl_mcp.web.visits import FORM_TOKEN, CallError, Visit, read_form

Data = dict[str, Any]

COMPRESSED = Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
"""Compression of pages and their data. No other site can request a page as a visitor and measure its size."""

TEAM = "Team"
"""Entry of the navigation for the work of agents: sessions, rooms, artifacts, worklogs, change requests."""

_HIDDEN = ("form_", "persona", "next", "digest", "seen", "token", "user")
"""Beginnings of the names of fields that a visitor does not fill in."""


class _Id(IntegerConvertor):
    """A number in a path; Python refuses to parse very long ones."""

    regex = "[0-9]{1,18}"


register_url_convertor("id", _Id())


class WebPage(NamedTuple):
    """A page for reading, or a file.

    :param path: the path in Starlette's form.
    :param data: the function that returns the data; keys with a leading ``_`` are for
        the template alone. A slow part of the data is a function that the template calls.
    :param template: the template for the data; empty for a function that returns the response.
    :param domain: the domain of the required tools; visitors without these tools do not find the page.
    :param title: the title in the navigation, which leaves out pages without one.
    :param entry: the entry of the navigation that has the page as a tab; by default its title.
    """

    path: str
    data: Callable[[Visit], Awaitable[Any]]
    template: str
    domain: str | None = None
    title: str = ""
    entry: str = ""


class FormPage(NamedTuple):
    """The answer of an action that stays on its page: a page with the problem.

    :param template: the template of the page.
    :param data: the data of the page.
    :param status: the HTTP status.
    """

    template: str
    data: Data
    status: int = 409


class Action(NamedTuple):
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


class _Static(StaticFiles):
    """The style sheet, the script and the icon; browsers revalidate them on each use."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        """Return a file with the header for that."""
        response = super().file_response(*given, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response


@dataclass
class Site:
    """The web pages of a server.

    :param calls: the tools, with the application of the server.
    :param declared: the declarations in the order of route matching.
    """

    calls: ToolCalls
    declared: Sequence[WebPage | Action]

    def routes(self) -> Iterator[BaseRoute]:
        """Return the routes of static files and of all pages."""
        files = _Static(directory=Path(__file__).parent / "static")
        yield Mount(browsers.STATIC.rstrip("/"), files, middleware=[COMPRESSED])
        for page in self.declared:
            if isinstance(page, Action):
                yield Route(page.path, partial(self._action, page), methods=["POST"])
                continue
            for suffix in ("json", "csv", "") if page.template else ("",):
                path = f"{page.path.rstrip('/') or '/index'}.{suffix}" if suffix else page.path
                yield Route(path, partial(self._page, page, suffix), middleware=[COMPRESSED])

    @property
    def handlers(self) -> Mapping[Any, Any]:
        """The answers to requests without a page, to failures, and to defects, by status or exception."""
        return dict.fromkeys((404, 500, CallError), self._failed)

    async def _page(self, page: WebPage, suffix: str, request: Request) -> Response:
        """Return a page, its data as JSON, or all rows of its table as CSV.

        :raises CallError: the page failed, or has no table.
        """
        visit = Visit(request, self.calls, all_rows=suffix == "csv")
        _check_domain(visit, page.domain)
        try:
            data = await page.data(visit)
        except CallError as error:
            if error.form is None or suffix:
                raise
            return await self._render(visit, page.template, error.form, error.code.status)
        if not page.template:
            return data  # type: ignore[no-any-return]
        if not suffix:
            return await self._render(visit, page.template, data)
        if suffix == "json":
            return await _json(Reply(data={name: data[name] for name in data if not name.startswith("_")}))
        if "_table" not in data:
            raise CallError(f"the page {visit.place[:100]!r} has no table", ErrorCode.NOT_FOUND)
        text = await in_thread(data["_table"].csv)
        return Response(text, headers={"Content-Disposition": "attachment"}, media_type="text/csv")

    async def _action(self, action: Action, request: Request) -> Response:
        visit = Visit(request, self.calls, await read_form(request))
        _check_domain(visit, action.domain)
        done: str | FormPage | Response
        if request.scope.get(browsers.FORM_KEY):
            done = _unsent(visit, 401)
        elif action.writes and not visit.may_write:
            raise CallError("these pages only show; nothing is changed here", ErrorCode.PERMISSION_DENIED)
        else:
            done = await action.run(visit) if _is_ours(visit) else _unsent(visit, 403)
        if isinstance(done, Response):
            return done
        if isinstance(done, FormPage):
            return await self._render(visit, done.template, done.data, done.status)
        response = RedirectResponse(done, 303)
        if visit.who and not visit.identity and not browsers.cookie_text(visit.cookies, browsers.NAME_COOKIE):
            set_cookie(visit, response, browsers.NAME_COOKIE, browsers.as_cookie(visit.who))
        return response

    async def _failed(self, request: Request, error: Exception) -> Response:
        """Return a page or JSON with the reason of a failure; the HTTP server logs a defect."""
        if isinstance(error, HTTPException):
            error = _no_page(request)
        elif not isinstance(error, CallError):
            message = "this page failed because of a defect in this server; its log has the details"
            error = CallError(message, ErrorCode.INTERNAL_ERROR)
        visit, status = Visit(request, self.calls), error.code.status
        if not browsers.is_page(visit.place):
            return PlainTextResponse(HTTPStatus(status).phrase, status)
        if visit.place.endswith((".json", ".csv")):
            return await _json(FailedReply(error=error.message, error_code=error.code.value), status)
        data = {"message": error.message, "status": status, "next_page": "/"}
        return await self._render(visit, "error.html", data, status)

    async def _render(self, visit: Visit, template: str, data: Data, status: int = 200) -> Response:
        """Return a page, which begins the visitor's session unless the browser has one.

        :param template: the template for the data and the common parts of pages.
        """
        html = await in_thread(render, template, visit=visit, menu=self._menu(visit), **data)
        response = Response(html, status, media_type="text/html")
        if not visit.cookies.get(browsers.SESSION_COOKIE):
            set_cookie(visit, response, browsers.SESSION_COOKIE, visit.session, None)
        return response

    def _menu(self, visit: Visit) -> list[tuple[str, list[WebPage], bool]]:
        """Return the navigation: each entry with its tabs, and whether the present page belongs to it."""
        entries: dict[str, list[WebPage]] = {}
        for page in self.declared:
            if isinstance(page, WebPage) and (page.domain is None or visit.sees(page.domain)):
                entries.setdefault(page.entry or page.title, []).append(page)
        entries.pop("", None)
        first = visit.place.split("/")[1]
        return [
            (entry, tabs, any(page.path.split("/")[1] == first for page in pages))
            for entry, pages in entries.items()
            if (tabs := [page for page in pages if page.title])
        ]


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
    is_known = bool(visit.cookies.get(browsers.SESSION_COOKIE))
    return is_known and hmac.compare_digest(given, visit.form_token.encode())


def _unsent(visit: Visit, status: int) -> FormPage:
    """Return a page that shows what was typed into a form, which was refused.

    :param status: 401 if the visitor is signed out, 403 if the form is not of this browser's page.
    """
    typed = [(name, text) for name, text in visit.form.multi_items() if not name.startswith(_HIDDEN)]
    # A proxy may give this server another name and scheme.
    page = visit.request.headers.get("referer", "").split("/", 3)[-1]
    return FormPage("unsent.html", {"typed": typed, "signs_in": status == 401, "page": f"/{page}"}, status)


def set_cookie(
    visit: Visit, response: Response, cookie: str, value: str, age: int | None = browsers.SIGNED_IN_SECONDS
) -> None:
    """Let a browser keep a value that no script reads and no other site makes it send.

    :param age: ``None`` until the browser is closed.
    """
    # Over HTTPS, cookies require it.
    secure = "https" in (visit.request.url.scheme, (visit.settings.web_url or "").partition(":")[0])
    response.set_cookie(cookie, value, age, secure=secure, httponly=True, samesite="strict")
