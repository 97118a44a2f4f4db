"""Calls of tools: each is prepared, executed and serialised in a worker thread, and reported when it ends."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from npl_index.answer.values import Tailored, Written
from npl_index.errors import NotFoundError, NPLError
from npl_index.library.references import near_names
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER, Call, Caller, FolderRefusedError, Reports, reports_of
from npl_mcp.app.context import Context
from npl_mcp.app.lanes import LaneThreads
from npl_mcp.app.waiting import OwnThread, Pending
from npl_mcp.calls.arguments import validated
from npl_mcp.config.domains import domains_named
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.requests import BEGUN, PARAMETER, Request
from npl_mcp.tools.access import is_listed, with_actor, without_hidden
from npl_mcp.tools.contract.aliases import REMOVED_TOOLS, usable_aliases
from npl_mcp.tools.contract.error_codes import ErrorCode, translate
from npl_mcp.tools.contract.markdown import as_markdown
from npl_mcp.tools.contract.parameters import meant
from npl_mcp.tools.contract.responses import as_dict, encode, size, too_long
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import declared_tools, shown_tools
from npl_mcp.tools.search import Hits

logger = logging.getLogger(__name__)

JSON, MARKDOWN = "application/json", "text/markdown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a call.

    :param body: the envelope; empty if the caller reads only its text.
    :param text: the answer as it is sent; empty for a caller that reads values.
    :param code: the code of the error; ``None`` after a success.
    :param media_type: of the text.
    :param folder_refused: whether the caller's working directory cannot be used.
    """

    body: Mapping[str, Any]
    text: str = ""
    code: ErrorCode | None = None
    media_type: str = JSON
    folder_refused: bool = False


def failure(error: BaseException, tool: str) -> Outcome:
    """Return the outcome of a failed call.

    :param tool: name of the tool, for the log.
    """
    body = as_dict(translate(error, tool))
    refused = isinstance(error, FolderRefusedError)
    return Outcome(body, encode(body), ErrorCode[body["error_code"]], folder_refused=refused)


class ToolCalls:
    """The tools of a server, and the calls of them, also by former names.

    :param app: first argument of the tools' functions, before it gets each caller's view.
    :param reports: receiver of finished calls; by default a log as set in the settings.
    :param more: further tools.
    """

    def __init__(self, app: App, reports: Reports | None = None, more: Iterable[ToolSpec] = ()) -> None:
        self.app, self.reports = app, reports or reports_of(app)
        self.domains = domains_named(app.settings.domains)
        shown = {spec.name: spec for spec in shown_tools(app.settings, self.domains)}
        self.aliases = usable_aliases(shown)
        others = (spec for spec in declared_tools(self.domains) if spec.name not in shown)
        self.specs = (*shown.values(), *others, *more)
        self._by_name = {spec.name: spec for spec in self.specs}
        self._proposed = shown | {old: shown[alias.new] for old, alias in self.aliases.items()}
        self._told: set[str] = set()

    def add(self, *specs: ToolSpec) -> None:
        """Add tools that the server lists by itself."""
        self._by_name |= {spec.name: spec for spec in specs}

    async def invoke(self, name: str, caller: Caller, arguments: Mapping[str, Any]) -> Outcome:
        """Call a tool, and report the call.

        :param name: a present or former name.
        :param arguments: unchecked values.
        """
        call = Call(name, caller, arguments)
        token = CALLER.set(caller)
        self.reports.in_flight += 1
        try:
            outcome = await self._run(call, self._tool_of(call))
        except Exception as error:
            shown = caller.visible_error(error) if isinstance(error, NPLError) else error
            outcome = failure(shown, name)
            call.code, call.message = outcome.body["error_code"], outcome.body["error"]
            call.size = size(outcome.text)
            if isinstance(error, NPLError):
                # Frames hold a parser's state, and cycles hold these until a late collection.
                error.__traceback__ = error.__cause__ = error.__context__ = None
        finally:
            self.reports.in_flight -= 1
            CALLER.reset(token)
        call.seconds = time.perf_counter() - call.started
        self.reports.add(call)
        return outcome

    def _tool_of(self, call: Call) -> ToolSpec:
        """Return the tool that a call names; a former name may imply arguments.

        :raises NotFoundError: the caller sees no such tool.
        """
        alias = self.aliases.get(call.tool)
        spec = self._by_name.get(call.tool if alias is None else alias.new)
        who = call.caller.identity
        if spec is None or not (who is None or who.permissions.has_domain(spec.domain)):
            raise self._unknown(call.tool[:64], call.caller)
        if alias is not None:
            if not (self.app.settings.exact_names and alias.listed) and call.tool not in self._told:
                self._told.add(call.tool)
                logger.warning("the tool name %r is deprecated; call %r", call.tool, alias.new)
            call.arguments = {**call.arguments, **alias.fixed}
        call.tool, call.known, call.domains = spec.name, True, spec.domains
        if spec.references:
            named = spec.references.items()
            call.domains += tuple(domain for name, domain in named if call.arguments.get(name) is not None)
        return spec

    def _unknown(self, name: str, caller: Caller) -> NotFoundError:
        """Return the error for an unknown tool, with its replacement or similar names for the caller."""
        if name in REMOVED_TOOLS:
            return NotFoundError(f"the tool {name} was removed", hint=REMOVED_TOOLS[name])
        words = set(re.split(r"\W|_", name.lower()))
        who = caller.identity
        names = {known: spec.name for known, spec in self._proposed.items() if is_listed(spec, who)}
        sharing = [known for known in names if words.intersection(known.split("_"))]
        alike = near_names(name, names, limit=3) or sharing
        near = tuple(dict.fromkeys(names[known] for known in alike))
        hint = None if near else "there are " + ", ".join(dict.fromkeys(names.values()))
        return NotFoundError(f"there is no tool {name!r}", near=near, hint=hint)

    def _run(self, call: Call, spec: ToolSpec) -> Coroutine[Any, Any, Outcome]:
        """Make a call. A change of thread takes 55 microseconds, so a call that does not wait has one."""
        threads = LaneThreads(self.app.settings.time_limit, spec.lane)

        def whole() -> Outcome:
            app, work, request = prepare(call, spec, self.app, threads)
            data = work() if request is None else Once(app.database, request)(work)
            return serialise(call, spec, app, data)

        async def parts() -> Outcome:
            app, work, request = await threads.run(prepare, call, spec, self.app, threads)
            if request is None:
                data = await (work() if spec.waits else threads.run(work))
            elif spec.waits:
                threads.around = Once(app.database, request)
                data = await work()
                threads.around = None
            else:
                data = await once_with_files(app.database, request, threads, work)
            return await threads.run(serialise, call, spec, app, data)

        has_parts = spec.waits or (spec.files and PARAMETER in call.arguments)
        return parts() if has_parts else threads.run(whole)


def prepare(
    call: Call, spec: ToolSpec, app: App, threads: LaneThreads
) -> tuple[Context, Callable[[], Any], Request | None]:
    """Return the caller's view, the tool's function with its arguments, and the request of a stored answer.

    :raises InvalidRequestError: an argument is invalid.
    :raises NotAllowedError: the caller may not make this call.
    """
    arguments = meant(spec.function, call.arguments)
    request_id, who = arguments.pop(PARAMETER, None), call.caller.identity
    if who is not None:
        arguments = with_actor(spec, arguments, who)
    call.arguments = arguments
    context = call.caller.context(app, threads)
    work = partial(spec.function, context, **validated(spec, arguments))
    if request_id is None or spec.may_read(arguments):
        return context, work, None
    return context, work, Request.parse(who.name if who else "", request_id, spec.name, arguments)


def serialise(call: Call, spec: ToolSpec, app: Context, data: object) -> Outcome:
    """Return the outcome with the result of a tool's function, in the form that the caller reads.

    :raises NPLError: the answer exceeds the maximum bytes.
    """
    settings, caller, body, is_json = app.settings, call.caller, dict[str, Any](), True
    # Reports use no other values, which may be large.
    value = data.value if isinstance(data, Written) else data
    call.data = value if isinstance(value, Tailored | Hits) else None
    text = data.text if isinstance(data, Written) and caller.reads != "values" else None
    if text is None or settings.structured:
        body = {"success": True, "data": as_dict(data)}
        if caller.identity is not None or not caller.trusted or settings.database_url is not None:
            body = without_hidden(body, spec, caller, settings)
    if text is not None:
        is_json = isinstance(data, Written) and data.is_json
    elif caller.reads == "values":
        text = ""
    elif call.arguments.get("format") or app.form(None) == "json":  # a requested form is the tool's task
        text = to_text(body)
    else:
        text, is_json = as_markdown(body["data"]), False
    call.size = size(text)
    if call.size > settings.body_limit:
        raise too_long(settings.body_limit)
    for then in app.when_delivered:
        then()
    return Outcome(body, text, media_type=JSON if is_json else MARKDOWN)


def to_text(body: dict[str, Any]) -> str:
    """Return the same text as :func:`encode`, in a fifth of the time."""
    try:
        return to_json(body).decode()
    except PydanticSerializationError:  # a lone surrogate
        return encode(body)


EQUAL_SECONDS = 10.0
"""Maximum seconds that a call waits for the end of an equal call with its ``request_id``."""


class _AnsweredError(Exception):
    """An earlier call has an answer already."""


@dataclass(frozen=True, slots=True)
class Once:
    """Runs the parts of a call unless the call has an answer already.

    :param database: database of the answers.
    :param request: the call.
    """

    database: Database
    request: Request

    def __call__(self, part: Callable[[], Any]) -> Any:
        """Run a part of the call; its result is the answer unless it is ``Pending``.

        The transaction lasts until the answer is complete, with what the function reads and the copies it
        writes after its change: an answer that is stored later would be lost if the server ended in between.

        :raises InvalidRequestError: the ``request_id`` belongs to another call.
        """

        def check(tx: Transaction) -> None:
            if (known := self.request.answer(tx)) is not None:
                raise _AnsweredError(known)

        try:
            self.database.reading(check)
            # An equal call may have finished meanwhile, so the check is repeated before the first write.
            with self.database.joined(check):
                outcome = part()
                if not isinstance(outcome, Pending):
                    self.database.writing(self.request.keep, _stored(outcome))
                return outcome
        except _AnsweredError as answered:
            return _restored(str(answered))


async def once_with_files(
    database: Database, request: Request, threads: OwnThread, change: Callable[[], object]
) -> object:
    """Make a call that changes files, as :class:`Once` does; wait for an equal call that is running.

    Files have no transaction: the id is reserved before their change, and the answer is stored after it.
    After a kill in between, a repetition is refused, because nothing tells whether the change was made.

    :raises InvalidRequestError: the ``request_id`` belongs to another call.
    :raises ConflictError: an equal call has begun, and its outcome is not known.
    """

    def begin() -> str | None:
        known = database.reading(request.answer)
        return database.writing(request.begin) if known is None else known

    def make() -> object:
        try:
            outcome = change()
        except NPLError:
            with suppress(DatabaseError):  # repetitions are refused then
                database.writing(request.forget)
            raise
        database.writing(request.keep, _stored(outcome))
        return outcome

    until = time.monotonic() + EQUAL_SECONDS
    while (known := await threads.run(begin)) == BEGUN:
        if time.monotonic() >= until:
            raise request.unknown()
        await asyncio.sleep(0.1)
    return await threads.run(make) if known is None else _restored(known)


def _stored(outcome: object) -> str:
    return encode({"data": as_dict(outcome)})


def _restored(stored: str) -> object:
    """Return the outcome of an earlier call from :func:`_stored`."""
    return json.loads(stored)["data"]
