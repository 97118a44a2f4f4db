"""The view of a worklog for people: by agent, action and tag."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction, json_of
from npl_mcp.stores.base.paging import MAX_PAGE, Slice
from npl_mcp.stores.base.values import conditions, filled
from npl_mcp.stores.worklog import rows
from npl_mcp.stores.worklog.rows import Entry, WorklogSession

MAX_WORDS = 100
"""Maximum actions, and maximum tags, in the filter."""


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """The filter of a worklog's entries.

    :param who: agent of the entries.
    :param action: action of the entries.
    :param tag: tag of the entries.
    """

    who: str | None = None
    action: str | None = None
    tag: str | None = None

    def condition(self, number: int) -> tuple[str, dict[str, Any]]:
        """Return the SQL condition for the filtered entries of a worklog, and its parameters.

        :param number: the number of the worklog's row.
        """
        return conditions(
            number=("session_number = :number", number),
            who=("agent_id = :who", self.who),
            action=("action = :action", self.action),
            # A tag is an element of a JSON list, so it is quoted; this replacement works on every engine.
            tag=("replace(tags, :tag, '') != tags", self.tag and json.dumps(self.tag, ensure_ascii=False)),
        )


@dataclass(frozen=True, slots=True)
class WorklogView:
    """A part of a worklog.

    :param session: the worklog session.
    :param items: entries, in order.
    :param total: number of all entries in the filter.
    :param earlier: number of entries before these.
    :param later: number of entries after these.
    :param actions: number of entries by action.
    :param tags: number of entries by tag.
    """

    session: WorklogSession
    items: Sequence[Entry]
    total: int
    earlier: int
    later: int
    actions: Mapping[str, int]
    tags: Mapping[str, int]


def view(
    tx: Transaction, project: str, session_id: str, wanted: EntryFilter, before: int | None, part: Slice
) -> WorklogView:
    """Return a part of a worklog for people: the latest entries before a position.

    :param before: the ``seq`` after the last returned entry; ``None`` for the end.
    """
    row = rows.chosen(tx, project, session_id)
    (about,) = rows.described(tx, project, [row])
    number = row["number"]
    where, values = wanted.condition(number)
    end = checks.MAX_ID if before is None else before
    sql = f"SELECT {rows.ENTRY} FROM worklog_entry WHERE {where} AND seq < :before"
    page = tx.some(f"{sql} ORDER BY seq DESC LIMIT :most", before=end, most=part.limit, **values)[::-1]
    sql = (
        "SELECT count(*) AS total, count(CASE WHEN seq < :seq THEN 1 END) AS earlier"
        f" FROM worklog_entry WHERE {where}"
    )
    (counts,) = tx.all(sql, seq=page[0]["seq"] if page else end, **values)
    return filled(
        WorklogView,
        counts,
        session=about,
        items=tuple(map(rows.entry, page)),
        later=counts["total"] - counts["earlier"] - len(page),
        actions=_words(tx, number, "action"),
        tags=_tags(tx, number),
    )


def since(tx: Transaction, project: str, session_id: str, wanted: EntryFilter, seq: int) -> tuple[Entry, ...]:
    """Return the entries after a position, in order, without moving a cursor."""
    where, values = wanted.condition(rows.chosen(tx, project, session_id)["number"])
    sql = f"SELECT {rows.ENTRY} FROM worklog_entry WHERE {where} AND seq > :seq ORDER BY seq LIMIT :most"
    return tuple(map(rows.entry, tx.some(sql, seq=seq, most=MAX_PAGE, **values)))


def _words(tx: Transaction, number: int, column: str) -> dict[str, int]:
    sql = (
        f"SELECT {column} AS word, count(*) AS count FROM worklog_entry"
        f" WHERE session_number = :number AND {column} IS NOT NULL"
        f" GROUP BY {column} ORDER BY count(*) DESC, {column} LIMIT :most"
    )
    found: list[Row] = tx.all(sql, number=number, most=MAX_WORDS)
    return {row["word"]: row["count"] for row in found}


def _tags(tx: Transaction, number: int) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for written, count in _words(tx, number, "tags").items():
        counted.update(dict.fromkeys(json_of(written, f"tags of worklog {number}"), count))
    counted.pop("", None)
    return dict(counted.most_common(MAX_WORDS))
