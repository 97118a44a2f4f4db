"""Promises of sets of documents: kept across starts, shared by processes, never wrong."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npl_index.errors import SectionNotFoundError, UnreadableDocumentError
from npl_index.library.documents import DocumentRef
from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.core.building import SMALL
from npl_mcp.core.segment_store import SegmentStore
from npl_mcp.core.updating import LARGE, MOST_PARTS, TOO_MANY
from npl_mcp.tools.npl import npl_load_tailored
from tests import engines
from tests.npl_mcp.core.many import first_segment, fresh, index_folder, parsed, put, told, write
from tests.npl_mcp.opened_files import opened


@pytest.fixture
def kept(settings: Settings, tmp_path: Path) -> Settings:
    """Settings with a folder that is large enough to be kept."""
    root = tmp_path / "many"
    write(root, SMALL + 16)
    return replace(settings, roots=(root,))


def test_a_set_survives_a_restart(kept: Settings) -> None:
    """The next start indexes nothing, and says the same."""
    app = App(kept)
    first = told(app)
    app.close()
    assert first == fresh(kept)
    again = App(kept)
    assert parsed(again) == 0
    assert told(again) == first
    again.close()
    assert {path.stat().st_mode & 0o777 for path in index_folder(kept).iterdir()} == {0o600}


def edit(root: Path) -> None:
    put(root / "part1" / "page001.md", "# Changed\n\nThe valve is a spoon now.\n", 50)


def remove(root: Path) -> None:
    (root / "part2" / "page002.md").unlink()


def rename(root: Path) -> None:
    (root / "part3").rename(root / "parts")


def add(root: Path) -> None:
    put(root / "new.md", "# New\n\nA sieve for oil.\n")


def everything(root: Path) -> None:
    for change in (edit, remove, rename, add):
        change(root)


CHANGES = [edit, remove, rename, add, everything]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_changed_is_seen_by_the_next_call_and_the_next_start(
    kept: Settings, change: Callable[[Path], None]
) -> None:
    """Only what changed is indexed, and answers are those of a folder that was read anew."""
    app = App(kept)
    told(app)
    change(kept.roots[0])
    assert told(app) == fresh(kept)
    app.close()
    again = App(kept)
    assert parsed(again) == 0
    assert told(again) == fresh(kept)
    again.close()


def test_processes_share_what_one_of_them_indexed(kept: Settings) -> None:
    """An edit that one has indexed is not indexed by the other; both say the same."""
    one, other = App(kept), App(kept)
    told(one)
    assert parsed(other) == 0
    everything(kept.roots[0])
    assert told(one) == fresh(kept)
    assert parsed(other) == 0
    assert told(other) == fresh(kept)
    one.close()
    other.close()


def cut_off(settings: Settings) -> None:
    path = first_segment(settings)
    os.truncate(path, path.stat().st_size // 2)


def flip(settings: Settings) -> None:
    path = first_segment(settings)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def empty(settings: Settings) -> None:
    first_segment(settings).write_bytes(b"")


def foreign(settings: Settings) -> None:
    first_segment(settings).write_bytes(b"GIF89a" * 1000)


def gone(settings: Settings) -> None:
    first_segment(settings).unlink()


def no_database(settings: Settings) -> None:
    (index_folder(settings) / "manifest.db").write_bytes(b"not a database, " * 500)


def torn_database(settings: Settings) -> None:
    path = index_folder(settings) / "manifest.db"
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)


def damaged_delta(settings: Settings) -> None:
    connection = sqlite3.connect(index_folder(settings) / "manifest.db")
    connection.execute("UPDATE delta SET data = x'00'")
    connection.commit()
    connection.close()


DAMAGES = [cut_off, flip, empty, foreign, gone, no_database, torn_database, damaged_delta]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_costs_time_only(kept: Settings, damage: Callable[[Settings], None]) -> None:
    """Whatever happened to the files, answers are right, and the next start is served from them again."""
    app = App(kept)
    told(app)
    edit(kept.roots[0])
    told(app)
    app.close()
    damage(kept)
    app = App(kept)
    assert told(app) == fresh(kept)
    app.close()
    again = App(kept)
    assert parsed(again) == 0
    again.close()


def test_a_newer_manifest_is_left_alone(kept: Settings) -> None:
    """What a later version wrote is not touched; sets live in memory."""
    app = App(kept)
    told(app)
    app.close()
    path = index_folder(kept) / "manifest.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    app = App(kept)
    assert told(app) == fresh(kept)
    app.close()
    assert path.read_bytes() == before


def test_a_data_folder_that_cannot_be_written(kept: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Sets live in memory, and one warning says so."""
    blocked = kept.data_folder
    engines.unused(blocked)
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("a file is in the way")
    app = App(kept)
    assert told(app) == fresh(kept)
    edit(kept.roots[0])
    assert told(app) == fresh(kept)
    app.close()
    assert [record.message for record in caplog.records if "memory only" in record.message] != []
    assert len(caplog.records) == 1


def test_the_bound_on_disk_holds(kept: Settings) -> None:
    """Sets that were not used for longest go; the answers stay."""
    tight = replace(kept, index_bytes=1)
    app = App(tight)
    assert told(app) == fresh(kept)
    assert npl_load_tailored(app, context="pump", file="part*/*.md").value.sections
    app.close()
    connection = sqlite3.connect(index_folder(kept) / "manifest.db")
    assert connection.execute("SELECT count(*) FROM space").fetchone() == (0,)
    connection.close()


WORKER = """
import sys
from dataclasses import replace
from pathlib import Path
from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.core.segment_store import SegmentStore
from npl_mcp.core.updating import LARGE, MOST_PARTS, TOO_MANY
from npl_mcp.tools.npl import npl_load_tailored
from tests.npl_mcp.core.many import first_segment, fresh, index_folder, parsed, put, told, write
root, data = map(Path, sys.argv[1:])
settings = Settings(cwd=root, home=root, system=root, roots=(root,), data_dir=data, warm_up=False)
print("ready", flush=True)
number = 0
while True:
    number += 1
    (root / "part0" / "page000.md").write_text(f"# Edit {number}\\n\\nvalve number{number}\\n")
    app = App(settings)
    npl_load_tailored(app, context="valve", file=".")
    app.close()
    if number % 3 == 0:
        app = App(settings)
        for name in SegmentStore(data, 1 << 30).names():
            app.state.sets.merge(name)
        app.close()
"""


@pytest.mark.parametrize("round_", range(6))
def test_a_process_that_is_killed_leaves_one_state_or_the_other(kept: Settings, round_: int) -> None:
    """Wherever it is hit, the next start reads a whole set, and says what a folder read anew says."""
    arguments = [sys.executable, "-c", WORKER, str(kept.roots[0]), str(kept.data_folder)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        time.sleep(0.15 + 0.11 * round_)
        worker.send_signal(signal.SIGKILL)
    put(kept.roots[0] / "part0" / "page000.md", "# Page 0\n\nThe end.\n")
    app = App(kept)
    assert told(app) == fresh(kept)
    app.close()


def test_merging_changes_no_answer(kept: Settings) -> None:
    """A base that is made again while servers use the old one; what they wrote meanwhile stays."""
    one, other = App(kept), App(kept)
    before = told(one)
    everything(kept.roots[0])
    after = told(one)
    assert after != before
    (name,) = SegmentStore(kept.data_folder, kept.index_bytes).names()
    other.state.sets.merge(name)
    assert told(one) == told(other) == after == fresh(kept)
    put(kept.roots[0] / "new.md", "# Newer\n\nA sieve for sieves.\n", 60)
    assert told(one) == told(other) == fresh(kept)
    one.close()
    other.close()
    again = App(kept)
    assert parsed(again) == 0
    again.close()


def test_a_file_that_changes_while_an_answer_is_made(kept: Settings) -> None:
    """A set that was looked at before the change says that the file is another one now."""
    app = App(kept)
    place = app.gather(DocumentRef(file=".")).files.index("part1/page001.md")
    app.close()
    app = App(kept)  # has none of the texts
    collection = app.gather(DocumentRef(file=".")).collection
    edit(kept.roots[0])
    with pytest.raises(UnreadableDocumentError, match=r"page001.md' changed"):
        _ = collection.documents[place].tree.source
    assert told(app) == fresh(kept)
    app.close()


def test_what_sections_are_called_needs_no_file(kept: Settings) -> None:
    """Selectors, names and sizes come from the index; a file is read when its text is shown."""
    app = App(kept)
    told(app)
    app.close()
    app = App(kept)
    with opened() as names:
        with pytest.raises(SectionNotFoundError):
            npl_load_tailored(app, selectors=["## * [has-code]"], file=".")
        with pytest.raises(SectionNotFoundError, match="did you mean"):
            npl_load_tailored(app, selectors=["## Care of pages"], file=".")
        assert names == []
        found = npl_load_tailored(app, context="number7", file=".", token_budget=300)
    assert set(names) == {Path(section.file or "").name for section in found.value.sections}
    app.close()


def parts(app: App) -> int:
    """Return of how many segments the set consists."""
    return len(app.gather(DocumentRef(file=".")).collection.postings.parts)


@pytest.mark.parametrize("mode", ["memory", "disk"])
def test_many_edits_of_a_large_set(kept: Settings, mode: str) -> None:
    """Segments are merged while calls go on, and no answer is another one for it."""
    root = kept.roots[0]
    for number in range(SMALL):
        sections = (f"## Part {at}\n\nOil number{at}.\n" for at in range(LARGE // SMALL))
        put(root / "large" / f"page{number:03}.md", "\n".join(sections))
    app = App(replace(kept, cache_mode=mode))
    told(app)
    most = 0
    for number in range(2 * MOST_PARTS):
        put(root / f"part{number % 5}" / f"page{number:03}.md", f"# Edit {number}\n\nA valve, a spoon.\n", 50)
        most = max(most, parts(app))
    (root / "part0" / "page020.md").unlink()
    assert told(app) == fresh(kept)
    assert MOST_PARTS < most <= TOO_MANY
    while parts(app) > MOST_PARTS:
        time.sleep(0.01)
    assert told(app) == fresh(kept)
    edit(root)
    assert told(app) == fresh(kept)
    app.close()
