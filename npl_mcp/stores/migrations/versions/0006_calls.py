"""The log of calls."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

# STRICT tables of SQLite know only INTEGER; elsewhere ids have 64 bits.
Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text()


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "tool_call",
        sa.Column("id", Id, primary_key=True, autoincrement=True),
        sa.Column("created_at", Text, nullable=False),
        sa.Column("tool", Text, nullable=False),
        # Domains that somebody has to see to see the call, with spaces between.
        sa.Column("domains", Text, nullable=False),
        sa.Column("who", Text, nullable=False),
        # The name of the token, where the server has some.
        sa.Column("owner", Text),
        # NULL if it was answered.
        sa.Column("error", Text),
        sa.Column("micros", Id, nullable=False),
        sa.Column("bytes", Id, nullable=False),
        # The rest is known of calls that load sections.
        sa.Column("file", Text),
        sa.Column("asked", Id),
        sa.Column("used", Id),
        sa.Column("whole", Id),
        # A JSON list of selectors.
        sa.Column("taken", Text),
        sa.Column("context", Text),
        # Indices that were at hand and that were made since the row before.
        sa.Column("hits", Id, nullable=False),
        sa.Column("misses", Id, nullable=False),
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )
    op.create_index("tool_call_created", "tool_call", ["created_at"])
    op.create_table(
        "tool_call_offer",
        sa.Column("call_id", Id, sa.ForeignKey("tool_call.id", name="tool_call_offer_call"), nullable=False),
        sa.Column("number", Id, nullable=False),
        sa.Column("kind", Text, nullable=False),
        # Of caller, file and selector: the index of a long text would be refused.
        sa.Column("digest", Text, nullable=False),
        sa.Column("selector", Text, nullable=False),
        # The call that asked for it; no reference, since the two are removed at different times.
        sa.Column("followed_by", Id),
        sa.PrimaryKeyConstraint("call_id", "number"),
        sqlite_strict=True,
    )
    op.create_index("tool_call_offer_digest", "tool_call_offer", ["digest"])
