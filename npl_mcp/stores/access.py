"""Access tokens of a shared server: their owners and their permissions.

A token is shown once, when it is created; only its SHA-256 is stored. A token has 256 random bits and cannot
be guessed, so a slow hash would add no protection and would delay each request.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256

from npl_mcp.config.domains import NEEDS
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction, damaged, json_of
from npl_mcp.stores.base.errors import AlreadyExistsError, RecordNotFoundError
from npl_mcp.stores.base.paging import later, moment_of

PREFIX = "npl_"
"""Prefix of every token, so that secret scanners recognise them."""

_BYTES = 32


@dataclass(frozen=True, slots=True)
class Permissions:
    """The visible data of a caller; ``None`` means everything.

    :param domains: domains of tools and of data.
    :param roots: absolute paths of folders with files.
    """

    domains: frozenset[str] | None = None
    roots: tuple[str, ...] | None = None

    def has_domain(self, domain: str | None) -> bool:
        """Return whether a domain and those that it needs are visible; ``None`` always is."""
        needed = () if domain is None else (domain, *NEEDS.get(domain, ()))
        return self.domains is None or self.domains.issuperset(needed)


ALL = Permissions()


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller that a token identifies.

    :param name: name of the caller in all its actions.
    :param permissions: visible data.
    :param read_only: whether the caller may only read.
    :param expires_at: end of the token, UTC, ISO 8601.
    :param revoked_at: time of its revocation, UTC, ISO 8601.
    :param ends: end of the token by the monotonic clock of this process, in seconds.
    """

    name: str
    permissions: Permissions = ALL
    read_only: bool = False
    expires_at: str | None = None
    revoked_at: str | None = None
    ends: float | None = field(default=None, compare=False)

    def is_valid(self) -> bool:
        """Return whether the token has not expired yet."""
        return self.ends is None or time.monotonic() < self.ends

    @property
    def state(self) -> str:
        """State of the token: valid, expired or revoked."""
        return "revoked" if self.revoked_at else "valid" if self.is_valid() else "expired"


def token_digest(token: str | bytes) -> str:
    """Return the stored digest of a token."""
    return sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def add_token(
    tx: Transaction,
    name: str,
    permissions: Permissions = ALL,
    *,
    read_only: bool = False,
    lifetime: timedelta | None = None,
) -> str:
    """Create a token and return it; it is never shown again.

    A name whose token was revoked or has expired gets a new token.

    :param lifetime: its validity; ``None`` for a token without an end.
    :raises InvalidRequestError: the name is not valid.
    :raises AlreadyExistsError: the name has a valid token, or differs from such a name only in case.
    """
    clean = checks.short_name(name, "name")
    token = f"{PREFIX}{secrets.token_urlsafe(_BYTES)}"
    # Mentions ignore the case of names.
    for row in tx.all(f"{_SELECT} WHERE lower(name) = lower(:name)", name=clean):
        if _identity(row, tx.now).state == "valid":
            problem = f"{row['name']!r} already has a token"
            raise AlreadyExistsError(problem, hint="revoke it, or choose another name")
    tx.run("DELETE FROM access_token WHERE lower(name) = lower(:name)", name=clean)
    values = {
        "digest": token_digest(token),
        "domains": _json_list(None if permissions.domains is None else sorted(permissions.domains)),
        "read_only": int(read_only),
        "roots": _json_list(permissions.roots),
        "expires_at": None if lifetime is None else later(tx.now, lifetime),
    }
    tx.insert("access_token", "name", name=clean, created_at=tx.now, **values)
    return token


def tokens(tx: Transaction) -> tuple[Identity, ...]:
    """Return the identities of all tokens, by name."""
    return tuple(_identity(row, tx.now) for row in tx.all(f"{_SELECT} ORDER BY name"))


def revoke_token(tx: Transaction, name: str) -> None:
    """Revoke a token. Idempotent.

    :raises RecordNotFoundError: no token has that name.
    """
    sql = "UPDATE access_token SET revoked_at = coalesce(revoked_at, :now) WHERE name = :name"
    if not tx.run(sql, now=tx.now, name=name):
        near = tx.near(name, "SELECT name FROM access_token")
        raise RecordNotFoundError(f"there is no token of {name[:64]!r}", near=near)


def identities(tx: Transaction) -> Mapping[str, Identity] | None:
    """Return the identity of each token by its digest, including expired tokens; ``None`` if no token was
    ever created.

    Revoked tokens count as existing: a server stays closed after its last token is revoked.
    """
    rows = tx.all(_SELECT)
    if not rows:
        return None
    return {row["digest"]: _identity(row, tx.now) for row in rows if row["revoked_at"] is None}


_SELECT = """
SELECT name, digest, domains, read_only, roots, libraries, expires_at, revoked_at
FROM access_token
"""


def _json_list(values: Sequence[str] | None) -> str | None:
    return None if values is None else json.dumps(list(values))


def _identity(row: Row, moment: str) -> Identity:
    def values(column: str) -> tuple[str, ...] | None:
        text = row[column]
        return None if text is None else tuple(json_of(text, f"a row of access_token, column {column}"))

    domains, roots = values("domains"), values("roots")
    if row["libraries"] is not None and roots is None:
        roots = ()  # an earlier version limited the token to libraries, so it sees no documents without them
    permissions = Permissions(None if domains is None else frozenset(domains), roots)
    expires_at, ends = row["expires_at"], None
    if expires_at is not None:
        try:
            ends = time.monotonic() + (moment_of(expires_at) - moment_of(moment)).total_seconds()
        except ValueError:
            raise damaged("a row of access_token, column expires_at, holds no time") from None
    return Identity(row["name"], permissions, bool(row["read_only"]), expires_at, row["revoked_at"], ends)
