"""Opening a data folder from before 0007 turns files of contents into rows: all or none."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest

from npl_mcp.app.maintenance import back_up, check
from npl_mcp.stores.artifact.artifacts import content, insert, require
from npl_mcp.stores.base.database import HEAD
from npl_mcp.stores.base.engine import CallDeadline
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.base.migrating import MIGRATIONS, migrate
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.data_folder import Stores
from tests import engines
from tests.npl_mcp.stores.test_faults import largest_file

pytestmark = pytest.mark.engine("sqlite")

REVISIONS = 3
BYTES = 2_000_000
WRITTEN = (
    "INSERT INTO revision (artifact_id, revision_num, created_at, filename, size, digest, purpose)"
    " VALUES (1, :number, '2026-01-31T12:00:00.000000Z', 'a.txt', :size, :digest, 'p')"
)


def content_of(number: int) -> bytes:
    """Return a revision's content; the first and the last are equal."""
    return f"{number % (REVISIONS - 1)} ".encode() * (BYTES // 2)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder as version 0.2.0 left it."""
    for file in MIGRATIONS.glob("*.sql"):
        if file.name[:4] <= "0006":
            (tmp_path / "then").mkdir(exist_ok=True)
            shutil.copy(file, tmp_path / "then")
    data = tmp_path / "data"
    (data / "artifacts" / "1").mkdir(parents=True)
    migrate(database_of(data).engine, CallDeadline(), "0005", tmp_path / "then")
    engines.execute(
        data,
        "INSERT INTO artifact (name, type, created_at, revision_count)"
        f" VALUES ('plan', 't', '2026-01-31T12:00:00.000000Z', {REVISIONS})",
    )
    engines.execute(data, "INSERT INTO total VALUES ('artifact', 1), ('recoveries', 7)")
    for number in range(REVISIONS):
        content = content_of(number)
        digest = blake2b(content, digest_size=16).hexdigest()
        row = {":number": str(number), ":size": str(len(content)), ":digest": f"'{digest}'"}
        statement = WRITTEN
        for name, value in row.items():
            statement = statement.replace(name, value)
        engines.execute(data, statement)
        file_of(data, number).write_bytes(content)
    return data


def file_of(data: Path, number: int) -> Path:
    return data / "artifacts" / "1" / f"revision-{number}-a.txt"


def test_contents_are_read_without_the_files_that_held_them(data: Path) -> None:
    opened = Stores(data)
    opened.start()
    shutil.rmtree(data / "artifacts")
    for number in range(REVISIONS):
        assert opened.database.reading(content, 1, number)[1] == content_of(number)
    with opened.database.write() as tx:
        added = insert(tx, require(tx, 1), b"new", {"filename": "b.txt"})
    assert added["revision_num"] == REVISIONS
    assert check(opened).problems == ()
    back_up(opened, data.with_name("copy"))
    opened.close()
    copied = Stores(data.with_name("copy"))
    assert copied.database.reading(content, 1, 0)[1] == content_of(0)
    copied.close()


HARMS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "changed": lambda file: file.write_bytes(b"x" * BYTES),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"more"),
    "empty": lambda file: file.write_bytes(b""),
    "a link": lambda file: file.symlink_to(file.rename(file.with_suffix(".moved"))),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_is_not_what_was_stored_is_reported_and_the_others_are_taken(
    data: Path, harm: str
) -> None:
    """The check reports it, and so does a reading."""
    HARMS[harm](file_of(data, 1))
    opened = Stores(data)
    opened.start()
    said = "the content of revision 1 of artifact 1 is not the one that was stored"
    assert check(opened).problems == (said,)
    with pytest.raises(DatabaseError, match=said):
        opened.database.reading(content, 1, 1)
    assert [opened.database.reading(content, 1, number)[1] for number in (0, 2)] == [content_of(0)] * 2
    opened.close()


def test_one_sound_file_of_a_content_is_enough(data: Path) -> None:
    """Two revisions have equal contents; the file of the first is gone."""
    file_of(data, 0).unlink()
    opened = Stores(data)
    opened.start()
    assert check(opened).problems == ()
    assert opened.database.reading(content, 1, 0)[1] == content_of(0)
    opened.close()


@pytest.mark.parametrize("column", ["filename", "digest"])
def test_a_damaged_row_keeps_no_data_folder_from_being_opened(data: Path, column: str) -> None:
    """The check names its unreadable content, and the other revisions are there."""
    engines.execute(data, f"UPDATE revision SET {column} = CAST(x'7b22ff' AS TEXT) WHERE revision_num = 1")
    opened = Stores(data)
    opened.start()
    assert check(opened).problems
    assert opened.database.reading(content, 1, 0)[1] == content_of(0)
    opened.close()


def is_whole(data: Path) -> bool:
    """Check that a folder was taken over completely or not at all; return whether it was."""
    taken = engines.query(data, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    tables = {name for (name,) in engines.query(data, "SELECT name FROM sqlite_master")}
    assert "revision_new" not in tables
    assert ("content" in tables) == taken
    if taken:
        kept = engines.query(data, "SELECT data FROM content ORDER BY data")
        assert [bytes(content) for (content,) in kept] == sorted(
            {content_of(number) for number in range(REVISIONS)}
        )
    return taken


OPENING = """
import sys
from pathlib import Path
from npl_mcp.stores.data_folder import Stores

stores = Stores(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
stores.start()
print("done", flush=True)
"""


@pytest.mark.thorough
def test_a_kill_leaves_the_former_state_or_the_new_one(data: Path) -> None:
    """The next opening finds everything after any kill."""
    states = []
    for wait in (0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.6):
        folder = data.with_name(f"killed{len(states)}")
        shutil.copytree(data, folder)
        with subprocess.Popen(
            [sys.executable, "-c", OPENING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.stdin.write(b"\n")
            process.stdin.flush()
            time.sleep(wait)
            process.kill()
            ended = process.stdout.read() == b"done\n"
        states.append(is_whole(folder))
        assert states[-1] or not ended
        opened = Stores(folder)
        opened.start()
        assert check(opened).problems == ()
        opened.close()
        assert is_whole(folder)


def test_a_disk_that_is_full_leaves_the_former_state(data: Path) -> None:
    """With room again the folder is opened."""
    opened = Stores(data)
    with largest_file(1_000_000), pytest.raises(DatabaseError):
        opened.start()
    assert not is_whole(data)
    opened.start()
    opened.close()
    assert is_whole(data)


def test_a_program_of_the_version_before_adds_no_revision_without_its_content(data: Path) -> None:
    """It has the database open and knows nothing of contents."""
    opened = Stores(data)
    opened.start()
    with pytest.raises(DatabaseError, match="contradicts"), opened.database.write() as tx:
        tx.run(WRITTEN, number=REVISIONS, size=1, digest="d")
    with opened.database.read() as tx:
        assert tx.value("SELECT count(*) FROM revision") == REVISIONS
    opened.close()
