"""Promises of the cache that survives restarts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npl_index.library.documents import DocumentRef
from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.core.index_cache import SqliteIndexCache
from npl_mcp.tools.npl import npl_load_tailored


@pytest.fixture
def kept(settings: Settings) -> Settings:
    return replace(settings, cache_mode="sqlite")


def database(settings: Settings) -> Path:
    assert settings.data_dir is not None
    return settings.data_dir / "index-cache.db"


def answer(settings: Settings) -> tuple[str, App]:
    """Ask a new process's worth of state, and give the content and that state."""
    app = App(settings)
    reply = npl_load_tailored(app, context="pruning fruit trees", file="guide.md")
    app.close()
    return reply.value.content, app


def test_an_index_survives_a_restart(kept: Settings) -> None:
    """The second start reads what the first one wrote, and answers the same."""
    first, built = answer(kept)
    second, restored = answer(kept)
    assert first == second
    assert (built.state.indices.statistics.built, built.state.indices.statistics.restored) == (1, 0)
    assert (restored.state.indices.statistics.built, restored.state.indices.statistics.restored) == (0, 1)
    assert (database(kept).stat().st_mode & 0o777) == 0o600


def test_the_columns_are_those_of_the_contract(kept: Settings) -> None:
    """file_path, mtime, index_json and keywords_json can be read by other programs."""
    answer(kept)
    with sqlite3.connect(database(kept)) as connection:
        row = connection.execute(
            "SELECT file_path, mtime, json_valid(index_json), json_valid(keywords_json) FROM file_index"
        ).fetchone()
    connection.close()
    path = kept.roots[0] / "guide.md"
    assert row == (str(path), path.stat().st_mtime_ns, 1, 1)


def test_an_edit_between_two_starts_is_seen(kept: Settings) -> None:
    """A row of other content is not used."""
    answer(kept)
    path = kept.roots[0] / "guide.md"
    path.write_text(path.read_text("utf-8").replace("late winter", "early spring"), encoding="utf-8")
    content, app = answer(kept)
    assert "early spring" in content
    assert app.state.indices.statistics.built == 1


DAMAGES: dict[str, str] = {
    "other text": "UPDATE file_index SET index_json = '{}'",
    "no JSON": "UPDATE file_index SET keywords_json = 'x', checksum = 'x'",
    "other format": "UPDATE file_index SET format = 'older'",
    "no table": "DROP TABLE file_index",
    "other schema": "PRAGMA user_version = 99",
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_row_is_rebuilt(kept: Settings, case: str) -> None:
    """Whatever happened to it, the answer is right and the next start is served from the cache again."""
    good, _ = answer(kept)
    connection = sqlite3.connect(database(kept))
    connection.execute(DAMAGES[case])
    connection.commit()
    connection.close()
    again, _ = answer(kept)
    assert again == good
    assert answer(kept)[1].state.indices.statistics.restored == 1


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribbled_over(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:4000] = b"\xa5" * 3900
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [cut_in_half, scribbled_over])
def test_a_damaged_file_is_never_fatal(kept: Settings, damage: Callable[[Path], None]) -> None:
    """A broken database costs a rebuild."""
    good, _ = answer(kept)
    damage(database(kept))
    for _ in range(3):
        again, app = answer(kept)
        assert again == good
    assert app.state.indices.statistics.restored == 1


def test_a_file_of_somebody_else_is_left_alone(kept: Settings) -> None:
    """Neither a text nor another program's database is touched; indices then live in memory only."""
    path = database(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("my notes", encoding="utf-8")
    answer(kept)
    assert path.read_text(encoding="utf-8") == "my notes"
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE accounts (name)")
    connection.commit()
    connection.close()
    answer(kept)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (0,)
    connection.close()


def test_least_recently_used_rows_go(kept: Settings) -> None:
    """The database does not grow without bound."""
    app = App(kept)
    cache = SqliteIndexCache(database(kept), max_rows=1)
    documents = [app.library.read(found) for found in app.library.find(DocumentRef(file="plants"))]
    for document in documents:
        cache.put(document, app.state.indices.get(document.fingerprint, lambda document=document: document))
    assert [cache.get(document) is not None for document in documents] == [False, True]
    cache.discard(documents[1].fingerprint.path)
    assert cache.get(documents[1]) is None
    cache.close()
    app.close()
