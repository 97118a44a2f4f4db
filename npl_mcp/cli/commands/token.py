"""``npl-mcp token``: the tokens of a shared server's callers."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from npl_index.errors import InvalidRequestError
from npl_mcp.cli.commands.stores import stores_of, with_settings
from npl_mcp.cli.terminal.arguments import JSON, Commands, argument, option, repeated, switch
from npl_mcp.cli.terminal.display import CommandResult, table
from npl_mcp.config.domains import NEEDS, domains_named
from npl_mcp.config.kinds import path, words
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import Identity, Permissions, add_token, revoke_token, tokens

_LIFETIME = re.compile(r"([1-9][0-9]{0,4})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

COMMANDS = Commands(with_settings)


def _lifetime(text: str) -> timedelta:
    """Read a lifetime.

    :raises ArgumentTypeError: the text is not a lifetime.
    """
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a time; write 90m, 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@COMMANDS.add(
    "token add",
    argument("names", nargs="+", metavar="NAME", help="owner of a token; its calls act under this name only"),
    # Each dest differs from those of the settings, which it would override.
    option("--domains", "NAMES", "see only these domains of tools", dest="sees", type=words),
    switch("--read-only", help="change nothing"),
    repeated("--root", "DIR", "see only files below this folder", dest="sees_roots", type=path),
    option("--expires", "TIME", "lifetime, e.g. 12h, 30d or 8w; by default unlimited", type=_lifetime),
)
def _add_token(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Create a token for each name and print it, once."""
    permissions, more = _permissions(given), {"read_only": given.read_only, "lifetime": given.expires}
    with stores_of(settings) as stores:
        made = {name: stores.unchecked.writing(add_token, name, permissions, **more) for name in given.names}
    lines = made.values() if len(made) == 1 else (f"{name} {token}" for name, token in made.items())
    return CommandResult("\n".join(lines))


@COMMANDS.add("token list", JSON)
def _list_tokens(_: argparse.Namespace, settings: Settings) -> CommandResult:
    """List the tokens with their owners and permissions."""
    with stores_of(settings) as stores:
        rows = [_row(identity) for identity in stores.unchecked.reading(tokens)]
    head = ("name", "state", "expires", "access", "domains", "documents")
    text = table([head, *map(_cells, rows)]) if rows else "there are no tokens"
    return CommandResult(text, rows)


@COMMANDS.add("token revoke", argument("name", help="owner of the token"))
def _revoke_token(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Revoke a token; servers refuse it within seconds."""
    with stores_of(settings) as stores:
        stores.unchecked.writing(revoke_token, given.name)
    return CommandResult(f"revoked: {given.name}")


def _permissions(given: argparse.Namespace) -> Permissions:
    """Return the permissions of a new token; a root excludes all other documents."""
    domains = None if given.sees is None else frozenset(domains_named(given.sees))
    for domain in sorted(domains or ()):
        lacking = [name for name in NEEDS.get(domain, ()) if name not in (domains or ())]
        if lacking:
            problem = f"--domains: answers of the domain {domain} contain data of {', '.join(lacking)}"
            raise InvalidRequestError(problem, hint=f"add {','.join(lacking)}")
    if given.sees_roots is None:
        return Permissions(domains)
    # Another machine may have the roots.
    return Permissions(domains, tuple(map(os.path.abspath, given.sees_roots)))


def _row(identity: Identity) -> dict[str, Any]:
    """Return the fields of a token as JSON; ``null`` means unlimited."""
    permissions = identity.permissions
    return {
        "name": identity.name,
        "state": identity.state,
        "expires": identity.expires_at,
        "read_only": identity.read_only,
        "domains": None if permissions.domains is None else sorted(permissions.domains),
        "roots": permissions.roots,
    }


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a token in the table."""
    access = "read" if row["read_only"] else "read, write"
    domains = "all" if row["domains"] is None else ",".join(row["domains"])
    documents = "all" if row["roots"] is None else ", ".join(row["roots"]) or "none"
    return row["name"], row["state"], row["expires"] or "never", access, domains, documents
