"""The domains of tools, one module each, and the tools of some or all of them.

A tool is a plain function; :mod:`npl_mcp.server.registry` registers it for clients. A module is imported by
its name when its tools are first needed, so that a command waits only for the tool it calls.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from npl_index.errors import InvalidRequestError
from npl_index.library.references import near_names

if TYPE_CHECKING:
    from npl_mcp.tools.spec import ToolSpec

LISTED = ("npl", "session", "artifact", "chat", "review", "worklog", "cr", "directive", "utility")
"""Domains, which are modules of this package, in the order in which their tools are listed."""

UNLISTED: Mapping[str, str] = {
    "items": "npl",
    "survey": "npl",
    "content": "npl",
    "worklog_commands": "worklog",
    "cr_templates": "cr",
}
"""Modules of tools that only the command lines call, each with the domain it comes with."""

PRESETS: Mapping[str, tuple[str, ...]] = {
    "all": LISTED,
    "loading": ("npl",),
    "coordination": ("session", "artifact", "chat", "review", "worklog"),
    "changes": ("cr", "directive"),
}
"""Domains that go together, by a name for all of them."""


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
    return tuple(spec for name in LISTED if name in chosen for spec in tool_module(name).TOOLS)


def unlisted_tools(domains: Iterable[str] = LISTED) -> tuple[ToolSpec, ...]:
    """Return the tools that only the command lines call."""
    chosen = set(domains)
    modules = (name for name, domain in UNLISTED.items() if domain in chosen)
    return tuple(spec for name in modules for spec in tool_module(name).TOOLS)


def domain_of(spec: ToolSpec) -> str | None:
    """Return the domain of a tool; ``None`` if no module of this package declares it."""
    package, _, module = spec.function.__module__.rpartition(".")
    return UNLISTED.get(module, module) if package == __package__ else None


def domains_named(words: Iterable[str]) -> tuple[str, ...]:
    """Return the domains that words name, in the order in which their tools are listed.

    :param words: names of domains and of :data:`PRESETS`; none means all domains.
    :raises InvalidRequestError: a word names nothing.
    """
    wanted: set[str] = set()
    for word in words:
        if word not in LISTED and word not in PRESETS:
            names = dict.fromkeys((*LISTED, *PRESETS))
            near = near_names(word[:64], names)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
            raise InvalidRequestError(f"there is no domain {word[:64]!r}", parameter="domains", hint=hint)
        wanted.update(PRESETS.get(word, (word,)))
    return tuple(name for name in LISTED if not wanted or name in wanted)


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
