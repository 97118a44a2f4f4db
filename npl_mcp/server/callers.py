"""The caller of a request, and the part of the server that the caller may see.

Hidden components are filtered where the server looks up names, so for lists and calls they do not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
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
from npl_mcp.server.introduction import describe_documents, introduction
from npl_mcp.server.progress import Teller
from npl_mcp.server.registry import ListedTool
from npl_mcp.tools.access import is_listed

INTRODUCED_SECONDS = 1.0
"""Seconds after which a connecting client gets no description of the documents."""


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
    name, version = client.get("name"), client.get("version")
    return replace(
        caller or Caller(key=session),
        name=name if isinstance(name, str) else None,
        version=version if isinstance(version, str) else None,
        folder=None if folder is None else str(folder),
    )


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
