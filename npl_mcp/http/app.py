"""The HTTP application: MCP at ``/mcp``, plain JSON at ``/mcp/tools/{name}``, health, readiness and metrics.

All calls go through the same server, and so through the same checks, as those over standard streams.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
from mcp.server.transport_security import TransportSecuritySettings
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive

from npl_index.errors import InvalidRequestError
from npl_mcp import __version__
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER_KEY, FOLDER_HEADER
from npl_mcp.app.lanes import blocked, lane
from npl_mcp.calls.invoking import Outcome, ToolCalls, failure
from npl_mcp.http.guard import Guard
from npl_mcp.http.metrics import CONTENT_TYPE, Metrics
from npl_mcp.http.policy import READY, SOME_DOMAINS, SOON, Identities, Policy, Refreshed, Refusal
from npl_mcp.server.fastmcp_private import Sessions, sdk_server
from npl_mcp.server.server import create_server, tool_calls
from npl_mcp.stores.base.errors import StoreError
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.web.routes import site_of

MAX_SESSIONS = 1_000
"""Maximum open sessions of the 2025-11-25 protocol. A session ends after half an hour without a request;
above the maximum, the session with the longest idle time ends.
"""

READY_SECONDS = 2.0
"""Maximum age in seconds of the readiness result, and its time limit."""

CLOSED = 499
"""Status for a caller that closed the connection; the answer has no reader."""

BLOCKED_SECONDS = 5.0
"""Seconds of calls without a turn after which a server is not ready."""


class _Name(PathConvertor):
    """A tool's name, which may have slashes; no name is no path, so that nothing leads there."""

    regex = ".+"


register_url_convertor("tool", _Name())


def create_app(policy: Policy) -> Guard:
    """Build the application; it opens nothing before it runs.

    :param policy: the admission of callers.
    """
    settings = policy.settings
    app = App(settings)
    metrics = Metrics(app)
    calls = tool_calls(app, metrics.reports)
    server = create_server(settings, calls)
    # Single requests (2026-07-28), and sessions for clients that make a handshake (2025-11-25 and before).
    protocol = Sessions(
        sdk_server(server),
        # Other servers of the same database do not know a session, and a load balancer may choose them next.
        stateless=settings.database_url is not None,
        # The guard in front has checked this.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=settings.body_limit,
        max_sessions=MAX_SESSIONS,
    )
    ready = Refreshed(app.stores.answers, READY_SECONDS)
    routes: list[BaseRoute] = [
        Route("/mcp", protocol),
        Route("/mcp/", protocol),
        Route("/mcp/tools/{name:tool}", partial(_call, calls), methods=["POST"]),
        Route("/healthz", partial(_health, server.name)),
        Route(READY, partial(_readiness, ready)),
        Route("/metrics", partial(_metrics, metrics)),
    ]
    handlers: Mapping[Any, Any] = {}
    if settings.web != "off":
        site = site_of(calls)
        routes += site.routes()
        handlers = site.handlers
    starlette = Starlette(routes=routes, lifespan=lambda _: protocol.run(), exception_handlers=handlers)
    return Guard(starlette, policy, Identities(app.stores.identities))


async def _health(name: str, _: Request) -> Response:
    """Report that the process runs."""
    return JSONResponse({"ok": True, "name": name, "version": __version__})


async def _metrics(metrics: Metrics, request: Request) -> Response:
    """Return the metrics; they are not for callers who may see only some domains."""
    identity = request.scope[CALLER_KEY].identity
    if identity is not None and identity.permissions.domains is not None:
        return SOME_DOMAINS.response
    return Response(await lane("light").run(metrics.text), media_type=CONTENT_TYPE)


async def _readiness(ready: Refreshed[bool], _: Request) -> Response:
    """Report whether calls that need the database can be answered; the reason reveals no contents."""
    problem = "it does not answer in time"
    if hanging := blocked(BLOCKED_SECONDS):
        text = f"not ready: calls have waited for {BLOCKED_SECONDS:g} s: {', '.join(hanging)}"
        return Refusal(503, ErrorCode.OPERATION_FAILED, text, SOON).response
    try:
        with anyio.move_on_after(READY_SECONDS):
            await ready.get()
            return JSONResponse({"ok": True})
    except StoreError as error:
        problem = str(error)
    return Refusal(503, ErrorCode.DATABASE_ERROR, f"not ready: {problem}", SOON).response


async def _call(calls: ToolCalls, request: Request) -> Response:
    """Call a tool with the JSON object that is the request's body."""
    name, caller = request.path_params["name"], replace(request.scope[CALLER_KEY], reads="json")
    try:
        arguments = await lane("light").run(_arguments, await request.body())
        outcome = await unless_gone(calls.invoke(name, caller, arguments), request.receive)
    except InvalidRequestError as error:
        outcome = failure(error, name)
    if outcome is None:
        return Response(status_code=CLOSED)
    status = 200 if outcome.code is None else outcome.code.status
    refused = {FOLDER_HEADER: "refused"} if outcome.folder_refused else None
    return Response(outcome.text, status, refused, outcome.media_type)


async def unless_gone(invoked: Coroutine[Any, Any, Outcome], receive: Receive) -> Outcome | None:
    """Return the outcome of a call; ``None`` if the caller disconnects first, which cancels the call."""
    outcome: Outcome | None = None

    async def end_if_gone(calling: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        calling.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(end_if_gone, group.cancel_scope)
        outcome = await invoked
        group.cancel_scope.cancel()
    return outcome


def _arguments(body: bytes) -> dict[str, Any]:
    hint = 'send the arguments as an object, e.g. {"file": "npl.md"}'
    try:
        arguments = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidRequestError(f"the body is not JSON: {error}", hint=hint) from None
    if not isinstance(arguments, dict):
        raise InvalidRequestError("the body is not an object", hint=hint)
    return arguments
