"""The events of a session in chronological order, read backwards from any position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from npl_index.cached import cached_property
from npl_mcp.stores import session
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.activity import Count, Unit, unit_for
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.paging import MAX_PAGE, Slice
from npl_mcp.stores.base.values import conditions, filled
from npl_mcp.stores.changes import Topic
from npl_mcp.stores.chat import feed
from npl_mcp.stores.chat.feed import Event
from npl_mcp.stores.worklog import rows
from npl_mcp.stores.worklog.rows import Entry

T = TypeVar("T")

KINDS = ("events", "artifacts", "reviews", "worklog")
"""Kinds of entries; at equal times, entries of an earlier kind come first."""

NEWS = 100
"""Maximum new entries of a kind per answer."""

MAX_NAMES = 200
"""Maximum names of authors in an answer, most active first."""


@dataclass(frozen=True, slots=True)
class Revised:
    """A revision of an artifact.

    :param id: row id of the revision.
    :param at: time when it was stored.
    :param who: author.
    :param artifact_id: id of the artifact.
    :param name: name of the artifact.
    :param revision_num: number of the revision.
    :param filename: name of its file.
    :param size: bytes of its content.
    :param purpose: purpose of the revision.
    """

    id: int
    at: str
    who: str | None
    artifact_id: int
    name: str
    revision_num: int
    filename: str
    size: int
    purpose: str


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A step of a review.

    :param id: id of the comment, else of the review.
    :param at: time of the step.
    :param who: persona that acted.
    :param step: ``begun``, ``comment`` or ``completed``.
    :param review_id: id of the review.
    :param name: name of the artifact.
    :param location: place of a comment.
    :param text: text of the comment, or the overall comment.
    """

    id: int
    at: str
    who: str
    step: str
    review_id: int
    name: str
    location: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """The entries of one kind.

    :param items: latest entries before the position, oldest first.
    :param total: number of entries before the position.
    :param who: number of entries by persona.
    :param counts: number of entries by unit of time, independent of the position.
    :param first: time of the first entry; ``None`` without entries.
    :param last: time of the last entry.
    :param cursor: number of the last entry of all personas; later entries come after it.
    """

    items: Sequence[T]
    total: int
    who: Mapping[str, int]
    counts: Sequence[Count]
    first: str | None
    last: str | None
    cursor: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The entries of a session before a position; a kind that was not requested is ``None``.

    :param session_id: id of the session.
    :param unit_seconds: length of a unit of time in ``counts``.
    :param events: events of its rooms.
    :param artifacts: revisions of its artifacts.
    :param reviews: reviews of its artifacts.
    :param worklog: entries of the project's worklog with the same id.
    """

    session_id: str
    unit_seconds: int
    events: Part[Event] | None = None
    artifacts: Part[Revised] | None = None
    reviews: Part[Reviewed] | None = None
    worklog: Part[Entry] | None = None


@dataclass(frozen=True, slots=True)
class Newer(Generic[T]):
    """The entries of one kind after a cursor.

    :param items: entries in the order of storage.
    :param cursor: number of the last entry.
    """

    items: Sequence[T]
    cursor: int


@dataclass(frozen=True, slots=True)
class SessionNews:
    """The entries of a session after cursors; a kind that was not requested, or has no new entries, is
    ``None``.
    """

    events: Newer[Event] | None = None
    artifacts: Newer[Revised] | None = None
    reviews: Newer[Reviewed] | None = None
    worklog: Newer[Entry] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A position between entries.

    :param at: time of the position.
    :param kind: kind of the entry after the position; at equal times, earlier kinds come first.
    :param id: id of that entry.
    """

    at: str
    kind: int = 0
    id: int = 0

    @classmethod
    def parse(cls, text: str | None) -> Place:
        """Parse a position: a time, or a result of :func:`place_of`; by default the end."""
        if text is None:
            return cls("9")
        at, *rest = checks.line(text, "before").split("~")
        moment = feed.parse_since(at, "before")
        known = len(rest) == 2 and rest[0] in KINDS and rest[1].isascii() and rest[1].isdecimal()
        if not isinstance(moment, str) or (rest and not known):
            raise checks.invalid("before", f"is {text[:64]!r}", "give a time such as 2025-12-31T23:59:00Z")
        return cls(moment, KINDS.index(rest[0]), int(rest[1][:18])) if rest else cls(moment)

    def values(self, kind: str) -> dict[str, Any]:
        """Return the parameters of a statement that selects the entries of a kind before the position."""
        rank = KINDS.index(kind)
        last = self.id if rank == self.kind else checks.MAX_ID if rank < self.kind else 0
        return {"before": self.at, "before_id": last}


def timeline(
    tx: Transaction,
    session_id: str,
    project: str,
    kinds: Sequence[str],
    who: str | None,
    place: Place,
    part: Slice,
) -> Timeline:
    """Return the entries of a session, from one snapshot of the database.

    :param project: project whose worklog of the same name belongs to the session.
    :param kinds: requested kinds, from :data:`KINDS`.
    :param who: author of the entries; ``None`` for all authors.
    :param place: end of the requested entries.
    :param part: maximum entries of each kind.
    :raises SessionNotFoundError: the session does not exist.
    """
    about = session.find(tx, session_id)
    scope = _scope(tx, project, about)
    found = {kind: _Source(tx, kind, scope, who) for kind in KINDS if kind in kinds}
    ends = [source.ends for source in found.values() if source.ends["first"]]
    firsts, lasts = ([one[end] for one in ends] for end in ("first", "last"))
    unit = unit_for(min(firsts), max(lasts)) if ends else Unit(19, 1)
    parts: dict[str, Any] = {kind: source.part(place, unit, part.limit) for kind, source in found.items()}
    return Timeline(about["id"], unit.seconds, **parts)


def news(
    tx: Transaction, session_id: str, project: str, since: Mapping[str, int], who: str | None
) -> SessionNews:
    """Return the entries of a session after cursors, from one snapshot of the database.

    :param project: project whose worklog of the same name belongs to the session.
    :param since: cursors of some of :data:`KINDS`; the other kinds are not read.
    :param who: author of the entries; ``None`` for all authors.
    :raises SessionNotFoundError: the session does not exist.
    """
    scope = _scope(tx, project, session.find(tx, session_id))
    found = {kind: _Source(tx, kind, scope, who).newer(at) for kind, at in since.items()}
    parts: dict[str, Any] = {kind: newer for kind, newer in found.items() if newer.items}
    return SessionNews(**parts)


def topic(tx: Transaction, session_id: str) -> Topic:
    """Return the topic that changes with every new entry of a session."""
    return Topic(_POSITIONS, session.find(tx, session_id)["number"])


def _scope(tx: Transaction, project: str, about: Row) -> dict[str, int]:
    """Return the numbers of a session and of its worklog."""
    log = rows.called(tx, project, about["id"])
    return {"number": about["number"], "worklog": -1 if log is None else log["number"]}


class _Source:
    """The entries of one kind in a session.

    :param scope: parameters of the statements: the numbers of the session and of its worklog.
    :param who: author of the entries; ``None`` for all authors.
    """

    def __init__(self, tx: Transaction, kind: str, scope: Mapping[str, Any], who: str | None) -> None:
        self._tx, self._kind = tx, kind
        key = "worklog" if kind == "worklog" else "number"
        self._values: dict[str, Any] = {key: scope[key]}
        self._all = f"FROM ({_SOURCES[kind]}) AS found"
        self._which, named = conditions(who=("found.who = :who", who))
        self._theirs = f"{self._all} WHERE {self._which}"
        self._named = {**self._values, **named}

    @cached_property
    def ends(self) -> Row:
        """Return the times of the first and the last entry, and the number of the last, of any author."""
        theirs = f"FILTER (WHERE {self._which})"
        ends = f"min(found.at) {theirs} AS first, max(found.at) {theirs} AS last, max(found.number) AS cursor"
        return self._tx.one(f"SELECT {ends} {self._all}", **self._named) or {}

    def part(self, place: Place, unit: Unit, most: int) -> Part[Any]:
        """Return the entries before a position."""
        where = f"{self._theirs} AND (found.at < :before OR (found.at = :before AND found.id < :before_id))"
        values = {**self._named, **place.values(self._kind)}
        first, last, cursor = (self.ends[name] for name in ("first", "last", "cursor"))
        counts = self._counts(unit)
        if place.at > (last or ""):
            total = sum(one.count for one in counts)
            where += _NEWEST.get(self._kind, "") if self._named == self._values else ""
        else:
            total = self._tx.value(f"SELECT count(*) {where}", **values)
        sql = f"SELECT * {where} ORDER BY found.at DESC, found.id DESC LIMIT :most"
        page = self._tx.some(sql, most=most, **values)
        items = _items(self._tx, self._kind, page[::-1])
        return Part(items, total, self._names(), counts, first, last, cursor or 0)

    def newer(self, cursor: int) -> Newer[Any]:
        """Return the entries after a cursor."""
        sql = f"SELECT * {self._theirs} AND found.number > :cursor ORDER BY found.number LIMIT :most"
        page = self._tx.some(sql, most=NEWS, cursor=cursor, **self._named)
        return Newer(_items(self._tx, self._kind, page), page[-1]["number"] if page else cursor)

    def _names(self) -> dict[str, int]:
        sql = (
            f"SELECT found.who, count(*) AS count {self._all} WHERE found.who IS NOT NULL"
            " GROUP BY found.who ORDER BY count(*) DESC, found.who LIMIT :most"
        )
        return {row["who"]: row["count"] for row in self._tx.all(sql, most=MAX_NAMES, **self._values)}

    def _counts(self, unit: Unit) -> tuple[Count, ...]:
        sql = (
            f"SELECT substr(found.at, 1, {unit.characters}) AS part, count(*) AS count {self._theirs}"
            " GROUP BY part ORDER BY part LIMIT :most"
        )
        counted = self._tx.all(sql, most=MAX_PAGE, **self._named)
        return tuple(Count(row["part"], row["count"]) for row in counted)


def _items(tx: Transaction, kind: str, page: Sequence[Row]) -> tuple[Any, ...]:
    if kind == "worklog":
        return tuple(
            rows.entry({**row, "seq": row["id"], "ts": row["at"], "agent_id": row["who"]}) for row in page
        )
    if kind != "events":
        return tuple(filled(Revised if kind == "artifacts" else Reviewed, row) for row in page)
    ids = [row["id"] for row in page]
    reactions = feed.reactions(tx, "event.id IN :ids", {"ids": ids}) if ids else {}
    return tuple(
        feed.event({**row, "timestamp": row["at"], "persona": row["who"]}, tx.now, reactions.get(row["id"]))
        for row in page
    )


_REVIEWED = """
FROM session_artifact
JOIN review ON review.artifact_id = session_artifact.artifact_id
JOIN artifact ON artifact.id = review.artifact_id"""

# Each row has a number that grows with every insertion into the session, independent of clocks.
_SOURCES = {
    "events": f"""
SELECT event.id AS number, event.id, event.timestamp AS at, event.persona AS who, event.room_id,
    event.event_type, event.data, event.reply_to_id, event.position, room.event_count, {feed.PRESENT}
FROM room JOIN event ON event.room_id = room.id {feed.PRESENT_FROM} WHERE room.session_number = :number""",
    "artifacts": """
SELECT revision.id AS number, revision.id, revision.created_at AS at, revision.created_by AS who,
    artifact.id AS artifact_id, artifact.name AS name, revision.revision_num, revision.filename,
    revision.size, revision.purpose
FROM session_artifact
JOIN artifact ON artifact.id = session_artifact.artifact_id
JOIN revision ON revision.artifact_id = artifact.id
WHERE session_artifact.session_number = :number""",
    # The steps of a review have ids from two tables, or no id.
    "reviews": f"""
SELECT row_number() OVER (ORDER BY done.at, done.step, done.id) AS number, done.* FROM (
SELECT review.id, review.created_at AS at, review.reviewer_persona AS who, 'begun' AS step,
    NULL AS location, NULL AS text, review.id AS review_id, artifact.name AS name
{_REVIEWED} WHERE session_artifact.session_number = :number
UNION ALL SELECT review_comment.id, review_comment.created_at, review_comment.persona, 'comment',
    review_comment.location, review_comment.comment, review.id, artifact.name
{_REVIEWED} JOIN review_comment ON review_comment.review_id = review.id
WHERE session_artifact.session_number = :number
UNION ALL SELECT review.id, review.completed_at, review.reviewer_persona, 'completed',
    NULL, review.overall_comment, review.id, artifact.name
{_REVIEWED} WHERE review.completed_at IS NOT NULL AND session_artifact.session_number = :number
) AS done""",
    "worklog": """
SELECT seq AS number, seq AS id, ts AS at, agent_id AS who, agent_type, action, summary, data, tags, refs
FROM worklog_entry WHERE session_number = :worklog""",
}

# Times in a room never decrease, so the latest events of all rooms are among the last of each.
_NEWEST = {"events": " AND found.position > found.event_count - :most"}

_POSITIONS = """
SELECT session.number AS key,
    (SELECT coalesce(sum(room.event_count), 0) FROM room WHERE room.session_number = session.number)
    + (SELECT coalesce(sum(artifact.revision_count), 0) FROM session_artifact
        JOIN artifact ON artifact.id = session_artifact.artifact_id
        WHERE session_artifact.session_number = session.number)
    + (SELECT count(*) + count(review.completed_at) FROM session_artifact
        JOIN review ON review.artifact_id = session_artifact.artifact_id
        WHERE session_artifact.session_number = session.number)
    + (SELECT count(*) FROM session_artifact
        JOIN review ON review.artifact_id = session_artifact.artifact_id
        JOIN review_comment ON review_comment.review_id = review.id
        WHERE session_artifact.session_number = session.number)
    + (SELECT coalesce(sum(worklog_session.entry_count), 0) FROM worklog_session
        WHERE worklog_session.id = session.id) AS position
FROM session WHERE session.number IN :keys"""
"""The position of a session. Counted rows are never removed. A worklog of the same id in another project
causes a needless wake-up.
"""
