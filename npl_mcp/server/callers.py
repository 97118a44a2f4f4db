"""The caller of a request, the part of the server that the caller may see, and notifications of progress.

Hidden components are filtered where the server looks up names, so for lists and calls they do not exist.
A client that sent a token for progress gets notifications for every request longer than a second; tools need
no code for that. Work with known parts, such as indexing, reports them through ``PROGRESS``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
from fastmcp import Context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.transforms import Transform
from fastmcp.tools.base import Tool
from fastmcp.utilities.components import FastMCPComponent
from fastmcp.utilities.versions import VersionSpec
from mcp_types import CLIENT_INFO_META_KEY

from npl_index.deadline import limited
from npl_index.errors import NPLError
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER, CALLER_KEY, FOLDER_KEY, Caller
from npl_mcp.app.progress import PROGRESS
from npl_mcp.server.introduction import describe_documents, introduction
from npl_mcp.server.registry import ListedTool
from npl_mcp.tools.access import is_listed

INTRODUCED_SECONDS = 1.0
"""Seconds after which a connecting client gets no description of the documents."""


FIRST = 1.0
"""Seconds until the first notification of a request, and minimum seconds between two notifications."""

MAX_SECONDS = 10.0
"""Maximum seconds between two notifications of a request with unknown parts, after 1, 2, 4, 8 and 16: clients
and proxies time out after half a minute, and thousands of waiting calls must not keep a server busy.
"""


class KnowCaller(Middleware):
    """Sets the caller before any other middleware handles a message, and tells clients of the progress of
    requests with a progress token.

    :param domains: the domains of the server's tools.
    :param app: the provider of the documents.
    """

    def __init__(self, domains: Sequence[str], app: App) -> None:
        self._domains, self._app = domains, app

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Set the caller while the message is handled."""
        client: Any = context.fastmcp_context
        request = client and client.request_context
        token = CALLER.set(caller_of(request, self._app.state.process))
        tells = request and "progressToken" in (request.meta or {})
        try:
            async with Teller(client) if tells else nullcontext():
                return await call_next(context)
        finally:
            CALLER.reset(token)

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer a handshake with the instructions for the domains and documents that the caller sees."""
        result = await call_next(context)
        if not getattr(result, "instructions", None):
            return result
        shown = [domain for domain in self._domains if CALLER.get().permissions.has_domain(domain)]
        served, timed = "", limited(INTRODUCED_SECONDS)(describe_documents)
        # A folder that does not respond, or that the caller may not name, delays no client.
        with anyio.move_on_after(INTRODUCED_SECONDS), suppress(NPLError, OSError):
            served = await anyio.to_thread.run_sync(
                lambda: timed(CALLER.get().documents(self._app)), abandon_on_cancel=True
            )
        return result.model_copy(update={"instructions": introduction(shown, served)})

    on_discover = on_initialize


def caller_of(request: Any, session: str) -> Caller:
    """Return the caller, as identified by the connection and the message.

    :param request: FastMCP's context of a request; ``None`` outside a request.
    :param session: key of callers without a connection of their own.
    """
    if not request:
        return CALLER.get()
    meta = request.meta or {}
    client = meta.get(CLIENT_INFO_META_KEY)
    if not isinstance(client, dict):
        known = request.session.client_params
        client = known.client_info.model_dump() if known else {}
    folder = meta.get(FOLDER_KEY)
    caller = request.request.scope.get(CALLER_KEY) if request.request else None
    name, version = (text if isinstance(text, str) else None for text in map(client.get, ("name", "version")))
    place = None if folder is None else str(folder)
    return replace(caller or Caller(key=session), name=name, version=version, folder=place)


class VisibleParts(Transform):
    """Filters tools, resources and prompts by the domains that each caller sees.

    The tags of resources and prompts are their domains.
    """

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools that the caller may use."""
        shown, who = await self._visible(tools), CALLER.get().identity
        if who is None:
            return shown
        bound = (tool for tool in shown if isinstance(tool, ListedTool))
        return [tool.without_actors() for tool in bound if is_listed(tool.spec, who)]

    async def _visible(self, components: Sequence[Any]) -> Sequence[Any]:
        """Return the visible components of a kind."""
        return [component for component in components if _is_shown(component)]

    async def _if_visible(self, name: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        """Return the component with a name or an address if the caller sees it."""
        component = await call_next(name, version=version)
        return component if component is not None and _is_shown(component) else None

    # FastMCP passes the first argument by position.
    list_resources = list_resource_templates = list_prompts = _visible  # type: ignore[assignment]
    get_tool = get_resource = get_resource_template = get_prompt = _if_visible  # type: ignore[assignment]


def _is_shown(component: FastMCPComponent) -> bool:
    """Return whether the caller sees the domains of a component."""
    if isinstance(component, ListedTool):
        return CALLER.get().permissions.has_domain(component.spec.domain)
    return all(map(CALLER.get().permissions.has_domain, component.tags))


class Teller:
    """The notifications for one request while it runs; the protocol requires increasing numbers.

    :param client: the request's context.
    """

    def __init__(self, client: Context) -> None:
        self._client, self._began, self._last = client, time.monotonic(), -1.0
        self._parts: tuple[int, int] | None = None
        # A task's own ``cancel`` can be lost if the awaited event arrives at the same time.
        self._ends = anyio.CancelScope()

    async def __aenter__(self) -> None:
        self._token = PROGRESS.set(self._reach)
        self._task = asyncio.create_task(self._run())

    async def __aexit__(self, failure: object, *_: object) -> None:
        PROGRESS.reset(self._token)
        self._ends.cancel()
        await self._task
        if failure is None:
            await self._tell_parts()

    def _reach(self, done: int, total: int) -> None:
        """Record the number of finished parts and their total; from any thread."""
        self._parts = (done, total)

    async def _run(self) -> None:
        seconds = 0.0
        with self._ends:
            while True:
                await anyio.sleep(FIRST if self._parts else min(max(seconds, FIRST), MAX_SECONDS))
                seconds = time.monotonic() - self._began
                if self._parts:
                    await self._tell_parts()
                else:
                    await self._tell(max(self._last + 1, seconds // 1), None, f"working, {seconds:.0f} s")

    async def _tell_parts(self) -> None:
        """Send the number of finished parts, if it has grown."""
        if self._parts is not None and self._parts[0] > self._last:
            await self._tell(*self._parts, "files indexed")

    async def _tell(self, value: float, total: float | None, message: str) -> None:
        self._last = value
        # A disconnected client needs no answer either, but its request still runs to its end.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._client.report_progress(value, total, message)
