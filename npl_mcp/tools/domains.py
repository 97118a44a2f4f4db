"""Domains of tools, one module each, and lists of their tools.

A tool is a plain function; :mod:`npl_mcp.server.registry` registers it for clients. A module is imported when
its tools are first needed, so that a command imports only the module of its tool.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from npl_mcp.config.domains import LISTED, READING, domains_named

if TYPE_CHECKING:
    from npl_mcp.config.settings import Settings
    from npl_mcp.tools.contract.spec import ToolSpec


def _declared(module: str) -> tuple[ToolSpec, ...]:
    """Import a module, and return the tools that it declares.

    :param module: one of :data:`LISTED`.
    """
    tools: tuple[ToolSpec, ...] = importlib.import_module(f"npl_mcp.tools.{module}").TOOLS
    return tools


def declared_tools(domains: Iterable[str] = LISTED) -> tuple[ToolSpec, ...]:
    """Return all tools of domains, always in the same order, so that prompt caches hit."""
    chosen = set(domains)
    return tuple(spec for name in LISTED if name in chosen for spec in _declared(name))


def listed_tools(domains: Iterable[str] = LISTED) -> tuple[ToolSpec, ...]:
    """Return the tools for agents, without those that only a setting lists."""
    return tuple(spec for spec in declared_tools(domains) if spec.listed)


def shown_tools(settings: Settings, domains: Iterable[str] = LISTED) -> tuple[ToolSpec, ...]:
    """Return the tools for agents, with those that a setting adds; they come last in their domain.

    Of the group :data:`READING` only the tools that are always loaded are listed; the others can be called.
    """
    others = [word for word in settings.domains if word != READING]
    whole = domains_named(others) if others or not settings.domains else ()
    return tuple(
        replace(spec, listed=bool(spec.always or spec.switch or spec.domain in whole))
        for spec in declared_tools(domains)
        if spec.listed or _is_added(spec, settings)
    )


def _is_added(spec: ToolSpec, settings: Settings) -> bool:
    """Return whether a setting lists a tool."""
    switched = spec.switch is not None and getattr(settings, spec.switch)
    return bool(switched and (spec.read_only or not settings.unwritable))


def tool_named(name: str) -> ToolSpec:
    """Return the declaration of a tool; the module that its name suggests is imported first.

    :raises KeyError: there is no such tool.
    """
    domain = name.partition("_")[0]
    for module in sorted(LISTED, key=lambda module: module != domain):
        for spec in _declared(module):
            if spec.name == name:
                return spec
    raise KeyError(name)
