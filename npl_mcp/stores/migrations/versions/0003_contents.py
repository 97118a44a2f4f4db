"""The contents of artifacts, where the database keeps them: each once, under its digest."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add a table and what refers to it; with SQLite contents are files."""
    if op.get_context().dialect.name == "sqlite":
        return
    op.create_table(
        "content",
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    op.create_foreign_key(
        "revision_content",
        "revision",
        "content",
        ["digest"],
        ["digest"],
        deferrable=True,
        initially="DEFERRED",
    )
