"""One visit of a page: its request, and calls of tools in the visitor's name."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar, overload
from unicodedata import normalize
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request

from npl_index.cached import cached_property
from npl_index.errors import InvalidRequestError, NPLError
from npl_mcp.app.call_reports import CALLER, CALLER_KEY, PAGES, Caller
from npl_mcp.app.context import Context
from npl_mcp.app.lanes import LaneThreads, lane
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config.domains import domains_named
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import Identity
from npl_mcp.stores.base.database import content_digest
from npl_mcp.stores.base.paging import MAX_PAGE
from npl_mcp.stores.requests import PARAMETER
from npl_mcp.tools.access import without_hidden
from npl_mcp.tools.contract.error_codes import ErrorCode, code_of
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.web.browsers import NAME_COOKIE, SESSION_COOKIE, TOKEN_COOKIE, cookie_text, cookies, form_token

T = TypeVar("T")

FORM_TOKEN = "form_token"
"""Field of every form that writes."""

FORM_ID = "form_id"
"""Field of every form that writes, unique to each page: a form sent twice writes once."""

PERSONA = "persona"
"""Field of every form with the visitor's name on its page."""

FORM_TYPE = "application/x-www-form-urlencoded"
MAX_FORM = 4 * 1024 * 1024
MAX_FIELDS = 1_000


Form = ImmutableMultiDict[str, str]
"""Fields of a form; the last field of a name counts."""


class CallError(Exception):
    """A failed tool, or a request for an item that does not exist.

    :param message: the problem, its place, and the remedy.
    :param parameter: the tool's parameter or the form's field with the invalid value.
    """

    form: dict[str, Any] | None = None
    """Data with which the page keeps its form and shows the problem there."""

    def __init__(
        self, message: str, code: ErrorCode = ErrorCode.INVALID_PARAMETER, parameter: str | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.parameter = message, code, parameter


@dataclass(frozen=True)
class Visit:
    """A request for a page.

    :param request: the request of Starlette.
    :param calls: the tools, with the application of the server.
    :param form: the fields of the sent form.
    :param all_rows: whether all rows of a table are requested.
    """

    request: Request
    calls: ToolCalls
    form: Form = field(default_factory=ImmutableMultiDict)
    all_rows: bool = False

    @property
    def settings(self) -> Settings:
        """The settings of the server."""
        return self.calls.app.settings

    @cached_property
    def caller(self) -> Caller:
        """The visitor as a caller; its working directory is the server's."""
        caller: Caller = self.request.scope[CALLER_KEY]
        return replace(caller, name=PAGES, version=None, folder=None, reads="values")

    @property
    def identity(self) -> Identity | None:
        """The visitor's identity; ``None`` without a token."""
        return self.caller.identity

    @cached_property
    def who(self) -> str:
        """The visitor's name: from the token, else from the form or the browser; or empty."""
        if self.identity:
            return self.identity.name
        return normalize("NFC", self.form.get(PERSONA) or cookie_text(self.cookies, NAME_COOKIE))

    @property
    def is_signed_in(self) -> bool:
        """Whether the visitor has given a token, which signing out deletes."""
        return self.identity is not None or TOKEN_COOKIE in self.cookies

    def sees(self, domain: str) -> bool:
        """Return whether the server has a domain of tools that the visitor may see."""
        is_served = domain in domains_named(self.settings.domains)
        return is_served and self.caller.permissions.has_domain(domain)

    @property
    def may_write(self) -> bool:
        """Whether pages show forms and accept them."""
        return self.settings.web == "on" and not self.caller.read_only

    @cached_property
    def cookies(self) -> Mapping[str, str]:
        """The browser's cookies for this server."""
        return cookies(dict(self.request.scope["headers"]))

    @property
    def form_token(self) -> str:
        """The token in this visitor's forms; see :func:`~npl_mcp.web.browsers.form_token`."""
        return form_token(self.session, self.cookies.get(TOKEN_COOKIE, ""))

    @cached_property
    def session(self) -> str:
        """The visitor's session, which cannot be guessed; a new visitor gets one with the first page."""
        return self.cookies.get(SESSION_COOKIE) or secrets.token_urlsafe(24)

    def here(self, twin: str = "", /, **changed: object) -> str:
        """Return the address of this page with other parameters.

        :param twin: the ending of the page's data.
        :param changed: the changed parameters; ``None`` removes one.
        """
        path = f"{self.place.rstrip('/') or '/index'}{twin}" if twin else self.place
        query = self.request.query_params
        return address(path, **{**{name: query.getlist(name) for name in query}, **changed})

    @property
    def place(self) -> str:
        """The path of this page, unquoted; Starlette's address quotes some characters."""
        return str(self.request.scope["path"])

    def path(self, name: str) -> Any:
        """Return a part of the path."""
        return self.request.path_params[name]

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter of the address."""
        return self.request.query_params.get(name, default).strip()

    def texts(self, name: str) -> list[str]:
        """Return all values of a parameter of the address, without empty ones."""
        return [value.strip() for value in self.request.query_params.getlist(name) if value.strip()]

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return a whole number of the address.

        :raises CallError: the value is not a whole number.
        """
        text = self.text(name)
        if text and not (text.isascii() and text.isdecimal() and len(text) <= 15):
            raise CallError(f"{name.capitalize()}: a whole number, not {text[:64]!r}", parameter=name)
        return int(text) if text else default

    def flag(self, name: str) -> bool:
        """Return whether a check box of the address is ticked."""
        return self.text(name).lower() in ("1", "true", "on", "yes")

    @cached_property
    def _request_ids(self) -> Callable[[str], str]:
        """The ids for the calls of a form, by tool: when it is sent again, a joined room is not joined first.

        A form with edited fields has other ids.
        """
        fields = repr([field for field in self.form.multi_items() if field[0] != FORM_TOKEN])
        digest, numbers = content_digest(fields.encode("utf-8", "replace")), defaultdict[str, Any](count)
        return lambda tool: f"{digest}-{tool}-{next(numbers[tool])}"

    @overload
    async def run(
        self, work: Callable[..., Coroutine[Any, Any, T]], *given: object, **named: object
    ) -> T: ...
    @overload
    async def run(self, work: Callable[..., T], *given: object, **named: object) -> T: ...
    async def run(self, work: Callable[..., Any], *given: object, **named: object) -> Any:
        """Return the result of a function of the visitor's context; the page has checked the domain.

        A coroutine function can wait without a thread; any other one runs in a thread.

        :param given: further arguments of the function, as ``named``.
        :raises CallError: the function failed.
        """
        token = CALLER.set(self.caller)
        try:
            threads = LaneThreads(self.settings.time_limit, "heavy")
            found = await threads.run(work, self.caller.context(self.calls.app, threads), *given, **named)
            return await found if isinstance(found, Coroutine) else found
        except NPLError as error:
            shown = CALLER.get().visible_error(error)
            parameter = error.parameter if isinstance(error, InvalidRequestError) else None
            raise CallError(str(shown), code_of(type(shown)), parameter) from error
        finally:
            CALLER.reset(token)

    async def read(self, function: Callable[..., object], *given: object) -> Any:
        """Return the fields of what a function of the stores reads, without those of domains that the visitor
        may not see.

        :param given: the arguments after the transaction.
        """

        def work(app: Context) -> Any:
            body = as_dict(app.database.reading(function, *given))
            return without_hidden(body, ToolSpec(function), self.caller, self.settings)

        return await self.run(work)

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the data of a tool's result.

        :param arguments: the arguments of the call; ``None`` omits one.
        :raises CallError: the call failed.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        if FORM_ID in self.form:
            given[PARAMETER] = self._request_ids(tool)
        answer = (await self.calls.invoke(tool, self.caller, given)).body
        if not answer["success"]:
            raise CallError(answer["error"], ErrorCode[answer["error_code"]], answer.get("parameter"))
        return answer["data"]

    async def every(self, tool: str, /, **arguments: Any) -> list[Any]:
        """Return all items of a tool's list.

        :raises CallError: the call failed.
        """
        items: list[Any] = []
        while True:
            page = await self.call(tool, **arguments, limit=MAX_PAGE, offset=len(items))
            items += page["items"]
            if not page["items"] or len(items) >= page["total"]:
                return items


def address(path: str, /, **parameters: object) -> str:
    """Return an address of this server.

    :param path: the unquoted path.
    :param parameters: the parameters; ``None`` and empty ones are omitted, and a list gives one per item.
    """
    given = {name: value for name, value in parameters.items() if value not in (None, "", [], ())}
    query = f"?{urlencode(given, doseq=True, errors='replace')}" if given else ""
    return quote(path, safe="/", errors="replace") + query


async def read_form(request: Request) -> Form:
    """Return the fields of a form, with typed line breaks: browsers send CR LF for each.

    Any visitor may send a form to sign in, so only the encoding of our own pages is read: Starlette decodes
    other encodings as the sender declares, which may take forever, and reads them on the event loop.

    :raises CallError: the body is not an encoded form, or is too long.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise CallError(f"this is not a form; send it as {FORM_TYPE}")
    body = await request.body()
    if len(body) > MAX_FORM:
        raise CallError(f"the form has {len(body):,} bytes; send at most {MAX_FORM:,}")
    try:
        return ImmutableMultiDict(await lane("light").run(_fields, body.decode("utf-8", "replace")))
    except ValueError:
        raise CallError(f"the form has too many fields; send at most {MAX_FIELDS:,}") from None


def _fields(body: str) -> list[tuple[str, str]]:
    pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    return [(name, value.replace("\r\n", "\n").replace("\r", "\n")) for name, value in pairs]
