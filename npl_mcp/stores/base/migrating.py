"""Runs migrations: the one place that needs SQLAlchemy and Alembic, once for each version.

Both take longer to load than most commands run, so the database imports this module when there is something
to do, and all else is SQL as text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from alembic.command import upgrade
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from npl_mcp.stores.base import sqlite
from npl_mcp.stores.base.errors import DatabaseError


def to_newest(path: Path, deadline: sqlite.Deadline) -> None:
    """Bring a database to the newest migration.

    :raises DatabaseError: it cannot be done; nothing was changed.
    """
    migrating(path, deadline, _upgrade)


def migrating(path: Path, deadline: sqlite.Deadline, work: Callable[[Connection], None]) -> None:
    """Run a migration: one transaction, foreign keys off while it runs and checked before it ends.

    Tables are changed by copying them to new ones; with foreign keys on, dropping the old one would delete
    the rows that refer to it.

    :raises DatabaseError: a row would lose what it refers to, or the migration fails.
    """
    raw: Any = sqlite.connect(path, deadline, read_only=False)
    engine = create_engine("sqlite://", module=sqlite.driver(), creator=lambda: raw, poolclass=StaticPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        raw.execute("PRAGMA foreign_keys = OFF")
        with engine.connect() as connection, connection.begin():
            work(connection)
            # Whose database it is stands in its header.
            connection.exec_driver_sql(f"PRAGMA application_id = {sqlite.APPLICATION_ID}")
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
            if broken:
                raise DatabaseError(f"the migration would break {len(broken)} references")
    except SQLAlchemyError as error:
        raise sqlite.as_database_error(getattr(error, "orig", None) or error) from error
    finally:
        engine.dispose()
        raw.close()


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    config.attributes["connection"] = connection
    upgrade(config, "head")
