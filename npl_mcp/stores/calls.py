"""The log of calls: caller, tool, cost, and whether later calls requested the selectors that an answer
offered.

The log is off by default. Its size is limited by number and by age; the oldest rows are removed first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import Any, Literal

from npl_mcp.stores.base.database import Database, Row, Transaction, json_of
from npl_mcp.stores.base.paging import Page, Slice, later
from npl_mcp.stores.base.values import conditions, filled, values_of

MAX_CALLS = 100_000
"""Maximum rows of the log: about 30 MB with their offers."""

KEPT_DAYS = 30

TAKEN = 50
"""Maximum logged sections of an answer."""

CONTEXT = 2_000
"""Maximum characters of a logged context, if contexts are logged."""

_AT_ONCE = 500
_LATEST = 20_000
_TAKEN = "SELECT file, taken FROM tool_call WHERE taken IS NOT NULL ORDER BY id DESC LIMIT :limit"

Offered = Literal["suggestion", "more"]
"""Source of an offered selector: ``suggestions`` or ``request_more``."""

Outcome = Literal["found", "weak", "nothing"]

Chosen = Literal["nothing", "weak", "failed", "again", "questions"]
_CHOSEN: Mapping[str, str] = {
    "nothing": "outcome = 'nothing'",
    "weak": "outcome = 'weak'",
    "failed": "error IS NOT NULL",
    "again": "again = 1",
    "questions": "outcome IS NOT NULL",
}
"""Filters of calls for people, as SQL conditions."""

Sort = Literal["id", "used", "micros", "found", "context", "who", "tool"]

SHARES = (0.5, 0.95)
"""Percentiles, as shares."""

Span = Literal["hour", "day"]
_LENGTH: Mapping[str, int] = {"hour": 13, "day": 10}
"""Number of characters of a timestamp that identify its hour or day."""


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call before it is stored.

    :param created_at: time of the answer, UTC, ISO 8601.
    :param tool: name of the tool.
    :param domains: domains that a caller must see to read the logged call, separated by spaces.
    :param who: name of the caller, from its token or its client.
    :param owner: name of the token.
    :param error: error code of a failed call.
    :param micros: duration in microseconds.
    :param bytes: bytes of the answer.
    :param file: document or set of the loaded sections.
    :param asked: token budget of the call.
    :param used: tokens of the sections.
    :param whole: tokens of the whole documents of the sections.
    :param taken: selectors of the sections.
    :param context: task or query of the call, if contexts are logged.
    :param outcome: outcome of a question.
    :param found: number of sections or hits in the answer.
    :param session: session of the caller.
    :param again: 1 if the session asked almost the same shortly before.
    :param wanted: selectors in the call.
    :param offered: selectors that the answer offered.
    :param hits: number of indices found in memory since the previous call.
    :param misses: number of indices built since the previous call.
    """

    created_at: str
    tool: str
    domains: str
    who: str
    owner: str | None
    error: str | None
    micros: int
    bytes: int
    file: str | None = None
    asked: int | None = None
    used: int | None = None
    whole: int | None = None
    taken: tuple[str, ...] | None = None
    context: str | None = None
    outcome: Outcome | None = None
    found: int | None = None
    session: str | None = None
    again: int | None = None
    wanted: tuple[str, ...] = ()
    offered: tuple[tuple[Offered, str], ...] = ()
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True)
class Offer:
    """A selector that an answer offered.

    :param kind: ``suggestion`` or ``more``.
    :param selector: offered selector.
    :param followed_by: id of the call that used the selector.
    """

    kind: str
    selector: str
    followed_by: int | None


@dataclass(frozen=True, slots=True)
class CallEntry:
    """A call in the log; for the other parameters see :class:`LoggedCall`.

    :param id: id of the call; ids grow with time.
    :param ms: duration in milliseconds.
    :param offers: selectors that the answer offered.
    """

    id: int
    created_at: str
    tool: str
    who: str
    error: str | None
    ms: float
    bytes: int
    file: str | None
    asked: int | None
    used: int | None
    whole: int | None
    taken: tuple[str, ...] | None
    context: str | None
    outcome: str | None
    found: int | None
    session: str | None
    again: int | None
    offers: tuple[Offer, ...] | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Totals over calls.

    :param calls: number of calls.
    :param errors: number of failed calls.
    :param asked: sum of token budgets.
    :param used: tokens of loaded sections.
    :param used_of_asked: tokens of sections loaded by calls with a budget.
    :param used_of_whole: tokens of loaded sections of counted documents.
    :param whole: tokens of these whole documents.
    :param suggested: number of suggested selectors.
    :param followed: number of suggested selectors that later calls used.
    :param more: number of selectors of sections that did not fit.
    :param more_followed: number of these selectors that later calls used.
    :param hits: number of indices found in memory.
    :param misses: number of built indices.
    """

    calls: int = 0
    errors: int = 0
    asked: int = 0
    used: int = 0
    used_of_asked: int = 0
    used_of_whole: int = 0
    whole: int = 0
    suggested: int = 0
    followed: int = 0
    more: int = 0
    more_followed: int = 0
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True)
class CallFilter:
    """The filter of a list of calls.

    :param domains: visible domains of tools; ``None`` for all calls, including tools without a domain.
    :param tool: name of the tool.
    :param owner: name of the token.
    :param who: name of the caller.
    :param chosen: a key of the conditions for people.
    """

    domains: frozenset[str] | None = None
    tool: str | None = None
    owner: str | None = None
    who: str | None = None
    chosen: Chosen | None = None

    def where(self, tx: Transaction) -> tuple[str, dict[str, Any]]:
        """Return an SQL condition and its parameters."""
        domains = None
        if self.domains is not None:
            there = [row["domains"] for row in tx.all("SELECT DISTINCT domains FROM tool_call")]
            # An empty list is not valid in a statement.
            domains = [one for one in there if one and self.domains >= {*one.split()}] or ["-"]
        where, values = conditions(
            since=("created_at >= :since", _oldest(tx)),
            tool=("tool = :tool", self.tool),
            owner=("owner = :owner", self.owner),
            who=("who = :who", self.who),
            domains=("domains IN :domains", domains),
        )
        return (where if self.chosen is None else f"{where} AND {_CHOSEN[self.chosen]}"), values


class CallStore:
    """The log of calls of a data folder.

    :param database: the database that stores it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, calls: Sequence[LoggedCall]) -> None:
        """Store calls in order, and remove surplus and expired rows, in one transaction."""
        with self._database.write() as tx:
            for call in calls:
                _add(tx, call)
            last = tx.value("SELECT max(id) FROM tool_call") or 0
            aged = tx.value("SELECT max(id) FROM tool_call WHERE created_at < :oldest", oldest=_oldest(tx))
            gone = max(last - MAX_CALLS, aged or 0)
            tx.run("DELETE FROM tool_call_offer WHERE call_id <= :gone", gone=gone)
            tx.run("DELETE FROM tool_call WHERE id <= :gone", gone=gone)

    def list(
        self, seen: CallFilter, part: Slice, sort: Sort = "id", *, rising: bool = False
    ) -> Page[CallEntry]:
        """Return calls.

        :param sort: column of the order; calls without a value come last.
        :param rising: whether the order is ascending.
        """
        if not self._database.is_made():
            return part.page((), 0)
        with self._database.read() as tx:
            where, values = seen.where(tx)
            total = tx.value(f"SELECT count(*) FROM tool_call WHERE {where}", **values)
            sql = (
                f"SELECT * FROM tool_call WHERE {where} ORDER BY {sort} IS NULL, "
                f"{sort} {'ASC' if rising else 'DESC'}, id DESC LIMIT :limit OFFSET :offset"
            )
            rows = tx.all(sql, **values, limit=part.limit, offset=part.offset)
            offers = _offers(tx, [row["id"] for row in rows])
        return part.page((_entry(row, offers.get(row["id"])) for row in rows), total)

    def files_taken(self) -> frozenset[str]:
        """Return the names of the documents behind the sections of answers, as in their latest calls."""
        if not self._database.is_made():
            return frozenset()
        with self._database.read() as tx:
            rows = tx.all(_TAKEN, limit=_LATEST)
        named = (one.partition(": ")[0] for row in rows for one in json_of(row["taken"], "tool_call, taken"))
        return frozenset((*named, *(row["file"] for row in rows if row["file"])))

    def figures(self, seen: CallFilter, span: Span) -> dict[str, Figures]:
        """Return totals by hour or day, oldest first."""
        if not self._database.is_made():
            return {}
        at = f"substr(created_at, 1, {_LENGTH[span]})"
        with self._database.read() as tx:
            where, values = seen.where(tx)
            rows = {row["at"]: row for row in tx.all(_SUMS.format(at=at, where=where), **values)}
            for row in tx.all(_FOLLOWED.format(at=at, where=where), **values):
                rows[row["at"]].update(row)
        return {
            at: Figures(**{name: int(value or 0) for name, value in row.items() if name != "at"})
            for at, row in sorted(rows.items())
        }

    def percentiles(self, seen: CallFilter) -> dict[str, tuple[int, ...]]:
        """Return the percentiles of ``micros`` and ``used`` at :data:`SHARES`."""
        if not self._database.is_made():
            return {}
        found: dict[str, tuple[int, ...]] = {}
        with self._database.read() as tx:
            where, values = seen.where(tx)
            for name in ("micros", "used"):
                rows = f"FROM tool_call WHERE {where} AND {name} IS NOT NULL"
                if total := tx.value(f"SELECT count(*) {rows}", **values):
                    one = f"SELECT {name} {rows} ORDER BY {name} LIMIT 1 OFFSET :at"
                    places = [min(total - 1, int(share * total)) for share in SHARES]
                    found[name] = tuple(tx.value(one, **values, at=at) for at in places)
        return found

    def callers(self, seen: CallFilter) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the callers and of the tools."""
        if not self._database.is_made():
            return (), ()
        with self._database.read() as tx:
            where, values = seen.where(tx)
            found = tx.all(f"SELECT DISTINCT who, tool FROM tool_call WHERE {where}", **values)
        return tuple(sorted({row["who"] for row in found})), tuple(sorted({row["tool"] for row in found}))


_SUMS = """
SELECT {at} AS at, count(*) AS calls, count(error) AS errors,
    sum(asked) AS asked, sum(used) AS used, sum(whole) AS whole, sum(hits) AS hits, sum(misses) AS misses,
    sum(CASE WHEN asked IS NOT NULL THEN used END) AS used_of_asked,
    sum(CASE WHEN whole IS NOT NULL THEN used END) AS used_of_whole
FROM tool_call WHERE {where} GROUP BY {at}"""

_FOLLOWED = """
SELECT {at} AS at,
    sum(CASE WHEN kind = 'suggestion' THEN 1 END) AS suggested,
    sum(CASE WHEN kind = 'suggestion' AND followed_by IS NOT NULL THEN 1 END) AS followed,
    sum(CASE WHEN kind = 'more' THEN 1 END) AS more,
    sum(CASE WHEN kind = 'more' AND followed_by IS NOT NULL THEN 1 END) AS more_followed
FROM tool_call JOIN tool_call_offer ON call_id = id WHERE {where} GROUP BY {at}"""

_FOLLOW = """
UPDATE tool_call_offer SET followed_by = :call_id WHERE digest IN :digests AND followed_by IS NULL"""


def _add(tx: Transaction, call: LoggedCall) -> None:
    values = values_of(call)
    wanted, offered, taken = (values.pop(name) for name in ("wanted", "offered", "taken"))
    taken = None if taken is None else json.dumps(taken[:TAKEN])
    call_id = tx.insert("tool_call", "id", **values, taken=taken)["id"]
    if wanted:
        tx.run(_FOLLOW, call_id=call_id, digests=[_digest(call, selector) for selector in wanted])
    offers = [
        {"number": number, "kind": kind, "digest": _digest(call, selector), "selector": selector}
        for number, (kind, selector) in enumerate(offered)
    ]
    tx.insert_many("tool_call_offer", [{"call_id": call_id, **one} for one in offers])


def _digest(call: LoggedCall, selector: str) -> str:
    """Return the common digest of an offer and of the call that follows it."""
    parts = (call.who, call.file or "", selector)
    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _oldest(tx: Transaction) -> str:
    return later(tx.now, timedelta(days=-KEPT_DAYS))


def _offers(tx: Transaction, ids: Sequence[int]) -> dict[int, list[Offer]]:
    found: dict[int, list[Offer]] = {}
    for at in range(0, len(ids), _AT_ONCE):
        sql = "SELECT * FROM tool_call_offer WHERE call_id IN :ids ORDER BY call_id, number"
        for row in tx.all(sql, ids=ids[at : at + _AT_ONCE]):
            found.setdefault(row["call_id"], []).append(filled(Offer, row))
    return found


def _entry(row: Row, offers: Sequence[Offer] | None) -> CallEntry:
    where = f"a row of tool_call ({row['id']}), column taken"
    taken = None if row["taken"] is None else tuple(json_of(row["taken"], where))
    ms = round(row["micros"] / 1000, 2)
    return filled(CallEntry, row, ms=ms, taken=taken, offers=None if offers is None else tuple(offers))
