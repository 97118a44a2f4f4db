"""A database with rows of every kind, inserted by few statements on either engine."""

from __future__ import annotations

from pathlib import Path

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base.database import Transaction
from npl_mcp.tools.artifact import artifact_create
from npl_mcp.tools.chat import chat_create_room
from npl_mcp.tools.worklog import worklog_init

ROOMS = 20
PERSONAS = 64
CHUNK = 100_000
"""Rows of one transaction: the server ends a statement that says nothing for a minute."""

MOMENT = "2026-01-31T12:00:00.000000Z"
NOTE = "# Note\n\nOne line of a note that agents share.\n" * 24
SESSION = "bench"
NUMBERS = (
    "WITH RECURSIVE numbers (n) AS (SELECT CAST(:first AS BIGINT) UNION ALL"
    " SELECT n + 1 FROM numbers WHERE n < :last)"
)


def open_app(folder: Path, database: str | None = None) -> App:
    """Open an application that works in ``folder/work`` with the data in ``folder/data``.

    :param database: address of PostgreSQL.
    """
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    return App(Settings(cwd=work, home=folder, data_dir=data, database_url=database, warm_up=False))


def fill(app: App, rows: int) -> None:
    """Insert messages into the rooms and entries into the worklog, and a tenth as many of all others."""
    personas = [f"p{number}" for number in range(PERSONAS)]
    for number in range(ROOMS):
        chat_create_room(app, f"room {number}", personas)
    worklog_init(app, SESSION)
    artifact_create(app, "first", "document", "note.md", NOTE)
    for first in range(0, rows, CHUNK):
        span = {"first": first, "last": min(rows, first + CHUNK) - 1}
        with app.stores.database.write() as tx:
            tx.run(
                f"{NUMBERS} INSERT INTO event (room_id, position, event_type, persona, timestamp, data)"
                f" SELECT 1 + n % {ROOMS}, {PERSONAS} + 1 + n / {ROOMS}, 'message', 'p' || (n % {PERSONAS}),"
                ' :moment, \'{"message":"Somebody wrote, \' || n || \'","mentions":[]}\' FROM numbers',
                moment=MOMENT,
                **span,
            )
            tx.run(
                f"{NUMBERS} INSERT INTO worklog_entry (session_number, seq, ts, agent_id, action, summary)"
                " SELECT 1, n + 1, :moment, 'a', 'found', 'something' FROM numbers",
                moment=MOMENT,
                **span,
            )
    with app.stores.database.write() as tx:
        _fill_others(tx, rows)


def _fill_others(tx: Transaction, rows: int) -> None:
    tenth = {"moment": MOMENT, "tenth": rows // 10}
    tx.run("UPDATE room SET event_count = (SELECT max(position) FROM event WHERE event.room_id = room.id)")
    tx.run("UPDATE worklog_session SET entry_count = :rows, last_entry = :moment", rows=rows, moment=MOMENT)
    tx.run(
        "INSERT INTO mailbox (persona, total, unread) SELECT DISTINCT persona, 0, 0 FROM member WHERE true"
    )
    tx.run(
        "INSERT INTO notification (persona, event_id, notification_type, created_at)"
        " SELECT persona, id, 'mention', :moment FROM event WHERE event_type = 'message'"
        " ORDER BY id LIMIT :tenth",
        **tenth,
    )
    counted = "(SELECT count(*) FROM notification WHERE notification.persona = mailbox.persona)"
    tx.run(f"UPDATE mailbox SET total = {counted}, unread = {counted}")
    tx.run(
        "INSERT INTO artifact (name, type, created_at, revision_count)"
        " SELECT 'artifact ' || id, 'document', :moment, 1 FROM event ORDER BY id LIMIT :tenth",
        **tenth,
    )
    revision = (
        "INSERT INTO revision (artifact_id, revision_num, created_at, filename, size, digest, purpose)"
        " SELECT {}, :moment, first.filename, first.size, first.digest, 'p' FROM {} JOIN revision AS first"
        " ON first.artifact_id = 1 WHERE first.revision_num = 0 AND {}.id > 1"
    )
    tx.run(revision.format("artifact.id, 0", "artifact", "artifact"), moment=MOMENT)
    # The first artifact gets as many revisions as there are artifacts.
    tx.run(revision.format("1, artifact.id", "artifact", "artifact"), moment=MOMENT)
    tx.run("UPDATE artifact SET revision_count = (SELECT count(*) FROM artifact) WHERE id = 1")
    tx.run(
        "INSERT INTO session (id, created_at, updated_at)"
        " SELECT 's' || id, :moment, :moment FROM event ORDER BY id LIMIT :tenth",
        **tenth,
    )
