"""The tools, one module per domain.

A tool is a plain function; :mod:`npl_mcp.server.registry` registers it for clients. A module is imported by
its name when its tools are first needed, so that a command waits only for the tool it calls.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from npl_index.errors import InvalidRequestError
from npl_index.library.references import near_names

if TYPE_CHECKING:
    from npl_mcp.tools.spec import ToolSpec

    DOMAINS: tuple[ModuleType, ...]
    SPECS: tuple[ToolSpec, ...]
    COMMANDS: tuple[ToolSpec, ...]

_LISTED = ("npl", "session", "artifact", "chat", "review", "worklog", "cr", "directive", "utility")
_UNLISTED = {"items": "npl", "survey": "npl", "worklog_commands": "worklog", "cr_templates": "cr"}
"""Modules of tools that only the command lines call, each with the domain it comes with."""

PRESETS: Mapping[str, tuple[str, ...]] = {
    "all": _LISTED,
    "loading": ("npl",),
    "coordination": ("session", "artifact", "chat", "review", "worklog"),
    "changes": ("cr", "directive"),
}
"""Domains that go together, by a name for all of them."""


def __getattr__(name: str) -> object:
    """Return ``DOMAINS``, the modules whose tools are listed; ``SPECS``, the declarations of these tools; or
    ``COMMANDS``, those of tools that only the command lines call.

    The order of ``SPECS`` is that of the list of tools. It never changes, so that prompt caches hit.
    """
    if name == "COMMANDS":
        found: dict[str, object] = {name: _tools(_UNLISTED)}
    elif name in ("DOMAINS", "SPECS"):
        found = {"DOMAINS": _modules(_LISTED), "SPECS": _tools(_LISTED)}
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals().update(found)
    return found[name]


def domains_named(words: Iterable[str]) -> tuple[str, ...]:
    """Return the domains that words name, in the order in which their tools are listed.

    :param words: names of domains and of :data:`PRESETS`; none means all domains.
    :raises InvalidRequestError: a word names nothing.
    """
    wanted: set[str] = set()
    for word in words:
        if word not in _LISTED and word not in PRESETS:
            names = dict.fromkeys((*_LISTED, *PRESETS))
            near = near_names(word[:64], names)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
            raise InvalidRequestError(f"there is no domain {word[:64]!r}", parameter="domains", hint=hint)
        wanted.update(PRESETS.get(word, (word,)))
    return tuple(name for name in _LISTED if not wanted or name in wanted)


def tools_of(domains: Iterable[str]) -> tuple[tuple[ToolSpec, ...], tuple[ToolSpec, ...]]:
    """Return the declarations of the tools of some domains: those that are listed, in order, and all others.

    :param domains: as :func:`domains_named` gives them.
    """
    chosen = set(domains)
    listed = _tools(name for name in _LISTED if name in chosen)
    return listed, _tools(name for name, domain in _UNLISTED.items() if domain in chosen)


def tool_named(name: str) -> ToolSpec:
    """Return the declaration of a tool, and import only the modules of its domain if its name tells which.

    :raises KeyError: there is no such tool.
    """
    domain = name.partition("_")[0]
    for module in sorted((*_LISTED, *_UNLISTED), key=lambda module: module.partition("_")[0] != domain):
        for spec in _tools((module,)):
            if spec.name == name:
                return spec
    raise KeyError(name)


def _modules(names: Iterable[str]) -> tuple[ModuleType, ...]:
    return tuple(importlib.import_module(f"npl_mcp.tools.{name}") for name in names)


def _tools(names: Iterable[str]) -> tuple[ToolSpec, ...]:
    return tuple(spec for module in _modules(names) for spec in module.TOOLS)
