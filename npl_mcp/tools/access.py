"""Permissions of a token: tools, personas, and fields of answers.

Annotations of parameters and of the fields of answers declare them, so that no tool checks them.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from npl_index.errors import NotFoundError
from npl_mcp.app.call_reports import Caller
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import Identity
from npl_mcp.stores.base.errors import ArtifactNotFoundError, NotAllowedError, SessionNotFoundError
from npl_mcp.tools.contract.spec import ToolSpec

_ABSENT = {"session": SessionNotFoundError, "artifact": ArtifactNotFoundError}


def is_listed(spec: ToolSpec, identity: Identity | None) -> bool:
    """Return whether a tool is listed for a caller: the caller may see it and make some call of it."""
    if identity is None:
        return True
    makes_some = _may_use(spec, identity) or spec.reads is not None
    return makes_some and identity.permissions.has_domain(spec.domain)


def _may_use(spec: ToolSpec, identity: Identity) -> bool:
    return spec.read_only or not identity.read_only or spec.domain is None


def with_actor(spec: ToolSpec, arguments: dict[str, Any], identity: Identity) -> dict[str, Any]:
    """Return the arguments of a call with the owner of its token as the persona that acts.

    :raises NotAllowedError: the call writes, and the token only allows reading; or an argument names another
        persona.
    :raises NotFoundError: an argument names data of a domain that the caller may not see.
    """
    if not _may_use(spec, identity) and not spec.may_read(arguments):
        which = spec.name if spec.reads is None else f"such a call of {spec.name}"
        raise NotAllowedError(f"the token of {identity.name!r} only allows reading, but {which} writes")
    for name in spec.actors:
        given = arguments.get(name)
        if given is None:
            arguments = {**arguments, name: identity.name}
        elif isinstance(given, str) and given.strip() != identity.name:
            problem = f"{name} is {given[:64]!r}, but the token belongs to {identity.name!r}"
            raise NotAllowedError(problem, hint=f"leave {name} out")
    for name, domain in spec.references.items():
        if arguments.get(name) is not None and not identity.permissions.has_domain(domain):
            absent = _ABSENT.get(domain, NotFoundError)
            raise absent(f"there is no {domain} {str(arguments[name])[:64]!r}")
    return arguments


def without_hidden(body: Any, spec: ToolSpec, caller: Caller, settings: Settings) -> Any:
    """Return an answer without fields of hidden domains, the address of a single replica, and absolute paths
    that only the server's user may know.
    """
    hidden, who = set[str](), caller.identity
    if who is not None and who.permissions.domains is not None:
        hidden = {name for name, other in spec.fields.items() if not who.permissions.has_domain(other)}
    if settings.database_url is not None and settings.own_url:
        hidden.add("web_url")
    paths = frozenset[str]() if not spec.paths or caller.knows_paths(settings) else spec.paths
    return _without(body, hidden, paths) if hidden or paths else body


def _without(value: Any, hidden: set[str], paths: Collection[str]) -> Any:
    if isinstance(value, dict):
        shown = {name: _without(part, hidden, paths) for name, part in value.items() if name not in hidden}
        texts = {name: text for name in paths if isinstance(text := shown.get(name), str)}
        ends = {name: os.path.basename(text) for name, text in texts.items() if os.path.isabs(text)}  # noqa: PTH117, PTH119 - texts
        return {**shown, **ends}
    return [_without(part, hidden, paths) for part in value] if isinstance(value, list) else value
