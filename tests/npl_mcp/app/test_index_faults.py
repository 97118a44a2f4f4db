"""Real full disks, read-only folders, kills, other processes and odd files lead to no wrong answer."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from npl_index.errors import DocumentTooLargeError, UnreadableDocumentError
from npl_index.library.documents import DocumentRef
from npl_index.library.roots import Limits
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests.conftest import THOROUGH, calls
from tests.faults import largest_file, read_only, unprivileged
from tests.npl_mcp.app import kills
from tests.npl_mcp.app.many import (
    assert_indexed,
    fresh,
    index_file,
    parsed,
    put,
    said,
    settings_in,
    told,
    write,
)
from tests.tools import npl_load_tailored

pytestmark = pytest.mark.thorough

FILES = 34


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of many files outside of pytest's own, which every user of the machine can reach."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        write(path / "many", FILES)
        yield path


@pytest.fixture
def kept(place: Path) -> Settings:
    return settings_in(place)


def change(settings: Settings, text: str = "The valve is a spoon now.") -> None:
    put(settings.roots[0] / "part1" / "page001.md", f"# Changed\n\n{text}\n", 50)


def memory_only(caplog: pytest.LogCaptureFixture) -> int:
    """Return how often the log says that sets are kept in memory only; it says nothing else."""
    assert all("memory only" in record.message for record in caplog.records)
    return len(caplog.records)


def assert_is_kept(settings: Settings) -> None:
    """Check that a server answers rightly and leaves a set that the next need not index."""
    assert said(settings) == fresh(settings)
    assert_indexed(settings)


ROOM = {"not even a page": 1_000, "for no table": 4_200, "for the tables, not for their rows": 150_000}


@pytest.mark.parametrize("room", ROOM.values(), ids=ROOM)
def test_a_disk_that_is_full_when_a_set_is_published(
    kept: Settings, room: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers are right, one warning has the reason, and no file is left; with room the set is kept."""
    with largest_file(room), closing(App(kept)) as app:
        assert told(app) == fresh(kept)
        change(kept)
        assert parsed(app) == 1
        assert told(app) == fresh(kept)
    assert memory_only(caplog) == 1
    assert_is_kept(kept)


def test_a_disk_that_is_full_when_an_edit_is_written_down(
    kept: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """The server continues in memory; a start on the full disk uses the older index."""
    running = App(kept)
    told(running)
    with largest_file(1_000):
        for number in range(3):
            change(kept, f"A spoon for number{number}.")
            assert parsed(running) in ((1,) if number else (1, FILES, FILES + 1))
            assert told(running) == fresh(kept)
        assert memory_only(caplog) == 1
        started = App(kept)
        assert told(started) == fresh(kept)
    running.close()
    started.close()
    assert_is_kept(kept)


@pytest.mark.parametrize("used", [False, True])
def test_a_data_folder_that_is_read_only(
    kept: Settings, place: Path, caplog: pytest.LogCaptureFixture, *, used: bool
) -> None:
    """Sets live in memory, an edit costs one document, and one warning says so."""
    kept.data_folder.mkdir()
    if used:
        assert_is_kept(kept)
    with closing(App(kept)) as app, read_only(place, "data"):
        first = told(app)
        assert first == fresh(kept)
        change(kept)
        assert parsed(app) == 1
        assert told(app) == fresh(kept) != first
    assert memory_only(caplog) == 1
    assert_is_kept(kept)


EVERY = 1 if THOROUGH else 4
"""Steps between two kills; ``make durability`` takes each."""

KILLS = {"publish": {0, kills.FILES}, "append": {0, 1}}
"""Numbers of documents for the next start to index: those of the former state, or of the new one."""


@pytest.mark.parametrize("action", KILLS)
def test_a_kill_at_any_step_leaves_one_state_or_the_other(tmp_path: Path, action: str) -> None:
    """The next start answers like a new index, and the start after that indexes nothing."""
    command = [sys.executable, "-m", "tests.npl_mcp.app.kills", str(tmp_path), action, str(EVERY)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reports) > 5
    assert [report for report in reports if not report[2] or report[3]] == []
    assert {indexed for _, indexed, _, _ in reports} == KILLS[action]
    assert done.stderr == ""


WORKER = """
import sys
from pathlib import Path
from npl_mcp.app.app import App
from tests.npl_mcp.app import kills
from tests.npl_mcp.app.many import fresh, put, settings_in, told
place, number = Path(sys.argv[1]), sys.argv[2]
settings = settings_in(place)
app = App(settings)
for line in sys.stdin:
    if line == "edit\\n":
        text = f"# New {number}\\n\\nA valve for {number}.\\n"
        put(settings.roots[0] / f"part{number}" / "new.md", text, 40)
    print(repr(told(app)), flush=True)
app.close()
"""


def test_servers_that_index_and_edit_at_once(kept: Settings, place: Path) -> None:
    """All answers are right whichever server is first, and the next start indexes nothing."""
    command = [sys.executable, "-c", WORKER, str(place)]
    workers = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    for word in ("index", "edit", "look", "edit", "edit", "look"):
        for worker in workers:
            worker.stdin.write(f"{word}\n")
            worker.stdin.flush()
        lines = [worker.stdout.readline() for worker in workers if worker.stdout is not None]
        if word != "edit":  # else the others may have looked before or after
            assert lines == [repr(fresh(kept)) + "\n"] * len(workers)
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    assert_is_kept(kept)


def test_files_that_change_while_they_are_indexed(kept: Settings) -> None:
    """Calls during the changes are answered; the first one after them shows the final files."""
    root, stop = kept.roots[0], threading.Event()
    write(root, 2 * FILES)  # enough stay for the set to be kept

    def work() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            time.sleep(0.001)
            page = root / f"part{number % 5}" / f"page{number % FILES:03}.md"
            page.write_text(f"# Page {number}\n\nvalve {number}\n" * (number % 7), encoding="utf-8")
            if number % 3 == 0:
                page.unlink()
            if number % 11 == 0:
                (root / "part1").rename(root / "moved")
                (root / "moved").rename(root / "part1")

    writer = threading.Thread(target=work)
    writer.start()
    try:
        for _ in range(5):
            app = App(kept)
            for _ in range(5):
                with suppress(UnreadableDocumentError):  # each of four tries met another text
                    assert npl_load_tailored(app, context="care of the valve", file=".").value.content
            app.close()
    finally:
        stop.set()
        writer.join()
    assert_is_kept(kept)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_permissions_that_come_and_go(kept: Settings, place: Path, kind: str) -> None:
    """Unreadable files are left out, and come back when they are readable."""
    root = kept.roots[0]
    closed = root / "part1" / "page001.md" if kind == "file" else root / "part1"
    app = App(kept)
    whole = told(app)
    with unprivileged(place):
        for _ in range(2):
            mode = closed.stat().st_mode
            closed.chmod(0)
            files = app.gather(DocumentRef(file=".")).files
            assert "part1/page001.md" not in files
            assert ("part1/page006.md" in files) is (kind == "file")
            assert told(app) == fresh(kept) != whole
            closed.chmod(mode)
            assert told(app) == fresh(kept) == whole
    app.close()
    assert_is_kept(kept)


def swap(file: Path) -> None:
    other = file.with_suffix(".other")
    other.write_bytes(b"GIF89a" * 1_000)
    other.replace(file)


@pytest.mark.parametrize("harm", [Path.unlink, swap, lambda file: shutil.rmtree(file.parent)])
def test_an_index_that_goes_from_under_a_running_server(kept: Settings, harm: Callable[[Path], None]) -> None:
    """Answers stay right, edits are seen, and a newly started server agrees."""
    running = App(kept)
    first = told(running)
    harm(index_file(kept))
    assert told(running) == first
    change(kept)
    assert parsed(running) <= FILES
    assert told(running) == fresh(kept) != first
    put(kept.roots[0] / "new.md", "# New\n\nA sieve for oil.\n")
    assert told(running) == fresh(kept)
    running.close()
    assert said(kept) == fresh(kept)


def test_a_new_index_of_an_edited_file(place: Path) -> None:
    """Terms have other numbers in a new index: those of the former one are not used."""
    kept = replace(settings_in(place), roots=(place / "one",))
    page = kept.roots[0] / "page.md"
    with closing(App(kept)) as running:
        for age, more in ((90, ""), (80, "almond balm")):
            put(page, f"# Care\n\n## Valve\n\nvalve {more}\n\n## Spoon\n\nspoon\n", age)
            told(running)
        index_file(kept).unlink()
        put(page, page.read_text() + "\n", 70)
        assert told(running) == fresh(kept)


CLOCKS = """
import sys, time
offset, place = int(sys.argv[1]), sys.argv[2]
now, now_ns = time.time, time.time_ns
time.time, time.time_ns = lambda: now() + offset, lambda: now_ns() + offset * 10**9
from pathlib import Path
from npl_mcp.app.app import App
from tests.npl_mcp.app import kills
from tests.npl_mcp.app.many import fresh, parsed, put, settings_in, told
settings = settings_in(Path(place))
app = App(settings)
assert told(app) == fresh(settings)
page = settings.roots[0] / "part1" / "page001.md"
for number in range(3):
    page.write_text(f"# Changed {number}\\n\\nThe valve of {offset % 97} is a spoon.\\n")
    assert told(app) == fresh(settings)
app.close()
"""

DAY = 86_400


def test_a_clock_that_is_set_back_and_forward(kept: Settings, place: Path) -> None:
    """A server at another time sees every edit, and so does one from before."""
    running = App(kept)
    told(running)
    for offset in (-400 * DAY, DAY, -DAY):
        subprocess.run([sys.executable, "-c", CLOCKS, str(offset), str(place)], check=True)
        assert told(running) == fresh(kept)
    running.close()
    assert_is_kept(kept)


def test_many_empty_files(kept: Settings) -> None:
    """Each is a document without a word; more files than the limit are refused before any is read."""
    for number in range(1_500):
        put(kept.roots[0] / "none" / f"empty{number:04}.md", "")
    with closing(App(kept)) as app:
        assert npl_load_tailored(app, context="valve", file="none").value.content == ""
        assert parsed(app) == FILES
    assert_is_kept(kept)
    with closing(App(replace(kept, limits=Limits(max_files=FILES + 1_499)))) as limited:
        with pytest.raises(DocumentTooLargeError, match=f"more than {FILES + 1_499:,} files"):
            told(limited)
        assert limited.state.sets.built == 0


def test_more_bytes_than_a_set_may_have(kept: Settings) -> None:
    for number in range(129):
        with (kept.roots[0] / f"large{number}.md").open("wb") as file:
            file.truncate(16 << 20)
    with closing(App(kept)) as app:
        with pytest.raises(DocumentTooLargeError, match="more than 2 GiB of Markdown"):
            told(app)
        assert app.state.sets.built == 0


def test_one_file_of_the_largest_size_among_many(kept: Settings) -> None:
    """It is searched with the others; with one byte more it is left out and named."""
    settings = replace(kept, limits=Limits(max_bytes=200_000))
    page = kept.roots[0] / "long.md"
    begin = "# Long\n\n" + "".join(f"## Flange {number}\n\nA gasket.\n\n" for number in range(300))
    whole = begin + "lid " * ((200_000 - len(begin)) // 4)
    whole += "." * (200_000 - len(whole))
    put(page, whole)
    request = ("npl_load_tailored", {"context": "flange 77", "file": ".", "token_budget": 500})
    (answer,) = calls(settings, [request])
    assert "A gasket." in answer["data"]["content"]
    put(page, whole + ".", 50)
    (answer,) = calls(settings, [request])
    assert "A gasket." not in answer["data"]["content"]
    assert "long.md" in answer["data"]["unreadable"][0]
    assert_is_kept(settings)


def test_a_document_larger_than_the_memory_for_texts_is_read_once(kept: Settings) -> None:
    """An answer that asks for its parts one by one reads and parses it only once."""
    with closing(App(replace(kept, cache_bytes=1))) as app:
        documents = app.gather(DocumentRef(file=".")).collection.documents
        assert documents[5] is documents[5]
        assert documents[6] is not documents[5]
        assert told(app) == fresh(kept)


FORMER = ("index-cache.db", "index-7.db", "index-7.db-wal", "index/manifest.db", "index/a.segment")


def test_the_indices_of_earlier_versions_go(kept: Settings) -> None:
    """Foreign files in the data folder stay, also inside an old index, and so does an index in use."""
    others = ("worklog.txt", "index/notes.txt", "sub/index-7.db")
    for name in (*FORMER, *others):
        put(kept.data_folder / name, "earlier")
        os.utime(kept.data_folder / name, (0, 0))
    in_use = "index-8.db"
    put(kept.data_folder / in_use, "earlier")
    assert_is_kept(kept)
    left = {path.relative_to(kept.data_folder).as_posix() for path in kept.data_folder.rglob("*.*")}
    assert left == {index_file(kept).name, in_use, *others}
