"""Permissions of a token: tools, personas, and fields of answers.

They are declared here by names of parameters and fields, so that no tool checks them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from npl_index.errors import NotFoundError
from npl_mcp.app.call_reports import Caller
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import Identity, Permissions
from npl_mcp.stores.base.errors import ArtifactNotFoundError, NotAllowedError, SessionNotFoundError
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import domain_of

ACTORS = ("persona", "created_by", "agent_id", "reviewer_persona")
"""Parameters with the persona that acts."""

FILTERS = (("chat_list_rooms", "persona"), ("review_list", "reviewer_persona"))
"""Parameters with such names that only filter a list."""

NEEDS: Mapping[str, tuple[str, ...]] = {"review": ("artifact",)}
"""Domains whose answers contain data of other domains: a caller needs those domains as well."""

REFERENCES: Mapping[str, Mapping[str, str]] = {
    "artifact": {"session_id": "session"},
    "chat": {"session_id": "session", "artifact_id": "artifact"},
}
"""Parameters of a domain's tools that name or request data of another domain."""

FIELDS: Mapping[str, Mapping[str, str]] = {
    "session": {
        "chat_rooms": "chat",
        "room_count": "chat",
        "artifacts": "artifact",
        "artifact_count": "artifact",
        "artifact_id": "artifact",
        "reviews": "review",
        "reviewer_persona": "review",
        "worklog": "worklog",
    },
    "chat": {
        "session_id": "session",
        "artifact_id": "artifact",
        "revision": "artifact",
    },
    "search": {"room_id": "chat", "artifact_id": "artifact", "revision": "artifact"},
}
"""Fields of a domain's answers with data of another domain."""

PATHS: Mapping[str, tuple[str, ...]] = {"cr": ("path",), "npl": ("location", "source_path")}
"""Fields of a domain's answers that may have an absolute path; others than the server's user get its end."""

_ABSENT = {"session": SessionNotFoundError, "artifact": ArtifactNotFoundError}


@cache
def actors(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the parameters of a tool's function with the persona that acts."""
    names = inspect.signature(function).parameters
    return tuple(name for name in ACTORS if name in names and (function.__name__, name) not in FILTERS)


def domains_of_call(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the domains of a tool and of what the arguments of a call name."""
    named = REFERENCES.get(domain_of(spec) or "", {}).items()
    others = (domain for name, domain in named if arguments.get(name) is not None)
    return (*domains_needed(domain_of(spec)), *others)


def domains_needed(domain: str | None) -> tuple[str, ...]:
    """Return a domain with those that it needs."""
    return () if domain is None else (domain, *NEEDS.get(domain, ()))


def may_see_domain(domain: str | None, permissions: Permissions) -> bool:
    """Return whether a caller may see a domain and the domains it needs."""
    return all(map(permissions.has_domain, domains_needed(domain)))


def may_see(spec: ToolSpec, permissions: Permissions) -> bool:
    """Return whether a caller may see a tool."""
    return may_see_domain(domain_of(spec), permissions)


def is_listed(spec: ToolSpec, identity: Identity | None) -> bool:
    """Return whether a tool is listed for a caller: the caller may see it and make some call of it."""
    if identity is None:
        return True
    return may_see(spec, identity.permissions) and (_may_use(spec, identity) or spec.reads is not None)


def _may_use(spec: ToolSpec, identity: Identity) -> bool:
    return spec.read_only or not identity.read_only or domain_of(spec) is None


def with_actor(spec: ToolSpec, arguments: dict[str, Any], identity: Identity) -> dict[str, Any]:
    """Return the arguments of a call with the owner of its token as the persona that acts.

    :raises NotAllowedError: the call writes, and the token only allows reading; or an argument names another
        persona.
    :raises NotFoundError: an argument names data of a domain that the caller may not see.
    """
    if not _may_use(spec, identity) and not spec.may_read(arguments):
        which = spec.name if spec.reads is None else f"such a call of {spec.name}"
        raise NotAllowedError(f"the token of {identity.name!r} only allows reading, but {which} writes")
    for name in actors(spec.function):
        given = arguments.get(name)
        if given is None:
            arguments = {**arguments, name: identity.name}
        elif isinstance(given, str) and given.strip() != identity.name:
            raise NotAllowedError(
                f"{name} is {given[:64]!r}, but the token belongs to {identity.name!r}",
                hint=f"leave {name} out",
            )
    for name, domain in REFERENCES.get(domain_of(spec) or "", {}).items():
        if arguments.get(name) is not None and not may_see_domain(domain, identity.permissions):
            absent = _ABSENT.get(domain, NotFoundError)
            raise absent(f"there is no {domain} {str(arguments[name])[:64]!r}")
    return arguments


def without_hidden(body: Any, spec: ToolSpec, caller: Caller, settings: Settings) -> Any:
    """Return an answer without fields of hidden domains, the address of a single replica, and absolute paths
    that only the server's user may know.
    """
    domain = domain_of(spec) or ""
    fields = FIELDS.get(domain, {})
    hidden = {name for name, other in fields.items() if not may_see_domain(other, caller.permissions)}
    if settings.database_url is not None and settings.own_url:
        hidden.add("web_url")
    paths = () if caller.knows_paths(settings) else PATHS.get(domain, ())
    return _without(body, hidden, paths) if hidden or paths else body


def _without(value: Any, hidden: set[str], paths: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        shown = {name: _without(part, hidden, paths) for name, part in value.items() if name not in hidden}
        ends = {name: os.path.basename(shown[name]) for name in paths if os.path.isabs(shown.get(name) or "")}  # noqa: PTH117, PTH119 - texts
        return {**shown, **ends}
    return [_without(part, hidden, paths) for part in value] if isinstance(value, list) else value
