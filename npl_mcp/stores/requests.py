"""Answers of calls with a ``request_id``: a repeated call gets the answer of the first one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Transaction, content_digest
from npl_mcp.stores.base.errors import ConflictError
from npl_mcp.stores.base.paging import later
from npl_mcp.stores.base.values import values_of

KEPT = timedelta(days=1)
"""Lifetime of a kept answer, by the database's clock."""

SURELY_KEPT = timedelta(hours=1)
MAX_KEPT = 10_000
"""Maximum kept answers older than :data:`SURELY_KEPT`; each belongs to a write of about its length."""

PARAMETER = "request_id"

BEGUN = ""
"""The answer of a call that has begun and not ended."""

_OWN = "caller = :caller AND id = :id"


@dataclass(frozen=True, slots=True)
class Request:
    """A call that its caller may repeat.

    :param caller: name of its token; empty without tokens.
    :param id: identifier from the caller.
    :param digest: digest of the tool and its arguments.
    """

    caller: str
    id: str
    digest: str

    @classmethod
    def parse(cls, caller: str, given: object, tool: str, arguments: Mapping[str, object]) -> Request:
        """Check a ``request_id``.

        :raises InvalidRequestError: the id is not valid.
        """
        if not isinstance(given, str):
            raise checks.invalid(PARAMETER, "is not a string", "send a UUID")
        digest = content_digest(json.dumps([tool, arguments], sort_keys=True).encode())
        return cls(caller, checks.line(given, PARAMETER), digest)

    def answer(self, tx: Transaction) -> str | None:
        """Return the kept answer of an earlier call with the same id.

        :raises InvalidRequestError: the id belongs to another call.
        """
        sql = f"SELECT digest, answer FROM request WHERE {_OWN} AND created_at > :oldest"
        row = tx.first(sql, caller=self.caller, id=self.id, oldest=later(tx.now, -KEPT))
        if row is not None and row["digest"] != self.digest:
            problem = f"{self.id!r} was sent with another tool or other arguments"
            raise checks.invalid(PARAMETER, problem, "send a new one with each new call")
        return None if row is None else str(row["answer"])

    def begin(self, tx: Transaction) -> str | None:
        """Reserve the id for a call; return the answer of an earlier call with the same id instead."""
        known = self.answer(tx)
        if known is None:
            self.keep(tx, BEGUN)
        return known

    def keep(self, tx: Transaction, answer: str) -> None:
        """Keep an answer, and delete expired ones and the oldest of too many."""
        sql = "SELECT created_at FROM request ORDER BY created_at DESC LIMIT 1 OFFSET :most"
        last = tx.value(sql, most=MAX_KEPT)
        oldest = max(later(tx.now, -KEPT), min(last or "", later(tx.now, -SURELY_KEPT)))
        tx.run("DELETE FROM request WHERE created_at <= :oldest", oldest=oldest)
        tx.upsert("request", "caller, id", **values_of(self), answer=answer, created_at=tx.now)

    def forget(self, tx: Transaction) -> None:
        """Free the id of a call that failed and changed nothing."""
        sql = f"DELETE FROM request WHERE {_OWN} AND answer = :begun"
        tx.run(sql, caller=self.caller, id=self.id, begun=BEGUN)

    def unknown(self) -> ConflictError:
        """Return the error for a call that has begun, and whose outcome is not known."""
        problem = (
            f"the first call with {PARAMETER} {self.id!r} has not ended, or the server was ended during it"
        )
        hint = f"see whether its change is there; if not, send the call with a new {PARAMETER}"
        return ConflictError(problem, hint=hint)
