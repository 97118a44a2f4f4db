"""Libraries: Markdown with revisions, and the index that is made of it once for all."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

# STRICT tables of SQLite know only INTEGER; elsewhere ids have 64 bits.
Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text()
Bytes = sa.LargeBinary()


def _table(name: str, *parts: Any, numbered: bool = False) -> None:
    op.create_table(name, *parts, sqlite_strict=True, sqlite_autoincrement=numbered)


def _id() -> sa.Column[int]:
    return sa.Column("id", Id, primary_key=True, autoincrement=True)


def _need(name: str, kind: Any = Text, *more: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, *more, nullable=False)


def _library(name: str) -> sa.Column[Any]:
    return _need("library_id", Id, sa.ForeignKey("library.id", name=name))


def upgrade() -> None:
    """Make the tables and indexes."""
    _libraries()
    _indexes()


def _libraries() -> None:
    _table(
        "library",
        _id(),
        _need("name"),
        _need("created_at"),
        # The number of the current one.
        _need("revision", Id),
        sa.UniqueConstraint("name", name="library_name"),
        numbered=True,
    )
    _table(
        "library_revision",
        _library("library_revision_library"),
        _need("number", Id),
        _need("created_at"),
        sa.Column("created_by", Text),
        sa.Column("message", Text),
        # Of the paths and contents: the same means the same files, whatever the number.
        _need("digest"),
        _need("files", Id),
        _need("bytes", Id),
        _need("added", Id),
        _need("changed", Id),
        _need("removed", Id),
        sa.PrimaryKeyConstraint("library_id", "number"),
    )
    _table(
        "library_content",
        sa.Column("digest", Text, primary_key=True),
        _need("data", Bytes),
    )
    _table(
        "library_file",
        _library("library_file_library"),
        _need("path"),
        _need("digest", Text, sa.ForeignKey("library_content.digest", name="library_file_content")),
        _need("size", Id),
        _need("first_revision", Id),
        # The largest number there is while it is still there: then one range finds the files of any revision.
        _need("last_revision", Id),
        sa.PrimaryKeyConstraint("library_id", "path", "first_revision"),
    )
    op.create_index(
        "library_file_by_revision", "library_file", ["library_id", "last_revision", "first_revision"]
    )


def _indexes() -> None:
    _table(
        "library_index",
        _id(),
        _library("library_index_library"),
        _need("format"),
        _need("created_at"),
        _need("digest"),
        _need("members", Bytes),
        sa.UniqueConstraint("library_id", "format", name="library_index_format"),
        numbered=True,
    )
    _table(
        "library_index_part",
        _need("index_id", Id, sa.ForeignKey("library_index.id", name="library_index_part_index")),
        _need("number", Id),
        _need("data", Bytes),
        sa.PrimaryKeyConstraint("index_id", "number"),
    )
    # Who makes an index now; a beat that stands still is that of somebody who is gone.
    _table(
        "library_build",
        _library("library_build_library"),
        _need("format"),
        _need("holder"),
        _need("beat", Id),
        sa.PrimaryKeyConstraint("library_id", "format"),
    )
