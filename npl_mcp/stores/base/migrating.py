"""Runs migrations: the one place that needs SQLAlchemy and Alembic, once for each version.

Both take longer to load than most commands run, so the database imports this module when there is something
to do, and all else is SQL as text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic.command import upgrade
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from npl_mcp.stores.base.engine import Deadline, Engine


def to_newest(engine: Engine, deadline: Deadline, oldest: str) -> None:
    """Bring a database to the newest migration.

    :param oldest: see :func:`migrating`.
    :raises DatabaseError: it cannot be done; nothing was changed.
    """
    migrating(engine, deadline, _upgrade, oldest)


def migrating(engine: Engine, deadline: Deadline, work: Callable[[Connection], None], oldest: str) -> None:
    """Run a migration: one transaction, while nobody else writes.

    :param oldest: see :attr:`~npl_mcp.stores.base.engine.Schema.oldest`.
    :raises DatabaseError: a row would lose what it refers to, or the migration fails.
    """
    migration = engine.migration(deadline)
    made = create_engine(
        migration.dialect, creator=lambda: migration.raw, poolclass=StaticPool, **migration.options
    )
    event.listen(made, "begin", lambda connection: connection.exec_driver_sql(migration.begin))
    try:
        with made.connect() as connection, connection.begin():
            work(connection)
            migration.finish(connection.exec_driver_sql, oldest)
    except SQLAlchemyError as error:
        raise engine.as_database_error(getattr(error, "orig", None) or error) from error
    finally:
        made.dispose()
        migration.raw.close()


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    config.attributes["connection"] = connection
    upgrade(config, "head")
