"""The index of a library is made once and shared: what others take over is exact, and is checked first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from npl_mcp.core import shared_segments
from npl_mcp.core.app import App
from npl_mcp.core.document_sets import SMALL
from npl_mcp.core.libraries import Libraries
from npl_mcp.core.segment_store import SegmentStore
from npl_mcp.stores.base.sqlite import driver
from npl_mcp.stores.library.indexes import LibraryIndexes
from npl_mcp.tools.npl import npl_load_tailored
from tests.npl_mcp.core.many import put, write

FILES = SMALL + 16


@pytest.fixture
def root(settings: Settings, tmp_path: Path) -> Path:
    """A folder that was pushed, and is large enough for its index to be kept."""
    folder = tmp_path / "many"
    write(folder, FILES)
    pushed(settings, folder)
    return folder


def pushed(settings: Settings, folder: Path) -> None:
    app = App(settings)
    Libraries(app.stores.library, settings.limits).push(folder, "many")
    app.close()


def ranked(app: App, file: str = "lib:many") -> list[Any]:
    found: list[Any] = []
    for question in ("care of the valve", "oil a spoon of number7", "pump sieve"):
        answer = npl_load_tailored(app, context=question, file=file, explain=True).value
        found += [(one.title, one.start_line, one.score) for one in answer.ranking or ()]
        found += [(one.title, one.relevance_score) for one in answer.sections]
    return found


def of_folder(settings: Settings, root: Path, file: str = ".") -> list[Any]:
    """Return what is ranked in a folder by somebody who remembers nothing."""
    app = App(replace(settings, roots=(root,), cache_mode="memory"))
    try:
        return ranked(app, file)
    finally:
        app.close()


@pytest.fixture
def replica(settings: Settings, tmp_path: Path) -> Iterator[Callable[[], App]]:
    """Start servers with a data folder each, as on machines of their own, that share the database."""
    made: list[App] = []

    def start() -> App:
        folder = tmp_path / f"replica{len(made)}"
        folder.mkdir()
        (folder / "npl.db").symlink_to(settings.data_folder / "npl.db")
        made.append(App(replace(settings, data_dir=folder)))
        return made[-1]

    yield start
    for app in made:
        app.close()


def test_who_comes_second_indexes_nothing(settings: Settings, root: Path, replica: Callable[[], App]) -> None:
    """And ranks as the folder does, bit for bit."""
    first = replica()
    expected = ranked(first)
    assert first.state.sets.built == FILES
    second = replica()
    assert ranked(second) == expected == of_folder(settings, root)
    assert second.state.sets.built == 0


def test_only_what_was_pushed_since_is_indexed(
    settings: Settings, root: Path, replica: Callable[[], App]
) -> None:
    """A few files of many; what is gone is gone."""
    ranked(replica())
    put(root / "part1" / "page001.md", "# Changed\n\nThe valve is a spoon now.\n")
    (root / "part2" / "page002.md").unlink()
    put(root / "new.md", "# New\n\nA sieve for oil.\n")
    pushed(settings, root)
    later = replica()
    assert ranked(later) == of_folder(settings, root)
    assert later.state.sets.built == 2


def test_a_part_and_an_older_revision_come_from_the_same_index(
    settings: Settings, tmp_path: Path, replica: Callable[[], App]
) -> None:
    """A folder, a pattern, a revision: each ranks as its files do."""
    root = tmp_path / "many"
    write(root / "all", FILES)
    write(root, 4)
    pushed(settings, root)
    before = of_folder(settings, root)
    ranked(replica())
    put(root / "all" / "part1" / "page001.md", "# Changed\n\nThe valve is a spoon now.\n")
    pushed(settings, root)
    after = of_folder(settings, root, "all")
    for file, expected, built in (
        ("lib:many/all", after, 1),
        ("lib:many/all/part[0234]/*.md", of_folder(settings, root, "all/part[0234]/*.md"), 0),
        ("lib:many@1", before, 0),
        ("lib:many@2/all", after, 1),
    ):
        app = replica()
        assert ranked(app, file) == expected, file
        assert app.state.sets.built == built, file


def statement(sql: str) -> Callable[[Settings], None]:
    def run(settings: Settings) -> None:
        # With another driver in the same process each would drop the locks of the other.
        with closing(driver().connect(settings.data_folder / "npl.db")) as connection:
            assert connection.execute(sql).rowcount > 0
            connection.commit()

    return run


PART = "UPDATE library_index_part SET data = "
DAMAGES = {
    "another byte": statement(f"{PART} CAST(substr(data, 1, 999) || x'00' || substr(data, 1001) AS BLOB)"),
    "cut off": statement(f"{PART} CAST(substr(data, 1, 5000) AS BLOB)"),
    "empty": statement(f"{PART} x''"),
    "gone": statement("DELETE FROM library_index_part"),
    "no members": statement("UPDATE library_index SET members = x''"),
    "other members": statement("UPDATE library_index SET members = x'789cf3f47b0300022b0157'"),
    "another digest": statement("UPDATE library_index SET digest = 'f' || substr(digest, 1)"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_costs_time_only(
    settings: Settings, root: Path, replica: Callable[[], App], damage: str
) -> None:
    """The library is indexed again, and the next one is served from that."""
    expected = ranked(replica())
    DAMAGES[damage](settings)
    app = replica()
    assert ranked(app) == expected
    assert app.state.sets.built == FILES
    again = replica()
    assert ranked(again) == expected
    assert again.state.sets.built == 0


def test_an_index_of_another_format_is_left_to_others(
    settings: Settings, root: Path, replica: Callable[[], App]
) -> None:
    """A server of another version has its own; the oldest of three goes."""
    ranked(replica())
    for number in ("1", "2"):
        statement(f"UPDATE library_index SET format = 'old {number}' WHERE format NOT LIKE 'old%'")(settings)
        app = replica()
        ranked(app)
        assert app.state.sets.built == FILES
    with closing(driver().connect(settings.data_folder / "npl.db")) as connection:
        formats = [row[0] for row in connection.execute("SELECT format FROM library_index ORDER BY id")]
        parts = connection.execute("SELECT count(DISTINCT index_id) FROM library_index_part").fetchone()[0]
    assert formats[0] == "old 2"
    assert (len(formats), parts) == (2, 2)


def test_merging_renews_what_is_shared(settings: Settings, root: Path, replica: Callable[[], App]) -> None:
    """What was pushed meanwhile is indexed by nobody any more."""
    app = replica()
    ranked(app)
    for number in range(0, 50, 5):
        put(root / "part0" / f"page{number:03}.md", f"# New {number}\n\nThe valve of number{number}.\n")
    pushed(settings, root)
    ranked(app)
    (name,) = SegmentStore(app.settings.data_folder, settings.index_bytes).names()
    app.state.sets.merge(name)
    with app.stores.database.read() as tx:
        renewed = tx.value("SELECT max(id) FROM library_index")
    later = replica()
    assert ranked(later) == of_folder(settings, root)
    assert later.state.sets.built == 0
    # Others that merge have nothing new to share.
    later.state.sets.merge(name)
    with app.stores.database.read() as tx:
        assert tx.value("SELECT max(id) FROM library_index") == renewed


def test_who_comes_while_it_is_made_waits(
    settings: Settings, root: Path, replica: Callable[[], App], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who is gone is waited for until their beat has stood still for a while."""
    monkeypatch.setattr(shared_segments, "PAUSE", 0.01)
    monkeypatch.setattr(shared_segments, "STILL_SECONDS", 0.5)
    app = replica()
    indexes = LibraryIndexes(app.stores.database, shared_segments.SEGMENT_FORMAT)
    assert indexes.claim("many", "somebody") is None
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(0.1):
            indexes.go_on("many", "somebody")

    beating = threading.Thread(target=beat)
    beating.start()
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ranked, app) for _ in range(2)]
        time.sleep(1.0)
        assert not any(one.done() for one in asked)
        assert app.state.sets.built == 0
        ended.set()
        beating.join()
        assert asked[0].result(30) == asked[1].result(30) == of_folder(settings, root)
    assert app.state.sets.built == FILES
    assert indexes.claimed("many") is None


def test_two_that_come_at_once_index_it_once(root: Path, replica: Callable[[], App]) -> None:
    """One makes it, the other takes it over."""
    apps = replica(), replica()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(ranked, apps)
    assert first == second
    assert sum(app.state.sets.built for app in apps) == FILES
