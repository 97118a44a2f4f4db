"""Tokens of callers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

# STRICT tables of SQLite know only INTEGER; elsewhere ids have 64 bits.
Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text()


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "access_token",
        sa.Column("id", Id, primary_key=True, autoincrement=True),
        sa.Column("name", Text, nullable=False),
        # What is kept of the token itself: its SHA-256.
        sa.Column("digest", Text, nullable=False),
        # JSON lists; NULL means all.
        sa.Column("domains", Text),
        sa.Column("roots", Text),
        sa.Column("libraries", Text),
        sa.Column("read_only", Id, nullable=False),
        sa.Column("created_at", Text, nullable=False),
        sa.Column("expires_at", Text),
        sa.Column("revoked_at", Text),
        sa.UniqueConstraint("name", name="access_token_name"),
        sa.UniqueConstraint("digest", name="access_token_digest"),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
