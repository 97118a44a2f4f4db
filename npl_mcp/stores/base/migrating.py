"""Migrates a database to the newest schema: files of SQL, run in one transaction.

``<number>_<name>.sql`` is for all engines, in the dialect of SQLite; ``<number>_<name>.<dialect>.sql`` is for
one engine. A released file is never edited. The table ``alembic_version`` holds the number of the newest
applied migration; its name comes from the program that created the first databases.
"""

from __future__ import annotations

from pathlib import Path

from npl_mcp.stores.base.engine import CallDeadline, Engine

MIGRATIONS = Path(__file__).parents[1] / "migrations"

RELEASED = tuple(sorted({path.name[:4] for path in MIGRATIONS.iterdir() if path.suffix == ".sql"}))
"""Numbers of all migrations."""

HEAD = RELEASED[-1]
"""The number of the newest migration."""


def migrate(engine: Engine, deadline: CallDeadline, oldest: str, folder: Path = MIGRATIONS) -> None:
    """Run the missing migrations of a database, while no other program writes.

    :param oldest: the new :attr:`~npl_mcp.stores.base.engine.Schema.oldest`.
    :param folder: the folder of the SQL files.
    :raises DatabaseError: a foreign key would break, or a migration fails; nothing was changed.
    """
    with engine.translated(), engine.migration(deadline) as raw:
        schema = engine.schema(raw)
        done = "" if schema is None else schema.number
        files = [file for file in sorted(folder.glob("*.sql")) if file.name[:4] > done]
        for file in files:
            if file.name.split(".")[1] in ("sql", engine.dialect):
                engine.run_script(raw, file.read_text(encoding="utf-8"))
        if files:
            engine.run_script(raw, f"UPDATE alembic_version SET version_num = '{files[-1].name[:4]}';")
            engine.finish(raw, oldest)
