"""The domains of tools, one module each, and the tools of some or all of them.

A tool is a plain function; :mod:`npl_mcp.server.registry` registers it for clients. A module is imported by
its name when its tools are first needed, so that a command waits only for the tool it calls.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from npl_mcp.tools.domain_names import LISTED as LISTED
from npl_mcp.tools.domain_names import PRESETS as PRESETS
from npl_mcp.tools.domain_names import domains_named as domains_named

if TYPE_CHECKING:
    from npl_mcp.config.settings import Settings
    from npl_mcp.tools.spec import ToolSpec

UNLISTED: Mapping[str, str | None] = {
    "items": "npl",
    "survey": "npl",
    "audit": "npl",
    "documents": "npl",
    "calls": None,
}
"""Further modules of tools that only command lines and pages call, and of those that a setting lists, each
with the domain it comes with, if any.
"""


class ToolModule(Protocol):
    """A module of this package that declares tools."""

    TOOLS: tuple[ToolSpec, ...]


def tool_module(name: str) -> ToolModule:
    """Import a module of tools.

    :param name: one of :data:`LISTED` or :data:`UNLISTED`.
    """
    return cast("ToolModule", importlib.import_module(f"npl_mcp.tools.{name}"))


def listed_tools(domains: Iterable[str] = LISTED) -> tuple[ToolSpec, ...]:
    """Return the tools that agents are shown; the order never changes, so that prompt caches hit."""
    chosen = set(domains)
    return tuple(spec for name in LISTED if name in chosen for spec in tool_module(name).TOOLS if spec.listed)


def unlisted_tools(domains: Iterable[str] = LISTED) -> tuple[ToolSpec, ...]:
    """Return the tools that only the command lines and the pages call."""
    chosen = set(domains)
    modules = [name for name in (*LISTED, *UNLISTED) if UNLISTED.get(name, name) in (None, *chosen)]
    return tuple(
        spec for name in modules for spec in tool_module(name).TOOLS if name in UNLISTED or not spec.listed
    )


def switched_on(settings: Settings, domains: Iterable[str] = LISTED) -> tuple[ToolSpec, ...]:
    """Return the tools that agents are shown because a setting says so."""
    return tuple(
        replace(spec, listed=True)
        for spec in unlisted_tools(domains)
        if spec.switch is not None and getattr(settings, spec.switch) and not settings.unwritable
    )


def shown_tools(settings: Settings, domains: Iterable[str] = LISTED) -> tuple[ToolSpec, ...]:
    """Return the tools that agents are shown; those that a setting adds end the list of their domain."""
    tools = (*listed_tools(domains), *switched_on(settings, domains))
    return tuple(sorted(tools, key=lambda spec: LISTED.index(str(domain_of(spec)))))


def domain_of(spec: ToolSpec) -> str | None:
    """Return the domain of a tool; ``None`` if no module of this package declares it."""
    package, _, module = spec.function.__module__.rpartition(".")
    return UNLISTED.get(module, module) if package == __package__ else None


def tool_named(name: str) -> ToolSpec:
    """Return the declaration of a tool, and import only the modules of its domain if its name tells which.

    :raises KeyError: there is no such tool.
    """
    domain = name.partition("_")[0]
    for module in sorted((*LISTED, *UNLISTED), key=lambda module: module.partition("_")[0] != domain):
        for spec in tool_module(module).TOOLS:
            if spec.name == name:
                return spec
    raise KeyError(name)
