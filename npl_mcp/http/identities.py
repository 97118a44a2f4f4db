"""Who has a token: read from the database, and remembered for a second."""

from __future__ import annotations

from collections.abc import Mapping

from npl_mcp.http.kept import Kept
from npl_mcp.stores.access import AccessStore, Identity, digest_of

SECONDS = 1.0
"""How long a token that was revoked may still be accepted, and one that was added still be refused. The
database is asked no more often, however many calls there are, whatever tokens they bring.
"""


class Identities:
    """The tokens of a data folder, all at once: there are as many as agents and people.

    Once a server has seen a token, callers need one until it ends: a database that is gone opens no doors.

    :param store: where they are kept.
    """

    def __init__(self, store: AccessStore) -> None:
        self._store = store
        self._closed = False
        self._kept = Kept(self._read, SECONDS)

    async def known(self) -> Mapping[str, Identity] | None:
        """Return who has a token, by its digest; ``None`` if callers need none of them.

        :raises DatabaseError: the database cannot be read.
        """
        return await self._kept.get()

    def _read(self) -> Mapping[str, Identity] | None:
        found = self._store.known()
        self._closed = self._closed or found is not None
        return {} if found is None and self._closed else found


def owner(known: Mapping[str, Identity], token: bytes) -> Identity | None:
    """Return whose a token is; ``None`` if it is nobody's, or has ended.

    It is found by its digest: how long that takes says nothing about the tokens there are.
    """
    found = known.get(digest_of(token))
    return found if found is not None and found.is_valid() else None
