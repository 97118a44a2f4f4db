"""Stores are copied whole from one database to another, between engines and back, repeatedly."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.app.maintenance import check
from npl_mcp.stores.artifact.artifacts import content
from npl_mcp.stores.base.errors import AlreadyExistsError, StoreError
from npl_mcp.stores.copying import copy_stores
from npl_mcp.stores.data_folder import Stores
from tests import engines
from tests.npl_mcp.stores.writer import Writer, caller, settings_in
from tests.programs import Run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    app = App(settings_in(tmp_path))
    writer = Writer(caller(app), "w")
    writer.first()
    for _ in range(40):
        writer.next()
    app.close()
    return tmp_path


def rows(folder: Path) -> dict[str, list[Any]]:
    names = set(engines.tables(folder)) - {"alembic_version"}
    return {name: sorted(engines.query(folder, f"SELECT * FROM {name}"), key=repr) for name in names}


def test_everything_is_copied_and_goes_on(place: Path) -> None:
    """Rows, contents and descriptions are equal; ids continue as in the source."""
    source, target = engines.stores(place / "data"), engines.stores(place / "other")
    copied, revisions = copy_stores(source, target)
    assert check(target).problems == ()
    before = rows(place / "data")
    assert rows(place / "other") == before
    assert copied == sum(map(len, before.values()))
    assert revisions == len(before["revision"])
    for (artifact,) in engines.query(place / "data", "SELECT id FROM artifact"):
        first, other = (stores.database.reading(content, artifact) for stores in (source, target))
        assert first == other
    ids = set()
    for stores in (source, target):
        with stores.database.write() as tx:
            ids.add(tx.insert("artifact", "id", name="next", type="t", created_at=tx.now)["id"])
    assert len(ids) == 1
    source.close()
    target.close()


def test_only_what_is_empty_is_copied_to(place: Path) -> None:
    """A target with rows is refused, so a copy cannot be made twice."""
    source, target = engines.stores(place / "data"), engines.stores(place / "other")
    copy_stores(source, target)
    before = rows(place / "other")
    with pytest.raises(AlreadyExistsError, match="has rows"):
        copy_stores(source, target)
    assert rows(place / "other") == before
    source.close()
    target.close()


@pytest.mark.engine("sqlite")
def test_a_copy_that_was_interrupted_can_be_begun_again(place: Path) -> None:
    """A refused row ends the copy; the target stays empty, and the next copy is complete."""
    source, target = engines.stores(place / "data"), engines.stores(place / "other")
    engines.execute(place / "data", "UPDATE event SET reply_to_id = 999 WHERE id = 1")
    with pytest.raises(StoreError, match="contradicts others"):
        copy_stores(source, target)
    assert [name for name, count in rows(place / "other").items() if count] == []
    engines.execute(place / "data", "UPDATE event SET reply_to_id = NULL WHERE id = 1")
    copy_stores(source, target)
    assert check(target).problems == ()
    source.close()
    target.close()


def test_a_copy_of_files_goes_to_a_server_and_back(place: Path, program: Run) -> None:
    """The command copies both ways, and the result equals the source."""
    data, back = place / "data", place / "back"
    steps = [str(data), *([engines.address(place / "server")] if engines.SERVER else []), str(back)]
    if engines.ENGINE == "postgres":  # then it begins there
        steps = [
            engines.address(data) or "",
            str(place / "files"),
            engines.address(place / "server") or "",
            str(back),
        ]
    for source, target in pairwise(steps):
        done = program("npl-mcp", "copy", source, target)
        assert (done.code, "copied and compared" in done.out) == (0, True), done.err
    stores = Stores(back)
    assert check(stores).problems == ()
    with stores.database.read() as tx:
        events = [tuple(row.values()) for row in tx.all("SELECT * FROM event ORDER BY id")]
    stores.close()
    assert events == sorted(engines.query(data, "SELECT * FROM event"))
