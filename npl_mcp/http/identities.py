"""The known tokens, read from the database and cached for a second."""

from __future__ import annotations

from collections.abc import Mapping

from npl_mcp.http.kept import Kept
from npl_mcp.stores.access import AccessStore, Identity, digest_of

SECONDS = 1.0
"""Maximum seconds for which a revoked token is still accepted, and a new one still refused. The database is
queried no more often, for any number of calls and tokens.
"""


class Identities:
    """All tokens of a data folder: one for each agent or person.

    Once a server has seen a token, callers need one until it ends: an unavailable database grants no access.

    :param store: the store of the tokens.
    """

    def __init__(self, store: AccessStore) -> None:
        self._store = store
        self._closed = False
        self._kept = Kept(self._read, SECONDS)

    async def known(self) -> Mapping[str, Identity] | None:
        """Return the identities by the digests of their tokens; ``None`` if callers need no token.

        :raises DatabaseError: the database cannot be read.
        """
        return await self._kept.get()

    def _read(self) -> Mapping[str, Identity] | None:
        found = self._store.known()
        self._closed = self._closed or found is not None
        return {} if found is None and self._closed else found


def owner(known: Mapping[str, Identity], token: bytes) -> Identity | None:
    """Return the identity of a token; ``None`` if it is unknown or has expired.

    The lookup is by digest, so its time reveals nothing about existing tokens.
    """
    found = known.get(digest_of(token))
    return found if found is not None and found.is_valid() else None
