"""First tables: sessions, artifacts, chat, reviews, worklog."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# STRICT tables of SQLite know only INTEGER; elsewhere ids have 64 bits.
Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text()


def _table(name: str, *parts: Any, numbered: bool = False) -> None:
    op.create_table(name, *parts, sqlite_strict=True, sqlite_autoincrement=numbered)


def _id() -> sa.Column[int]:
    return sa.Column("id", Id, primary_key=True, autoincrement=True)


def _need(name: str, kind: Any = Text, *more: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, *more, nullable=False, **options)


def _count(name: str) -> sa.Column[Any]:
    return _need(name, Id, server_default=sa.text("0"))


def upgrade() -> None:
    """Make the tables and indexes."""
    _totals()
    _sessions()
    _artifacts()
    _rooms()
    _events()
    _notifications()
    _reviews()
    _worklog()


def _totals() -> None:
    # Counting the rows of a table takes time in proportion to them.
    _table("total", sa.Column("name", Text, primary_key=True), _count("value"))


def _sessions() -> None:
    _table(
        "session",
        sa.Column("number", Id, primary_key=True, autoincrement=True),
        _need("id"),
        sa.Column("title", Text),
        _need("created_at"),
        _need("updated_at"),
        _need("status", Text, server_default="active"),
        _count("room_count"),
        _count("artifact_count"),
        sa.UniqueConstraint("id", name="session_id"),
        sa.CheckConstraint("status IN ('active', 'completed', 'archived')", name="session_status"),
        numbered=True,
    )
    op.create_index("session_by_status", "session", ["status", "number"])


def _artifacts() -> None:
    _table(
        "artifact",
        _id(),
        _need("name"),
        _need("type"),
        _need("created_at"),
        _count("revision_count"),
        sa.UniqueConstraint("name", name="artifact_name"),
        numbered=True,
    )
    _table(
        "revision",
        _id(),
        _need("artifact_id", Id, sa.ForeignKey("artifact.id", name="revision_artifact")),
        _need("revision_num", Id),
        _need("created_at"),
        sa.Column("created_by", Text),
        _need("filename"),
        _need("size", Id),
        _need("digest"),
        _need("purpose"),
        sa.Column("notes", Text),
        sa.UniqueConstraint("artifact_id", "revision_num", name="revision_number"),
        sa.UniqueConstraint("artifact_id", "id", name="revision_of_artifact"),
        numbered=True,
    )
    _table(
        "session_artifact",
        _need("session_number", Id, sa.ForeignKey("session.number", name="session_artifact_session")),
        _need("artifact_id", Id, sa.ForeignKey("artifact.id", name="session_artifact_artifact")),
        _need("linked_at"),
        sa.PrimaryKeyConstraint("session_number", "artifact_id"),
    )
    op.create_index("session_artifact_by_artifact", "session_artifact", ["artifact_id"])


def _rooms() -> None:
    _table(
        "room",
        _id(),
        _need("name"),
        _need("created_at"),
        sa.Column("description", Text),
        sa.Column("session_number", Id, sa.ForeignKey("session.number", name="room_session")),
        _count("event_count"),
        _count("member_count"),
        sa.UniqueConstraint("name", name="room_name"),
        numbered=True,
    )
    op.create_index("room_by_session", "room", ["session_number"])
    _table(
        "member",
        _need("room_id", Id, sa.ForeignKey("room.id", name="member_room")),
        _need("persona"),
        _need("position", Id),
        _need("joined_at"),
        sa.PrimaryKeyConstraint("room_id", "persona"),
    )
    op.create_index("member_by_persona", "member", ["persona", "room_id"])


def _events() -> None:
    _table(
        "event",
        _id(),
        _need("room_id", Id, sa.ForeignKey("room.id", name="event_room")),
        _need("position", Id),
        _need("event_type"),
        _need("persona"),
        _need("timestamp"),
        _need("data"),
        sa.Column("reply_to_id", Id),
        sa.UniqueConstraint("room_id", "position", name="event_position"),
        sa.UniqueConstraint("room_id", "id", name="event_of_room"),
        # An answer stands in the same room as what it answers.
        sa.ForeignKeyConstraint(
            ["room_id", "reply_to_id"], ["event.room_id", "event.id"], name="event_reply"
        ),
        numbered=True,
    )
    op.create_index("event_by_reply", "event", ["reply_to_id"])
    _table(
        "reaction",
        _need("event_id", Id, sa.ForeignKey("event.id", name="reaction_event")),
        _need("emoji"),
        _need("persona"),
        _need("reaction_event_id", Id, sa.ForeignKey("event.id", name="reaction_own_event")),
        sa.PrimaryKeyConstraint("event_id", "emoji", "persona"),
    )
    _table(
        "todo",
        sa.Column("event_id", Id, sa.ForeignKey("event.id", name="todo_event"), primary_key=True),
        _need("status", Text, server_default="pending"),
        sa.Column("assigned_to", Text),
        _need("changed_at"),
        _need("changed_by"),
        sa.CheckConstraint("status IN ('pending', 'in_progress', 'done', 'cancelled')", name="todo_status"),
    )


def _notifications() -> None:
    _table(
        "mailbox",
        sa.Column("persona", Text, primary_key=True),
        _count("total"),
        _count("unread"),
    )
    _table(
        "notification",
        _id(),
        _need("persona", Text, sa.ForeignKey("mailbox.persona", name="notification_mailbox")),
        _need("event_id", Id, sa.ForeignKey("event.id", name="notification_event")),
        _need("notification_type"),
        _need("created_at"),
        sa.Column("read_at", Text),
        numbered=True,
    )
    op.create_index("notification_by_persona", "notification", ["persona", "id"])
    unread = sa.text("read_at IS NULL")
    op.create_index(
        "notification_unread",
        "notification",
        ["persona", "id"],
        sqlite_where=unread,
        postgresql_where=unread,
    )


def _reviews() -> None:
    _table(
        "review",
        _id(),
        _need("artifact_id", Id),
        _need("revision_id", Id),
        _need("reviewer_persona"),
        _need("created_at"),
        _need("status", Text, server_default="in_progress"),
        sa.Column("completed_at", Text),
        sa.Column("overall_comment", Text),
        sa.ForeignKeyConstraint(
            ["artifact_id", "revision_id"], ["revision.artifact_id", "revision.id"], name="review_revision"
        ),
        sa.CheckConstraint("status IN ('in_progress', 'completed')", name="review_status"),
        numbered=True,
    )
    op.create_index("review_by_revision", "review", ["revision_id"])
    _table(
        "review_comment",
        _id(),
        _need("review_id", Id, sa.ForeignKey("review.id", name="review_comment_review")),
        _need("location"),
        _need("comment"),
        _need("persona"),
        _need("created_at"),
        numbered=True,
    )
    op.create_index("review_comment_by_review", "review_comment", ["review_id", "id"])


def _worklog() -> None:
    _table(
        "worklog_session",
        sa.Column("number", Id, primary_key=True, autoincrement=True),
        _need("project"),
        _need("id"),
        _need("created"),
        sa.Column("closed", Text),
        # Where its folder went when it was archived, below the project's archive.
        sa.Column("archived_as", Text),
        sa.Column("task", Text),
        _need("status", Text, server_default="active"),
        _count("entry_count"),
        sa.Column("last_entry", Text),
        sa.CheckConstraint("status IN ('active', 'closed')", name="worklog_session_status"),
        numbered=True,
    )
    open_ones = sa.text("archived_as IS NULL")
    op.create_index(
        "worklog_session_id",
        "worklog_session",
        ["project", "id"],
        unique=True,
        sqlite_where=open_ones,
        postgresql_where=open_ones,
    )
    op.create_index("worklog_session_by_project", "worklog_session", ["project", "number"])
    op.create_index("worklog_session_archived", "worklog_session", ["project", "archived_as"], unique=True)
    _table(
        "worklog_project",
        sa.Column("project", Text, primary_key=True),
        sa.Column("current", Id, sa.ForeignKey("worklog_session.number", name="worklog_project_current")),
        sa.Column("imported_at", Text),
    )
    _table(
        "worklog_entry",
        _need("session_number", Id, sa.ForeignKey("worklog_session.number", name="worklog_entry_session")),
        _need("seq", Id),
        _need("ts"),
        _need("agent_id"),
        _need("agent_type", Text, server_default="unknown"),
        _need("action"),
        _need("summary"),
        sa.Column("data", Text),
        sa.Column("tags", Text),
        sa.Column("refs", Text),
        sa.PrimaryKeyConstraint("session_number", "seq"),
    )
    _table(
        "worklog_agent",
        _need("session_number", Id, sa.ForeignKey("worklog_session.number", name="worklog_agent_session")),
        _need("agent_id"),
        _count("entry_count"),
        _count("last_seq"),
        sa.Column("last_read", Text),
        sa.PrimaryKeyConstraint("session_number", "agent_id"),
    )
