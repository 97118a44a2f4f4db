"""Full-text search over rows: messages, worklog entries, artifacts.

Each engine has an index of the terms of all rows (:mod:`npl_index.ranking.analysis`; PostgreSQL approximates
them), which finds rows by the beginning of a term. A row contains a phrase if its text does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from npl_index.ranking.analysis import searched_terms, terms
from npl_index.ranking.spelling import holds
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.chat.feed import text_of

MAX_MATCHES = 1_000
"""Maximum matching rows to read: those with the most words first, then the newest."""

MAX_OF_A_WORD = 100_000
"""Maximum rows considered per word: the newest. A rarer word finds rows of any age."""


@dataclass(frozen=True, slots=True)
class RowKind:
    """Rows of one kind that are searched: of open rooms, unarchived artifacts, worklogs of ``:project``.

    :param index: the index of their words: a table of SQLite, a function of PostgreSQL.
    :param columns: the columns to read.
    :param words: SQL expression of the indexed text.
    :param tables: the tables to read from.
    :param where: condition for searchable rows.
    :param place: condition for the row of ``hit.place``.
    :param order: order of rows, newest first.
    :param text_of: function from a row to its text.
    """

    index: str
    columns: str
    words: str
    tables: str
    where: str
    place: str
    order: str
    text_of: Callable[[Row], str] = lambda row: str(row["words"])

    def matching(self, tx: Transaction, words: Sequence[str], project: str) -> list[tuple[Row, str]]:
        """Return rows that contain words, with their texts: those with the most words first, then the newest.

        Displayed columns have the names of an answer's fields.
        """
        parts, given = [], {"project": project}
        doubtful = [word for word in words if not word.isalnum()]
        queries = {word: query for word in words if (query := _query(word))}
        for at, (word, query) in enumerate(queries.items()):
            given[f"w{at}"] = query
            hits = f"rowid AS place FROM {self.index}(:w{at})"
            newest = f"SELECT {hits} ORDER BY place DESC LIMIT {MAX_OF_A_WORD}"
            parts.append(f"SELECT place, {int(word not in doubtful)} AS sure FROM ({newest}) AS hits_{at}")
        if not parts:
            return []
        hits = f"({' UNION ALL '.join(parts)}) AS hits"
        hit = f"SELECT place, count(*) AS likely, sum(sure) AS sure FROM {hits} GROUP BY place"
        sql = f"""
            SELECT {self.columns}, {self.words} AS words, sure FROM ({hit}) AS hit CROSS JOIN {self.tables}
            WHERE {self.where} AND {self.place} ORDER BY likely DESC, {self.order} LIMIT {MAX_MATCHES}"""
        matches: dict[int, list[tuple[Row, str]]] = {}
        for row in tx.all(sql, **given):
            text = self.text_of(row)
            own = frozenset(searched_terms(text)) if doubtful else frozenset()
            # The index may return rows with the parts of a phrase or an identifier alone.
            exact = (holds(text, word) if " " in word else own.issuperset(terms(word)) for word in doubtful)
            matches.setdefault(int(row["sure"]) + sum(exact), []).append((row, row.get("summary", text)))
        return [match for matched in sorted(matches, reverse=True) if matched for match in matches[matched]]


def _query(word: str) -> str:
    """Return the index query for a word or a phrase; the terms are beginnings."""
    return " AND ".join(f'"{term}" *' for term in dict.fromkeys(terms(word, keep_stop_words=True)))


_MESSAGES = RowKind(
    index="event_words",
    columns='event.id AS event_id, room_id, room.name AS title, persona AS "by", timestamp AS at',
    words="data",
    tables="event JOIN room ON room.id = room_id",
    where="archived_at IS NULL AND event_type IN ('message', 'handoff', 'todo_create')",
    place="event.id = hit.place",
    order="event.id DESC",
    text_of=lambda row: text_of(row["words"]),
)

_ENTRIES = RowKind(
    index="worklog_entry_words",
    columns='session.id AS session_id, seq, ts AS at, agent_id AS "by", action AS title, summary',
    words="action || ' ' || summary || ' ' || coalesce(tags, '')",
    tables="worklog_entry AS entry JOIN worklog_session AS session ON session.number = entry.session_number",
    where="project = :project AND archived_as IS NULL",
    place="entry.session_number = hit.place / 1000000000 AND seq = hit.place % 1000000000",
    order="entry.session_number DESC, seq DESC",
)

_ARTIFACTS = RowKind(
    index="revision_words",
    columns="artifact.id AS artifact_id, name AS title, revision_num AS revision, revision.created_at AS at,"
    " filename || ': ' || purpose AS summary",
    words="name || ' ' || filename || ' ' || purpose || ' ' || coalesce(notes, '')",
    tables="artifact JOIN revision ON artifact.id = artifact_id AND revision_num = revision_count - 1",
    where="archived_at IS NULL",
    place="revision.id = hit.place",
    order="artifact.id DESC",
)

KINDS: Mapping[str, RowKind] = {"message": _MESSAGES, "worklog": _ENTRIES, "artifact": _ARTIFACTS}
"""The kinds of rows that a search finds."""
