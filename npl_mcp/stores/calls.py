"""The log of calls: caller, tool, question, outcome, cost, and the reason of a failure.

The log is off by default. Its size is limited by number and by age; the oldest rows are removed first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from npl_mcp.stores.base.database import Row, Transaction, json_of
from npl_mcp.stores.base.paging import later
from npl_mcp.stores.base.values import conditions, fill, values_of

MAX_CALLS = 100_000
"""Maximum rows of the log: about 30 MB."""

KEPT_DAYS = 30

MAX_TEXTS = 50
"""Maximum logged sections of an answer, and maximum logged words."""

CONTEXT = 2_000
"""Maximum characters of a logged context, if contexts are logged."""

_LISTS = "taken", "absent"
"""Columns with a list of texts, as JSON."""

_UNUSED = {"bytes": 0, "hits": 0, "misses": 0}
"""Columns of earlier versions that are not NULL."""

CallOutcome = Literal["found", "weak", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCall:
    """A call.

    :param id: id of the call; ids grow with time. The store sets it.
    :param created_at: time of the answer, UTC, ISO 8601.
    :param tool: name of the tool.
    :param domains: domains that a caller must see to read the logged call, separated by spaces.
    :param who: name of the caller, from its token or its client.
    :param owner: name of the token.
    :param micros: duration in microseconds.
    :param error: error code of a failed call.
    :param message: its error message.
    :param arguments: arguments of a question or a failed call as JSON, shortened, if contexts are logged.
    :param file: document or set of the loaded sections.
    :param used: tokens of the sections.
    :param taken: selectors of the sections.
    :param context: task or query of the call, if contexts are logged.
    :param outcome: outcome of a question.
    :param absent: words of the question that no section contains, if contexts are logged.
    """

    id: int = 0
    created_at: str
    tool: str
    domains: str
    who: str
    owner: str | None
    micros: int
    error: str | None = None
    message: str | None = None
    arguments: str | None = None
    file: str | None = None
    used: int | None = None
    taken: tuple[str, ...] | None = None
    context: str | None = None
    outcome: CallOutcome | None = None
    absent: tuple[str, ...] | None = None


def add(tx: Transaction, calls: Sequence[LoggedCall]) -> None:
    """Store calls in order, and remove surplus and expired rows."""
    tx.insert_many("tool_call", list(map(_row, calls)))
    last = tx.value("SELECT max(id) FROM tool_call") or 0
    aged = tx.value("SELECT max(id) FROM tool_call WHERE created_at < :oldest", oldest=_oldest(tx))
    removed = max(last - MAX_CALLS, aged or 0)
    tx.run("DELETE FROM tool_call_offer WHERE call_id <= :removed", removed=removed)  # of earlier versions
    tx.run("DELETE FROM tool_call WHERE id <= :removed", removed=removed)


def latest(
    tx: Transaction,
    most: int,
    domains: frozenset[str] | None = None,
    owner: str | None = None,
    until: str | None = None,
) -> list[LoggedCall]:
    """Return the latest calls, the newest first.

    :param domains: visible domains of tools; ``None`` for all calls, including tools without a domain.
    :param owner: name of the token.
    :param until: a time; only earlier calls.
    """
    seen = None
    if domains is not None:
        logged = [row["domains"] for row in tx.all("SELECT DISTINCT domains FROM tool_call")]
        seen = [names for names in logged if names and domains >= {*names.split()}]
    where, values = conditions(
        since=("created_at >= :since", _oldest(tx)),
        until=("created_at < :until", until),
        owner=("owner = :owner", owner),
        domains=("domains IN :domains", seen),
    )
    sql = f"SELECT * FROM tool_call WHERE {where} ORDER BY id DESC LIMIT :most"
    return [_entry(row) for row in tx.all(sql, **values, most=most)]


def _row(call: LoggedCall) -> dict[str, Any]:
    row = {**values_of(call), **_UNUSED}
    del row["id"]
    for name in _LISTS:
        row[name] = None if row[name] is None else json.dumps(row[name][:MAX_TEXTS])
    return row


def _oldest(tx: Transaction) -> str:
    return later(tx.now, timedelta(days=-KEPT_DAYS))


def _entry(row: Row) -> LoggedCall:
    where = f"a row of tool_call ({row['id']}), column"
    lists = {name: row[name] and tuple(json_of(row[name], f"{where} {name}")) for name in _LISTS}
    return fill(LoggedCall, row, **lists)
