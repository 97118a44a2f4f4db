"""Rows and contents of artifacts stay together after failures and kills."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from npl_mcp.stores.artifact.artifacts import add_revision, content, create, history, listed
from npl_mcp.stores.artifact.descriptions import RevisionDraft
from npl_mcp.stores.base.paging import Slice
from npl_mcp.stores.data_folder import Stores
from tests import engines

WRITER = """
import sys
from pathlib import Path
from npl_mcp.stores.artifact.artifacts import add_revision, create
from npl_mcp.stores.artifact.descriptions import RevisionDraft
from tests import engines

stores = engines.stores(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    content = f"{sys.argv[2]} {number} ".encode() * 5_000
    draft = RevisionDraft(content, "a.bin", f"{sys.argv[2]} {number}")
    made = stores.database.writing(create, f"{sys.argv[2]}-{number}", "data", draft)
    print(made["artifact_id"], 0, flush=True)
    print(1, stores.database.writing(add_revision, 1, draft)["revision_num"], flush=True)
stores.close()
"""


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """Stores of a folder in which artifact 1 has revision 0."""
    stores = engines.stores(tmp_path / "data")
    stores.database.writing(create, "shared", "data", RevisionDraft(b"0", "a.bin"))
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


def readable(stores: Stores) -> set[tuple[int, int]]:
    """Read every content; give artifact and number of each revision."""
    with stores.database.read() as tx:
        rows = tx.all("SELECT artifact_id, revision_num FROM revision")
    for row in rows:
        stores.database.reading(content, row["artifact_id"], row["revision_num"])
    return {(row["artifact_id"], row["revision_num"]) for row in rows}


def revisions(stores: Stores) -> int:
    """Return how many revisions artifact 1 has."""
    with stores.database.read() as tx:
        return history(tx, 1, Slice(1, 0)).total


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
        row, data = stores.database.reading(content, 1, number)
        assert data == f"{row['created_by']} ".encode() * 5_000
    assert readable(stores) == set.union({(1, 0)}, *told)
    with stores.database.read() as tx:
        assert listed(tx, Slice(50, 0)).total == 16


@pytest.mark.thorough
@pytest.mark.engine("sqlite")
@pytest.mark.parametrize("seed", range(3))
def test_killed_writers_leave_rows_and_contents_together(stores: Stores, tmp_path: Path, seed: int) -> None:
    """Acknowledged revisions are there, half-written ones are not."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(running(WRITER, tmp_path / "data", name, 10_000)) for name in ("amy", "bob")
        ]
        for writer in writers:
            time.sleep(chance.uniform(0.02, 0.3))
            writer.kill()
        told = set().union(*(acknowledged(writer) for writer in writers))
    assert readable(stores) >= told
    assert stores.database.check() == []
    added = stores.database.writing(add_revision, 1, RevisionDraft(b"next", "a.bin"))
    assert added["revision_num"] == revisions(stores) - 1
