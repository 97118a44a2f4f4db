"""Todos that are claimed and that wait for others, handoffs, archives, comments on sections.

It only adds, and what it adds may be left out: a server of the version before keeps working beside this one.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

# STRICT tables of SQLite know only INTEGER; elsewhere ids have 64 bits.
Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text()


def upgrade() -> None:
    """Add columns, tables and indexes."""
    for table, column in (
        ("todo", "lease_until"),
        ("room", "archived_at"),
        ("artifact", "archived_at"),
        # The section that a comment is about; its location holds the lines the section had.
        ("review_comment", "selector"),
    ):
        op.add_column(table, sa.Column(column, Text))
    op.create_table(
        "todo_blocker",
        sa.Column("todo_id", Id, sa.ForeignKey("todo.event_id", name="todo_blocker_todo"), nullable=False),
        sa.Column(
            "blocker_id", Id, sa.ForeignKey("todo.event_id", name="todo_blocker_blocker"), nullable=False
        ),
        sa.PrimaryKeyConstraint("todo_id", "blocker_id"),
        sqlite_strict=True,
    )
    op.create_table(
        "handoff",
        sa.Column("event_id", Id, sa.ForeignKey("event.id", name="handoff_event"), primary_key=True),
        sa.Column("persona", Text, nullable=False),
        sa.Column("ack_event_id", Id, sa.ForeignKey("event.id", name="handoff_ack")),
        sqlite_strict=True,
    )
    _index("event_todo", "event", ["room_id", "id"], "event_type = 'todo_create'")
    _index("todo_open", "todo", ["assigned_to", "event_id"], "status IN ('pending', 'in_progress')")
    for table in ("room", "artifact"):
        _index(f"{table}_archived", table, ["id"], "archived_at IS NOT NULL")
    op.create_index("review_by_artifact", "review", ["artifact_id", "id"])


def _index(name: str, table: str, columns: list[str], condition: str) -> None:
    only = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=only, postgresql_where=only)
