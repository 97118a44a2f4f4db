"""Conversion of declared tools to FastMCP's: schemas of their parameters, and execution of calls.

A call with the ``request_id`` of an earlier one changes nothing and gets the same answer. The answer is
stored in the transaction of the write. Files have no transaction: the id is reserved before their change,
and the answer is stored after it. After a kill in between, a repetition is refused, because nothing tells
whether the change was made.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import CallNext, MiddlewareContext
from fastmcp.tools.base import Tool, ToolResult
from mcp_types import CallToolRequestParams, TextContent, ToolAnnotations
from pydantic import PrivateAttr, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from npl_index.answer.values import Tailored, Written
from npl_index.errors import InvalidRequestError, NPLError
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER, CURRENT, Call, Caller
from npl_mcp.app.lanes import LaneThreads
from npl_mcp.app.waiting import Pending
from npl_mcp.server.arguments import MAX_ENTRIES, strict
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.requests import BEGUN, PARAMETER, Request
from npl_mcp.tools.access import actors, domains_of_call, with_actor, without_hidden
from npl_mcp.tools.contract.error_codes import invalid_arguments
from npl_mcp.tools.contract.markdown import as_markdown
from npl_mcp.tools.contract.parameters import meant, unlisted
from npl_mcp.tools.contract.responses import Reply, as_dict, encode, size, value_type, within
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.search import Hits

Around = Callable[[Callable[[], Any]], Any]
"""Runs a part of a call."""

ToolCall = MiddlewareContext[CallToolRequestParams]
Further = CallNext[CallToolRequestParams, ToolResult]

ALWAYS_LOAD = "anthropic/alwaysLoad"
"""Metadata key of a tool: clients with deferred loading of tools load it at once."""

EQUAL_SECONDS = 10.0
"""Maximum seconds that a call waits for the end of an equal call with its ``request_id``."""


class BoundTool(Tool):
    """A declared tool and its application.

    A worker thread validates the arguments, calls the function and serialises its answer: a change of thread
    takes 55 microseconds, and a long text would block all callers on the event loop. A function that waits
    runs on the event loop; its parts run in threads. The function is called once.
    """

    _spec: ToolSpec = PrivateAttr()
    _app: App = PrivateAttr()
    _arguments: TypeAdapter[dict[str, Any]] = PrivateAttr()

    @classmethod
    def bind(cls, spec: ToolSpec, app: App) -> BoundTool:
        """Create the tool that FastMCP lists and calls.

        :param spec: the tool's declaration.
        :param app: the function's first argument.
        """
        arguments, schema = _arguments(spec.function)
        hidden = unlisted(spec.function)
        shown = {name: part for name, part in schema["properties"].items() if name not in hidden}
        if "description" in (budget := shown.get("token_budget", {})):
            description = budget["description"].format(token_budget=app.settings.token_budget)
            shown["token_budget"] = {**budget, "description": description}
        reply = _reply_schema(spec.function) if app.settings.structured else None
        tool = cls(
            name=spec.name,
            description=spec.description,
            parameters={
                **schema,
                "properties": shown,
                **({"additionalProperties": False} if spec.closed else {}),
            },
            output_schema=reply,
            annotations=_annotations(spec),
        )
        tool._spec, tool._app, tool._arguments = spec, app, arguments
        return tool

    @property
    def spec(self) -> ToolSpec:
        """The tool's declaration."""
        return self._spec

    def without_actors(self) -> BoundTool:
        """Return the tool for a caller with a token, which names the actor."""
        implied = actors(self._spec.function)
        required = [name for name in self.parameters.get("required", ()) if name not in implied]
        if required == self.parameters.get("required", []):
            return self
        kept = {name: part for name, part in self.parameters.items() if name != "required"}
        schema = {**kept, **({"required": required} if required else {})}
        return self.model_copy(update={"parameters": schema})

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Validate the arguments, call the function, and wrap its result.

        :raises ToolError: the call failed; its cause is the :class:`NPLError` to report, and FastMCP logs no
            traceback of it.
        """
        call = CURRENT.get() or Call(self.name, Caller(), arguments)
        call.tool, call.known, call.domains = self.name, True, domains_of_call(self._spec, arguments)
        try:
            return await self._answer(call, arguments)
        except NPLError as error:
            shown = CALLER.get().visible_error(error)
            # Frames hold a parser's state, and cycles of the SDK would hold these until a late collection.
            for raised in (error, shown):
                raised.__traceback__ = raised.__cause__ = raised.__context__ = None
            raise ToolError(str(shown), log_level=logging.DEBUG) from shown

    async def _answer(self, call: Call, arguments: dict[str, Any]) -> ToolResult:
        """Execute a call: a tool that waits on the event loop, any other one in one thread."""
        spec, threads = self._spec, LaneThreads(self._spec.lane, self._app.settings.time_limit)

        def whole() -> ToolResult:
            app, checked, once = self._prepared(call, arguments, threads)
            return self._finished(call, app, once(partial(spec.function, app, **checked)))

        if not (waits := inspect.iscoroutinefunction(spec.function)) and not spec.files:
            return await threads.run(whole)
        app, checked, once = await threads.run(self._prepared, call, arguments, threads)
        if waits:
            threads.around = once
            data = await spec.function(app, **checked)  # type: ignore[misc]
            threads.around = _plain
        else:
            data = await _once_with_files(app, once, partial(spec.function, app, **checked))
        return await threads.run(self._finished, call, app, data)

    def _prepared(
        self, call: Call, arguments: dict[str, Any], threads: LaneThreads
    ) -> tuple[App, dict[str, Any], Around]:
        """Return the function's arguments, and the function that runs each part of the call."""
        arguments = meant(self._spec.function, arguments)
        request_id = arguments.get(PARAMETER)
        if PARAMETER in arguments:
            arguments = {name: value for name, value in arguments.items() if name != PARAMETER}
        if (who := CALLER.get().identity) is not None:
            arguments = with_actor(self._spec, arguments, who)
        call.arguments = arguments
        caller = CALLER.get()
        checked, app = self._checked(arguments), caller.view(self._app).in_call(caller.agent, threads)
        if request_id is None or self._spec.may_read(arguments):
            return app, checked, _plain
        request = Request.parse(who.name if who else "", request_id, self.name, arguments)
        return app, checked, Once(app.database, request)

    def _finished(self, call: Call, app: App, data: object) -> ToolResult:
        """Return the serialised answer, and report it."""
        # Reports use no other values, which may be large.
        value = data.value if isinstance(data, Written) else data
        call.data = value if isinstance(value, Tailored | Hits) else None
        result = self._result(call, data)
        app.delivered()
        return result

    def _checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if len(arguments) > MAX_ENTRIES:
            problem = f"{self.name}: there are {len(arguments):,} arguments"
            raise InvalidRequestError(problem, hint=f"at most {MAX_ENTRIES:,}")
        try:
            return self._arguments.validate_python(arguments)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            raise invalid_arguments(problems, self.name, self._spec.examples) from None

    def _result(self, call: Call, data: object) -> ToolResult:
        """Serialise the answer.

        :raises NPLError: the answer exceeds the maximum bytes.
        """
        settings, caller = self._app.settings, CALLER.get()
        if call.caller.take is not None:
            call.caller.take(without_hidden(as_dict(Reply(data=data)), self._spec, caller, settings))
            return ToolResult(content=[])
        written = data.text if isinstance(data, Written) else None
        body: dict[str, Any] = {}
        if written is None or settings.structured:
            body = without_hidden(as_dict(Reply(data=data)), self._spec, caller, settings)
        if written is None:
            # If the call asks for a form, the tool has handled it.
            models = not call.arguments.get("format") and self._app.form(None) == "markdown"
            written = as_markdown(body["data"]) if models else _json(body)
        text = within(settings.body_limit, written)
        call.size = size(text)
        block = TextContent(type="text", text=text)
        return ToolResult(content=[block], structured_content=body if settings.structured else None)

    def to_mcp_tool(self, **overrides: Any) -> Any:
        """Return the entry for lists: the declared title and metadata, without FastMCP's own."""
        meta = {ALWAYS_LOAD: True} if self._spec.always else None
        return super().to_mcp_tool(**{**overrides, "title": self._spec.title, "_meta": meta})


def _json(body: dict[str, Any]) -> str:
    """Return the same text as :func:`encode`, in a fifth of the time."""
    try:
        return to_json(body).decode()
    except PydanticSerializationError:  # a lone surrogate
        return encode(body)


def register_all(server: FastMCP[Any], app: App, specs: tuple[ToolSpec, ...]) -> None:
    """Add tools to a server in the given order; a stable order keeps clients' prompt caches valid."""
    for spec in specs:
        server.add_tool(BoundTool.bind(spec, app))


def _annotations(spec: ToolSpec) -> ToolAnnotations:
    """Return the annotations that differ from the protocol's defaults.

    By default a tool writes, destroys, is not idempotent and reaches the open world. Every tool here stays on
    this machine or in the database. Destruction and idempotence have no meaning for a tool that only reads.
    """
    if spec.read_only:
        return ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return ToolAnnotations(
        destructive_hint=None if spec.destructive else False,
        idempotent_hint=True if spec.idempotent else None,
        open_world_hint=False,
    )


@cache
def _arguments(function: Callable[..., object]) -> tuple[TypeAdapter[dict[str, Any]], dict[str, Any]]:
    """Return a validator of a tool's arguments, and their JSON schema."""

    def collect(**values: Any) -> dict[str, Any]:
        return values

    # typing.get_type_hints would wrap annotations of parameters that default to None, up to Python 3.10.
    signature = inspect.signature(function, eval_str=True)
    declared = list(signature.parameters.values())[1:]
    parameters = [
        parameter.replace(
            kind=inspect.Parameter.KEYWORD_ONLY, annotation=strict(parameter.annotation, parameter.name)
        )
        for parameter in declared
    ]
    collect.__name__ = collect.__qualname__ = function.__name__
    collect.__doc__ = None
    collect.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=dict[str, Any]
    )
    collect.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(cast("Any", collect))
    return adapter, _compact(adapter.json_schema())


def _compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema without the parts that cost tokens and do not inform an agent.

    Titles repeat names; ``null`` as an alternative, and ``null`` or ``false`` as a default, are equivalent to
    "not required". The schema does not say whether an object takes other properties: a call refuses unknown
    ones with the nearest names, and it knows some hidden ones.
    """
    # Behind a list or an object the type would cost a token more.
    kept: dict[str, Any] = {"type": schema["type"]} if "type" in schema else {}
    for key, value in schema.items():
        if (key, value) in _NOISE or (key == "title" and isinstance(value, str)):
            continue
        if key == "anyOf":
            options = [_compact(option) for option in value if option.get("type") != "null"]
            # A type in the annotation replaces them.
            kept |= {} if "type" in schema else options[0] if len(options) == 1 else {key: options}
        elif key == "properties":
            kept[key] = {name: _compact(part) for name, part in value.items()}
        else:
            kept[key] = _compact(value) if isinstance(value, Mapping) else value
    return kept


# The third is not a keyword of JSON Schema.
_NOISE = (
    ("default", None),
    ("default", False),
    ("ge", 0),
    ("additionalProperties", True),
    ("additionalProperties", False),
)


def _reply_schema(function: Callable[..., object]) -> dict[str, Any]:
    returned = value_type(inspect.signature(function, eval_str=True).return_annotation)
    schema = TypeAdapter(Reply[returned]).json_schema(mode="validation")  # type: ignore[valid-type]
    for part in (schema, *schema.get("$defs", {}).values()):
        # Answers omit fields that are None, and the places of a single replica.
        part["required"] = [
            name
            for name in part.get("required", ())
            if {"type": "null"} not in part["properties"][name].get("anyOf", ())
        ]
    return schema


class _AnsweredError(Exception):
    """An earlier call has an answer already."""


def _plain(part: Callable[[], Any]) -> Any:
    return part()


@dataclass(frozen=True, slots=True)
class Once:
    """Runs the parts of a call unless it has an answer already.

    :param database: database of the answers.
    :param request: the call.
    """

    database: Database
    request: Request

    def __call__(self, part: Callable[[], Any]) -> Any:
        """Run a part of the call; its result is the answer unless it is :class:`Pending`.

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


async def _once_with_files(app: App, once: Around, change: Callable[[], object]) -> object:
    """Make a call that changes files, as :class:`Once` does; wait for an equal call that is running.

    :raises InvalidRequestError: the ``request_id`` belongs to another call.
    :raises ConflictError: an equal call has begun, and its outcome is not known.
    """
    if not isinstance(once, Once):
        return await app.threads.run(change)
    database, request = once.database, once.request

    def begin() -> str | None:
        known = database.reading(request.answer)
        return database.writing(request.begin) if known is None else known

    def made() -> object:
        try:
            outcome = change()
        except NPLError:
            with suppress(DatabaseError):  # repetitions are refused then
                database.writing(request.forget)
            raise
        database.writing(request.keep, _stored(outcome))
        return outcome

    until = time.monotonic() + EQUAL_SECONDS
    while (known := await app.threads.run(begin)) == BEGUN:
        if time.monotonic() >= until:
            raise request.unknown()
        await asyncio.sleep(0.1)
    return await app.threads.run(made) if known is None else _restored(known)


def _stored(outcome: object) -> str:
    text = outcome.text if isinstance(outcome, Written) else None
    return encode({"data": as_dict(outcome), "text": text})


def _restored(stored: str) -> object:
    """Return the outcome of an earlier call from :func:`_stored`."""
    answer = json.loads(stored)
    data = answer["data"]
    return data if answer["text"] is None else Written(data, answer["text"])
