"""Files and rows of artifacts stay together, whoever fails or is killed."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path

import pytest

from npl_mcp.stores.artifact.files import RevisionFiles
from npl_mcp.stores.base.errors import TooLargeError
from npl_mcp.stores.data_folder import Stores
from tests import engines

LARGEST = 16_000_000

WRITER = """
import sys
from pathlib import Path
from tests import engines

stores = engines.stores(Path(sys.argv[1]), 16_000_000)
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    content = f"{sys.argv[2]} {number} ".encode() * 5_000
    made = stores.artifact.create(f"{sys.argv[2]}-{number}", "data", content, "a.bin")
    print(made.artifact_id, 0, flush=True)
    made = stores.artifact.add_revision(1, content, "b.bin", created_by=f"{sys.argv[2]} {number}")
    print(1, made.revision_num, flush=True)
stores.close()
"""


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """Stores of a folder in which artifact 1 has revision 0."""
    stores = engines.stores(tmp_path / "data", LARGEST)
    stores.artifact.create("shared", "data", b"0", "a.bin")
    yield stores
    stores.close()


@contextmanager
def running(code: str, folder: Path, name: str, rounds: int) -> Iterator[subprocess.Popen[str]]:
    """Run a program until it says that it is ready; it does not outlive the block."""
    command = [sys.executable, "-c", code, str(folder), name, str(rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def acknowledged(process: subprocess.Popen[str]) -> set[tuple[int, int]]:
    """Read what a writer said it had stored; a last line may be cut off."""
    assert process.stdout is not None
    whole = [line.split() for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    return {(int(artifact), int(number)) for artifact, number in whole}


def files_below(folder: Path) -> set[str]:
    """Files and folders, but for the folder that the notes of writes are left in."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} - {".writing"}


def rows_and_files_agree(stores: Stores, folder: Path) -> set[tuple[int, int]]:
    """Compare both ways, read every content; give artifact and number of each revision."""
    with stores.database.read() as tx:
        rows = tx.all("SELECT artifact_id, revision_num, filename FROM revision")
    expected = {str(row["artifact_id"]) for row in rows}
    for row in rows:
        start = f"{row['artifact_id']}/revision-{row['revision_num']}"
        expected |= {f"{start}-{row['filename']}", f"{start}.meta.md"}
        stores.artifact.content(row["artifact_id"], row["revision_num"])
    assert files_below(folder) == expected
    return {(row["artifact_id"], row["revision_num"]) for row in rows}


def test_several_processes_number_their_revisions_one_after_the_other(stores: Stores, tmp_path: Path) -> None:
    """Three processes on one artifact: no number is lost or given twice, each content is its writer's."""
    with ExitStack() as stack:
        writers = [
            stack.enter_context(running(WRITER, tmp_path / "data", name, 5)) for name in ("amy", "bob", "zed")
        ]
        told = [acknowledged(writer) for writer in writers]
        assert [writer.wait() for writer in writers] == [0, 0, 0]
    numbers = sorted(number for each in told for artifact, number in each if artifact == 1)
    assert numbers == list(range(1, 16))
    for number in numbers:
        revision, content = stores.artifact.content(1, number)
        assert content == f"{revision.created_by} ".encode() * 5_000
    assert rows_and_files_agree(stores, engines.files(tmp_path / "data")) == set.union({(1, 0)}, *told)
    assert stores.artifact.list().total == 16


@pytest.mark.engine("sqlite")
@pytest.mark.parametrize("seed", range(3))
def test_killed_writers_leave_rows_and_files_together(stores: Stores, tmp_path: Path, seed: int) -> None:
    """What was acknowledged is there; what was half-way is gone, at the latest when somebody looks."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(running(WRITER, tmp_path / "data", name, 10_000)) for name in ("amy", "bob")
        ]
        for writer in writers:
            time.sleep(chance.uniform(0.02, 0.3))
            writer.kill()
        told = set().union(*(acknowledged(writer) for writer in writers))
    stores.artifact.recover()
    assert rows_and_files_agree(stores, engines.files(tmp_path / "data")) >= told
    assert stores.database.check() == []
    assert (
        stores.artifact.add_revision(1, b"next", "a.bin").revision_num == stores.artifact.history(1).total - 1
    )


@pytest.mark.engine("sqlite")
def test_cleaning_up_waits_for_who_is_writing(stores: Stores, tmp_path: Path) -> None:
    """Files whose rows are not committed yet look like leftovers; they are judged when the writer is done."""
    other = engines.stores(tmp_path / "data", LARGEST)
    folder = engines.files(tmp_path / "data")
    files = RevisionFiles(folder)
    with stores.database.write() as tx:
        tx.run("UPDATE artifact SET revision_count = 2")
        tx.run(
            "INSERT INTO revision (artifact_id, revision_num, created_at, filename, size, digest, purpose)"
            " VALUES (1, 1, '', 'b.bin', 1, :digest, '')",
            digest=blake2b(b"1", digest_size=16).hexdigest(),
        )
        files.begin(1, 1)
        files.put(1, 1, "b.bin", b"1", b"")
        cleaning = threading.Thread(target=other.artifact.recover)
        cleaning.start()
        cleaning.join(0.2)
        assert cleaning.is_alive()
    cleaning.join()
    other.close()
    assert rows_and_files_agree(stores, folder) == {(1, 0), (1, 1)}
    assert list((folder / ".writing").iterdir()) == []


def test_contents_made_here_are_capped_too(tmp_path: Path) -> None:
    """The limit holds for whoever calls the store, not only for what arrives in base64."""
    stores = engines.stores(tmp_path / "data", 3)
    stores.artifact.create("shared", "data", b"123", "a.bin")
    with pytest.raises(TooLargeError):
        stores.artifact.add_revision(1, b"1234", "a.bin")
    assert stores.artifact.history(1).total == 1
    stores.close()


def leave(folder: Path, *names: str) -> None:
    """Make files as a write that was killed leaves them."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")


@pytest.mark.engine("sqlite")
@pytest.mark.parametrize("how", ["recover", "first look", "write"])
def test_leftovers_are_removed(stores: Stores, tmp_path: Path, how: str) -> None:
    """Of unfinished writes everything goes; what rows claim, and what no note names, stays."""
    folder = engines.files(tmp_path / "data")
    before = files_below(folder)
    leave(folder, ".writing/1-0", ".writing/1-1", ".writing/2-0", ".writing/3-0")
    leave(folder, "1/revision-1-b.bin", "1/.revision-1.meta.md.tmp", "2/.revision-0-a.bin.tmp")
    leave(folder, "1/revision-10-c.bin", "1/mine.txt")
    reopened = engines.stores(tmp_path / "data", LARGEST)
    if how == "recover":
        reopened.artifact.recover()
    elif how == "first look":
        assert reopened.artifact.list().total == 1
    else:
        reopened.artifact.create("second", "data", b"2", "a.bin")
        before |= {"2", "2/revision-0-a.bin", "2/revision-0.meta.md"}
    reopened.close()
    assert files_below(folder) == before | {"1/revision-10-c.bin", "1/mine.txt"}


@pytest.mark.engine("sqlite")
def test_notes_of_other_names_lead_nowhere(stores: Stores, tmp_path: Path) -> None:
    """Only numbers name what is removed."""
    folder = engines.files(tmp_path / "data")
    notes = ("1", "1-x", "01-1", "1-01", "1-1.bak", "-1-1", "1-1\n", "..-1", "9" * 20 + "-0")
    leave(folder, *(f".writing/{note}" for note in notes), "1/revision-1-b.bin")
    before = files_below(folder)
    stores.artifact.recover()
    assert files_below(folder) == before
