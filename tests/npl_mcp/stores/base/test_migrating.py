"""Migrations: the tables they make, the rows they keep, and their atomicity."""

import json
import re
import shutil
from pathlib import Path

import pytest

from npl_mcp.stores.base.database import HEAD, Database
from npl_mcp.stores.base.engine import CallDeadline
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.base.migrating import MIGRATIONS, migrate
from npl_mcp.stores.base.opening import database_of
from tests import engines
from tests.conftest import cases

CASE = Path(__file__).resolve().parents[3] / "cases" / "schema"

POSTGRES = cases("npl_mcp/stores/base/migrating")["postgres"]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return database_of(tmp_path / "data", engines.empty_address(tmp_path / "data"))


def schema(folder: Path) -> list[str]:
    """Describe all tables, columns, constraints and indexes; on SQLite by the statements that made them."""
    if engines.SERVER:
        return [json.dumps(row) for question in POSTGRES for row in engines.query(folder, question)]
    rows = engines.query(folder, "SELECT type, name, sql FROM sqlite_master ORDER BY type, name")
    return [" ".join([kind, name, re.sub(r"--.*|\s+", "", sql or "")]) for kind, name, sql in rows]


def test_the_tables_are_those_of_the_program_that_made_the_first_databases(
    database: Database, tmp_path: Path
) -> None:
    """Another program recorded the schema after the migrations up to 0006, whose files are never edited."""
    (tmp_path / "first").mkdir()
    (tmp_path / "data").mkdir()
    for file in MIGRATIONS.glob("*.sql"):
        if file.name[:4] <= "0006":
            shutil.copy(file, tmp_path / "first")
    migrate(database.engine, CallDeadline(), "0005", tmp_path / "first")
    recorded = (CASE / f"{engines.ENGINE}.txt").read_text(encoding="utf-8").splitlines()
    assert schema(tmp_path / "data") == recorded
    assert engines.query(tmp_path / "data", "SELECT * FROM alembic_version") == [("0006",)]


@pytest.mark.parametrize("number", sorted({file.name[:4] for file in MIGRATIONS.glob("*.sql")}))
def test_a_migrated_database_equals_a_new_one(database: Database, tmp_path: Path, number: str) -> None:
    (tmp_path / "then").mkdir()
    (tmp_path / "data").mkdir()
    for file in MIGRATIONS.glob("*.sql"):
        if file.name[:4] <= number:
            shutil.copy(file, tmp_path / "then")
    migrate(database.engine, CallDeadline(), "0001", tmp_path / "then")
    assert database.migrate() == (number, HEAD)
    database.close()
    new = database_of(tmp_path / "new", engines.empty_address(tmp_path / "new"))
    new.open()
    new.close()
    assert schema(tmp_path / "data") == schema(tmp_path / "new")


def test_a_migration_happens_whole_or_not_at_all(database: Database, tmp_path: Path) -> None:
    """If its last statement fails, the others are undone, and the database works as before."""
    database.open()
    before = schema(tmp_path / "data")
    (tmp_path / "later").mkdir()
    text = (
        "CREATE TABLE later (id INTEGER);\n\nINSERT INTO later VALUES (1);\n\nINSERT INTO none VALUES (1);\n"
    )
    (tmp_path / "later" / "9998_later.sql").write_text(text)
    with pytest.raises(DatabaseError):
        migrate(database.engine, CallDeadline(), HEAD, tmp_path / "later")
    assert schema(tmp_path / "data") == before
    assert database.schema() == HEAD


REBUILT = """
-- A table is changed the only way SQLite knows: the new one takes the place of the old.
CREATE TABLE room_new (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
INSERT INTO room_new SELECT id, name FROM room;
DROP TABLE room;
ALTER TABLE room_new RENAME TO room;
"""


@pytest.mark.engine("sqlite")
def test_a_migration_keeps_the_rows_of_other_tables(database: Database, tmp_path: Path) -> None:
    """Rebuilding a parent table keeps its children; a migration that would orphan them is not committed."""
    with database.write() as tx:
        tx.run("INSERT INTO room (name, created_at) VALUES ('a', 't')")
        tx.run("INSERT INTO member (room_id, persona, position, joined_at) VALUES (1, 'p', 1, 't')")
    file = tmp_path / "9998_rooms.sql"
    file.write_text(f"{REBUILT}DELETE FROM room;\n")
    with pytest.raises(DatabaseError, match="break 1 references"):
        migrate(database.engine, CallDeadline(), HEAD, tmp_path)
    file.write_text(REBUILT)
    migrate(database.engine, CallDeadline(), HEAD, tmp_path)
    assert engines.query(tmp_path / "data", "SELECT id, name FROM room") == [(1, "a")]
    assert engines.query(tmp_path / "data", "SELECT count(*) FROM member") == [(1,)]
    assert engines.query(tmp_path / "data", "PRAGMA integrity_check") == [("ok",)]
