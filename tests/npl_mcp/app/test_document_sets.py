"""Sets of documents survive restarts, are shared by processes, and are never wrong."""

import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from weakref import ref

import pytest

from npl_index.errors import SectionNotFoundError, UnreadableDocumentError
from npl_index.index.database import IndexDatabase
from npl_index.index.driver import driver
from npl_index.index.schema import VERSION
from npl_index.index.upkeep import problems
from npl_index.library.documents import DocumentRef
from npl_index.selectors.filters import NO_TRAITS
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests import engines
from tests.conftest import cases
from tests.npl_mcp.app.many import assert_indexed, fresh, index_file, parsed, put, said, told, write
from tests.npl_mcp.opened_files import opened
from tests.tools import npl_load_tailored

FILES = 24


@pytest.fixture
def kept(settings: Settings, tmp_path: Path) -> Settings:
    """Settings with a folder that is many files."""
    root = tmp_path / "many"
    write(root, FILES)
    return replace(settings, roots=(root,))


def test_a_set_survives_a_restart(kept: Settings) -> None:
    assert said(kept) == fresh(kept)
    assert_indexed(kept)
    assert index_file(kept).stat().st_mode & 0o777 == 0o600


def test_unreadable_files_are_named_in_the_order_of_their_paths(kept: Settings) -> None:
    """The order does not tell which of them changed last."""
    root = kept.roots[0]
    for name in ("b.md", "a.md"):
        (root / name).write_bytes(b"\xff")
    with closing(App(kept)) as app:
        for changed in ("a.md", "b.md", "a.md"):
            (root / changed).write_bytes(b"text \xff")
            unreadable = npl_load_tailored(app, file=".", context="valve").value.unreadable
            assert [text.partition(":")[0] for text in unreadable] == ["a.md", "b.md"]


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
    """Only changed files are indexed; answers equal those of a new index."""
    with closing(App(kept)) as app:
        told(app)
        change(kept.roots[0])
        assert told(app) == fresh(kept)
    assert_indexed(kept)


def test_processes_share_what_one_of_them_indexed(kept: Settings) -> None:
    """An edit is indexed by one of them only; both give the same answers."""
    with closing(App(kept)) as first, closing(App(kept)) as other:
        told(first)
        assert parsed(other) == 0
        everything(kept.roots[0])
        assert told(first) == fresh(kept)
        assert parsed(other) == 0
        assert told(other) == fresh(kept)


HARMS: dict[str, Callable[[Path], object]] = {
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 16384),
    "empty": lambda path: path.write_bytes(b""),
    "gone": Path.unlink,
}


def changed(settings: Settings, statement: str) -> None:
    with closing(sqlite3.connect(index_file(settings))) as connection:
        connection.execute(statement)
        connection.commit()


ROWS = cases("npl_mcp/app/document_sets")["rows"]
"""Damage that SQLite does not detect."""


@pytest.mark.parametrize("harm", ROWS.values(), ids=ROWS)
def test_damaged_rows_are_seen_when_they_are_read(kept: Settings, harm: str) -> None:
    said(kept)
    changed(kept, harm)
    with closing(App(kept)) as app:
        assert told(app) == fresh(kept)
        assert app.state.sets.built >= FILES


STATEMENTS = cases("npl_mcp/app/document_sets")["statements"]
DAMAGES: dict[str, Callable[[Settings], None]] = {
    **{name: lambda settings, harm=harm: harm(index_file(settings)) for name, harm in HARMS.items()},
    **{name: partial(changed, statement=statement) for name, statement in STATEMENTS.items()},
}


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_costs_time_only(kept: Settings, damage: Callable[[Settings], None]) -> None:
    """Answers are right after any damage, and the next start uses the repaired files."""
    with closing(App(kept)) as app:
        told(app)
        edit(kept.roots[0])
        told(app)
    damage(kept)
    assert said(kept) == fresh(kept)
    assert_indexed(kept)


STOPPED = {
    "while it indexes": "import fcntl; fcntl.flock(os.open(path.parent, os.O_RDONLY), fcntl.LOCK_EX)",
    "while it writes": "c = sqlite3.connect(path, isolation_level=None); c.execute('BEGIN IMMEDIATE')",
}
STOP = "import os, signal, sqlite3, sys; from pathlib import Path; path = Path(sys.argv[1])\n{}\n"
STOP += "os.kill(os.getpid(), signal.SIGSTOP)"


@pytest.mark.thorough
@pytest.mark.parametrize("step", STOPPED.values(), ids=STOPPED)
@pytest.mark.parametrize("large", [False, True])
def test_a_stopped_process_stops_no_other(
    kept: Settings, step: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its locks remain until it ends; meanwhile others answer all questions, also about changed files."""
    monkeypatch.setattr("npl_index.index.database.MAX_BUSY_SECONDS", 0.2)
    monkeypatch.setattr("npl_mcp.app.document_sets.LOCK_SECONDS", 0.01)
    app = App(kept)
    told(app)
    if large:
        monkeypatch.setattr("npl_mcp.app.document_sets.BACKGROUND_BYTES", 1)
    command = [sys.executable, "-c", STOP.format(step), str(index_file(kept))]
    with subprocess.Popen(command) as process:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        everything(kept.roots[0])
        assert told(app) == fresh(kept)
        process.kill()
    app.close()


IN_MEMORY = """
import sys, time
from dataclasses import replace
from functools import partial
from pathlib import Path
from npl_mcp.app.app import App
from tests.npl_mcp.app.many import settings_in, told
told(App(replace(settings_in(Path(sys.argv[1])), cache_mode="memory")))
print("ready", flush=True)
time.sleep(600)
"""


def test_an_index_in_memory_leaves_no_file(tmp_path: Path) -> None:
    write(tmp_path / "many", FILES)
    before = {tmp_path / "work", *tmp_path.rglob("*")}
    command = [sys.executable, "-c", IN_MEMORY, str(tmp_path)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
    assert {tmp_path / "work", *tmp_path.rglob("*")} == before


def test_headings_are_counted_together_as_one_by_one(kept: Settings) -> None:
    """Versioned parts of a document have no heading of their own."""
    part = "npl-instructions:\n  name: {}\n  version: 1.0\n---\n# {}\n\n## Use\n\nOil.\n\n* * *\n\n"
    put(kept.roots[0] / "parts.md", part.format("a", "A") + part.format("b", "B"))
    app = App(kept)
    collection = app.gather(DocumentRef(file=".")).collection
    counts = [summary.headings for summary in collection.summaries(NO_TRAITS, app.counter)]
    assert counts == [collection.headings(number) for number in range(FILES + 1)]
    assert 4 in counts
    app.close()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "harm", cases("npl_mcp/app/document_sets")["damage_that_sqlite_does_not_see_is_found_after_a_start"]
)
def test_damage_that_sqlite_does_not_see_is_found_after_a_start(kept: Settings, harm: str) -> None:
    expected = said(kept)
    with closing(driver().connect(str(index_file(kept)), isolation_level=None)) as connection:
        connection.executescript(harm)
    with closing(App(kept)) as app:
        app.warm_up()
        with closing(IndexDatabase(kept.data_folder)) as database:
            assert not problems(database)
        assert told(app) == expected
        app.warm_up()
        assert index_file(kept).exists()


def test_damage_is_found_although_a_question_added_documents(kept: Settings) -> None:
    said(kept)
    with closing(driver().connect(str(index_file(kept)), isolation_level=None)) as connection:
        connection.execute("INSERT INTO word (rowid, name, body) VALUES (987654321, 'valv', 'valv')")
    with closing(App(kept)) as app:
        add(kept.roots[0])
        told(app)
        app.warm_up()
        assert not index_file(kept).exists()
        assert told(app) == fresh(kept)


def test_other_programs_read_what_is_indexed_of_a_file(kept: Settings) -> None:
    """A view shows each file with its sections and their terms, also below a home folder."""
    put(kept.home / "npl" / "npl.md", "# NPL@1.0\n\nA valve.\n")
    with closing(App(kept)) as app:
        told(app)
        npl_load_tailored(app, resource_type="component", item="*", context="valve")
    with closing(driver().connect(str(index_file(kept)))) as connection:
        rows = connection.execute(
            "SELECT file_path, mtime, index_json, keywords_json FROM file_index ORDER BY file_path"
        ).fetchall()
    assert len(rows) >= FILES
    for path, mtime, _, _ in rows:
        assert Path(path).stat().st_mtime_ns == mtime
    path, _, index, keywords = next(row for row in rows if row[0].endswith("part1/page001.md"))
    assert json.loads(index)[1] == {"section": 1, "level": 1, "name": "Page 1"}
    assert "care page 1" in json.loads(keywords)
    assert "" not in json.loads(keywords)


def test_what_an_edit_replaced_is_freed_at_once(kept: Settings) -> None:
    """No cycle keeps a replaced set until the next garbage collection."""
    app = App(kept)
    before = ref(app.gather(DocumentRef(file=".")).collection)
    told(app)
    gc.collect()
    gc.disable()
    try:
        edit(kept.roots[0])
        app.gather(DocumentRef(file="."))
        assert before() is None
    finally:
        gc.enable()
    app.close()


def test_files_of_other_programs_and_versions_are_left_alone(kept: Settings) -> None:
    """The index of a later version stays, and so does a file of the same name that is not an index."""
    newer = kept.data_folder / f"index-{VERSION + 1}.db"
    put(newer, "of a later version")
    put(index_file(kept), "GIF89a" * 100)
    before = {path: path.read_bytes() for path in (newer, index_file(kept))}
    assert said(kept) == fresh(kept)
    assert {path: path.read_bytes() for path in before} == before


def test_a_data_folder_that_cannot_be_written(kept: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Sets live in memory, and one warning says so."""
    blocked = kept.data_folder
    engines.unused(blocked)
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text("a file is in the way")
    with closing(App(kept)) as app:
        assert told(app) == fresh(kept)
        edit(kept.roots[0])
        assert told(app) == fresh(kept)
    assert [record.message for record in caplog.records if "memory only" in record.message] != []
    assert len(caplog.records) == 1


def test_the_bound_on_disk_holds(kept: Settings, tmp_path: Path) -> None:
    write(tmp_path / "other", 3)
    first = replace(kept, index_bytes=1)
    second = replace(first, roots=(tmp_path / "other",))
    for settings in (first, second, first):
        with closing(App(settings)) as app:
            assert parsed(app) > 0
            assert told(app) == fresh(settings)
    with closing(sqlite3.connect(index_file(kept))) as connection:
        assert connection.execute("SELECT path FROM root").fetchall() == [(str(kept.roots[0]),)]
        assert connection.execute("SELECT count(*) FROM document").fetchone() == (FILES,)


def test_a_further_root_indexes_its_own_files_only(kept: Settings, tmp_path: Path) -> None:
    """Roots share the index without changing each other's answers."""
    write(tmp_path / "other", 3)
    first = said(kept)
    with closing(App(replace(kept, roots=(*kept.roots, tmp_path / "other")))) as app:
        assert parsed(app) == 0
        npl_load_tailored(app, context="valve")
        assert app.state.sets.built == 3
    with closing(App(kept)) as app:
        assert (parsed(app), told(app)) == (0, first)


def test_a_part_of_a_folder_needs_no_index_of_its_own(kept: Settings) -> None:
    """Folders and patterns below a root use its documents."""
    with closing(App(kept)) as app:
        told(app)
        built = app.state.sets.built
        for file in ("part1", "part*/*.md", "part1/page001.md, part2/page002.md"):
            assert npl_load_tailored(app, context="care of the valve", file=file).value.sections
        assert app.state.sets.built == built


def test_a_file_that_changes_while_an_answer_is_made(kept: Settings) -> None:
    """A set from before the change says that the file has changed since."""
    said(kept)
    with closing(App(kept)) as app:  # has none of the texts
        documents = app.gather(DocumentRef(file="."))
        place = documents.files.index("part1/page001.md")
        edit(kept.roots[0])
        with pytest.raises(UnreadableDocumentError, match=r"page001.md' changed"):
            _ = documents.collection.documents[place].tree.source
        assert told(app) == fresh(kept)


@pytest.mark.thorough
def test_a_set_that_is_forgotten_while_it_is_updated(kept: Settings) -> None:
    """Answers from an earlier state meet other contents, and make the server compare all files again."""
    said(kept)
    app = App(kept)  # has none of the texts
    before = app.gather(DocumentRef(file="."))
    place = before.files.index("part1/page001.md")
    edit(kept.roots[0])
    app.gather(DocumentRef(file="."))
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            with pytest.raises(UnreadableDocumentError):
                _ = before.collection.documents[place]

    readers = [threading.Thread(target=look) for _ in range(2)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for reader in readers:
            reader.start()
        for number in range(100):
            put(kept.roots[0] / "part0" / "page000.md", f"# Page {number}\n")
            assert app.gather(DocumentRef(file=".")).locations == before.locations
    finally:
        sys.setswitchinterval(usual)
        done.set()
        for reader in readers:
            reader.join()
        app.close()


def test_what_sections_are_called_needs_no_file(kept: Settings) -> None:
    """The index has selectors, names and sizes; a file is read for its text only."""
    said(kept)
    with closing(App(kept)) as app, opened() as names:
        with pytest.raises(SectionNotFoundError):
            npl_load_tailored(app, selectors=["## * [has-code]"], file=".")
        with pytest.raises(SectionNotFoundError, match="did you mean"):
            npl_load_tailored(app, selectors=["## Care of pages"], file=".")
        assert names == []
        answer = npl_load_tailored(app, context="number7", file=".", token_budget=300)
        assert set(names) == {Path(section.file or "").name for section in answer.value.sections}
