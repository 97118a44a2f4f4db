"""How pages are declared, and how they become routes.

A page is a function from a visit to data, as JSON holds it. The data are shown by a template, and sent as
they are at the same address with ``.json`` behind its path; with ``.csv`` all rows of its table (``_table``)
are. All are written beside the event loop, and so is
what a template calls: pictures, Markdown, differences.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from fastmcp import FastMCP
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.convertors import Convertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from npl_mcp.app.app import App
from npl_mcp.app.call_reports import ADMITTED_KEY
from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.tools.contract.responses import FailedReply, Reply, as_dict, encode
from npl_mcp.web.browsers import (
    FORM_KEY,
    NAME_COOKIE,
    SESSION_COOKIE,
    SIGNED_IN_SECONDS,
    TOKEN_COOKIE,
    as_cookie,
    form_token,
    is_page,
    kept_in,
)
from npl_mcp.web.rendering import beside, fragments, render
from npl_mcp.web.tables import Table
from npl_mcp.web.visits import FORM_ID, FORM_TOKEN, CallError, Visit, read_form

Data = dict[str, Any]

COMPRESSED = Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
"""For pages and their data. No other site can ask for a page in a visitor's name and measure its length."""

WAIT_SECONDS = 30
"""How long one look for news waits for some."""

AWAY_SECONDS = 1
"""How long after a look that the database did not answer the next one comes."""


class _Id(Convertor[int]):
    """A number in a path: Python reads none that is very long."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("id", _Id())


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page that is looked at.

    :param path: of Starlette's form.
    :param data: what it shows, or another response; keys that begin with ``_`` are for the template alone.
        What takes long to be worked out for it is a function that the template calls.
    :param template: shows the data.
    :param domain: of the tools it needs; the page is not there for whom these are not.
    :param title: in the navigation; pages without one are not in it.
    """

    path: str
    data: Callable[[Visit], Awaitable[Data | Response]]
    template: str
    domain: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What an action answers with instead of another page: a page that says what went wrong.

    :param template: of the page.
    :param data: what it shows.
    :param status: of HTTP.
    :param token: the browser keeps it from now on.
    """

    template: str
    data: Data
    status: int = 409
    token: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """What a form does.

    :param path: of Starlette's form.
    :param run: does it, and returns the address of the page to go to.
    :param writes: it is refused where pages only show.
    """

    path: str
    run: Callable[[Visit], Awaitable[str | Shown | Response]]
    writes: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a page that has news.

    :param values: what the macro takes that shows it.
    :param cursor: by which a browser goes on later; ``None`` for an earlier row that is another now, which a
        page leaves out that does not show it.
    """

    values: tuple[Any, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """News of a page, as server-sent events. A page that has a row with the same id already replaces it.

    :param path: of Starlette's form.
    :param news: returns what came after a cursor; where there is nothing, it waits for a while.
    :param template: has the macro.
    :param macro: shows a row.
    """

    path: str
    news: Callable[[Visit, str], Awaitable[Sequence[Row]]]
    template: str
    macro: str


@dataclass(frozen=True, slots=True)
class Download:
    """A file.

    :param path: of Starlette's form.
    :param answer: makes the response.
    """

    path: str
    answer: Callable[[Visit], Awaitable[Response]]


Declared = WebPage | Action | Stream | Download


@dataclass
class Site:
    """The pages of a server.

    :param declared: in the order in which paths are tried.
    :param app: of the server; see :class:`Visit`.
    """

    server: FastMCP[Any]
    settings: Settings
    declared: Sequence[Declared]
    app: App | None = None
    navigation: tuple[WebPage, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.navigation = tuple(one for one in self.declared if isinstance(one, WebPage) and one.title)

    def routes(self) -> Iterator[BaseRoute]:
        """Return the routes of all pages."""
        for one in self.declared:
            if isinstance(one, WebPage):
                for suffix in ("json", "csv"):
                    path = f"{one.path.rstrip('/') or '/index'}.{suffix}"
                    yield Route(path, self._page(one, suffix), middleware=[COMPRESSED])
                yield Route(one.path, self._page(one), middleware=[COMPRESSED])
            elif isinstance(one, Action):
                yield Route(one.path, self._action(one), methods=["POST"])
            elif isinstance(one, Stream):
                yield Route(one.path, self._stream(one))
            else:
                yield Route(one.path, self._download(one))

    def _visit(self, request: Request) -> Visit:
        return Visit(request, self.server, self.settings, app=self.app)

    def _page(self, page: WebPage, suffix: str = "") -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit = replace(self._visit(request), whole=suffix == "csv")
            try:
                _check_domain(visit, page.domain)
                data = await page.data(visit)
                if isinstance(data, Response):
                    return data
                if suffix == "csv":
                    return await _csv(visit, data.get("_table"))
            except CallError as error:
                if error.form is not None and not suffix:
                    return await self.shown(visit, page.template, error.form, error.status)
                return await self.failed(visit, error, bool(suffix))
            if suffix:
                shown = {name: value for name, value in data.items() if not name.startswith("_")}
                return await _json(Reply(data=shown))
            response = await self.shown(visit, page.template, data)
            for cookie, text in data.get("_keeps", {}).items():
                keep(visit, response, cookie, text)
            return response

        return answer

    def _action(self, action: Action) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit = self._visit(request)
            try:
                visit = replace(visit, form=await read_form(request))
                if (sent_to := request.scope.get(FORM_KEY)) is not None:
                    done: str | Shown | Response
                    done = again(visit, sent_to, visit.form.multi_items(), signs_in=True)
                else:
                    _check_writes(visit, action.writes)
                    done = await action.run(visit) if _is_ours(visit) else _outdated(visit, action.writes)
            except CallError as error:
                return await self.failed(visit, error)
            if isinstance(done, Response):
                return done
            if isinstance(done, Shown):
                response = await self.shown(visit, done.template, done.data, done.status)
                if done.token:
                    keep(visit, response, TOKEN_COOKIE, done.token)
                return response
            response = RedirectResponse(done, 303)
            if visit.who and not visit.identity and not kept_in(visit.cookies, NAME_COOKIE):
                keep(visit, response, NAME_COOKIE, visit.who)
            return response

        return answer

    def _stream(self, stream: Stream) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit = self._visit(request)
            if request.method == "HEAD":
                return Response(media_type="text/event-stream")
            return EventSourceResponse(_events(visit, stream), ping=20)

        return answer

    def _download(self, download: Download) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit = self._visit(request)
            try:
                return await download.answer(visit)
            except CallError as error:
                return await self.failed(visit, error)

        return answer

    async def nowhere(self, request: Request, _: Exception) -> Response:
        """Answer a request for what there is not; programs get what Starlette says."""
        if not is_page(request.url.path):
            return PlainTextResponse("Not Found", 404)
        error = CallError(f"there is no page {request.url.path[:100]!r}", ErrorCode.NOT_FOUND)
        return await self.failed(self._visit(request), error, request.url.path.endswith(".json"))

    async def broken(self, request: Request, _: Exception) -> Response:
        """Answer a request that met a defect; whoever serves writes the exception to the log."""
        if not is_page(request.url.path):
            return PlainTextResponse("Internal Server Error", 500)
        message = "this page failed because of a defect in this server; its log has the details"
        error = CallError(message, ErrorCode.INTERNAL_ERROR)
        return await self.failed(self._visit(request), error, request.url.path.endswith(".json"))

    async def shown(self, visit: Visit, template: str, data: Data, status: int = 200) -> Response:
        """Return a page.

        :param template: shows the data, and what every page has.
        """
        menu = [page for page in self.navigation if page.domain is None or visit.sees(page.domain)]
        html = await beside(render, template, visit=visit, menu=menu, **data)
        response = Response(html, status, media_type="text/html")
        if visit.is_new:
            response.set_cookie(
                SESSION_COOKIE, visit.session, httponly=True, samesite="strict", secure=visit.is_secure
            )
        return response

    async def failed(self, visit: Visit, error: CallError, as_json: bool = False) -> Response:
        """Return what says why there is no page."""
        status = error.status
        if as_json:
            return await _json(FailedReply(error=error.message, error_code=error.code.value), status)
        return await self.shown(
            visit, "error.html", {"message": error.message, "status": status, "next_page": "/"}, status
        )


async def _json(body: Reply[Any] | FailedReply, status: int = 200) -> Response:
    return Response(await beside(_written, body), status, media_type="application/json")


def _written(body: Reply[Any] | FailedReply) -> str:
    return encode(as_dict(body))


async def _csv(visit: Visit, table: Table | None) -> Response:
    """Return all rows of a page's table.

    :raises CallError: it has none.
    """
    if table is None:
        raise CallError(f"the page {visit.request.url.path[:100]!r} has no table", ErrorCode.NOT_FOUND)
    text = await beside(lambda: "".join(table.csv()))
    return Response(text, headers={"Content-Disposition": "attachment"}, media_type="text/csv")


async def _events(visit: Visit, stream: Stream) -> AsyncIterator[ServerSentEvent]:
    """Yield what happens from now on, or from where the browser left off."""
    since = visit.request.headers.get("last-event-id") or visit.text("since")
    try:
        while True:
            try:
                rows = await stream.news(visit, since)
            except CallError as error:
                if error.code is not ErrorCode.DATABASE_ERROR:
                    raise
                # A browser that is told of a failure asks no more, and the database may come back.
                rows = ()
                await anyio.sleep(AWAY_SECONDS)
            await _check_admitted(visit)
            parts = await beside(fragments, stream.template, stream.macro, [row.values for row in rows])
            for row, html in zip(rows, parts, strict=True):
                since = row.cursor or since
                yield ServerSentEvent(html, id=row.cursor, event=None if row.cursor else "changed")
    except CallError as error:
        yield ServerSentEvent(error.message, event="failed")


async def _check_admitted(visit: Visit) -> None:
    """Refuse whose token has ended since they came."""
    if not await visit.request.scope[ADMITTED_KEY]():
        raise CallError("the token has ended; sign in again", ErrorCode.PERMISSION_DENIED)


def _check_domain(visit: Visit, domain: str | None) -> None:
    if domain is not None and not visit.sees(domain):
        path = visit.request.url.path[:100]
        raise CallError(f"there is no page {path!r}", ErrorCode.NOT_FOUND)


def _check_writes(visit: Visit, writes: bool) -> None:
    if writes and not visit.may_write:
        raise CallError("these pages only show; nothing is changed here", ErrorCode.PERMISSION_DENIED)


def _is_ours(visit: Visit) -> bool:
    """Return whether a form is one that this browser was sent."""
    given = visit.form.get(FORM_TOKEN, "").encode()
    return not visit.is_new and hmac.compare_digest(given, visit.form_token.encode())


def _outdated(visit: Visit, writes: bool) -> Shown:
    """Return a page with the fields of a form that cannot be taken as it is.

    :raises CallError: nothing was typed into it.
    """
    if not writes:
        raise CallError(
            "the form is too old, or not of this page; go back, reload the page and send it again",
            ErrorCode.PERMISSION_DENIED,
        )
    return again(visit, visit.here(), visit.form.multi_items())


def again(
    visit: Visit, to: str, fields: Sequence[tuple[str, str]], *, signs_in: bool = False, token: str = ""
) -> Shown:
    """Return a page that keeps the fields of a form, for the sender to send them.

    :param to: the address that the form was sent to.
    :param signs_in: the sender has to sign in before.
    :param token: the sender has just signed in with it.
    """
    kept = [(name, value) for name, value in fields if name != FORM_TOKEN]
    proof = form_token(visit.session, as_cookie(token)) if token else visit.form_token
    typed = max((value for name, value in kept if name != FORM_ID), key=len, default="")
    data = {"to": to, "fields": kept, "signs_in": signs_in, "proof": proof, "typed": typed}
    return Shown("again.html", data, 401 if signs_in else 200 if token else 403, token)


def keep(visit: Visit, response: Response, cookie: str, text: str) -> None:
    """Let a browser keep a text: the token of its visitor, or the name that they chose."""
    response.set_cookie(
        cookie,
        as_cookie(text),
        max_age=SIGNED_IN_SECONDS,
        httponly=True,
        samesite="strict",
        secure=visit.is_secure,
    )
