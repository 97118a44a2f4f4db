"""Indexes of libraries in the database: whole or not there, and made by one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from npl_mcp.stores.base.database import digest_of
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.library.indexes import Claim, LibraryIndexes
from npl_mcp.stores.library.store import LibraryFile


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """Stores with a library."""
    stores = Stores(tmp_path / "data", 1)
    stores.library.push("docs", {"a.md": LibraryFile(digest_of(b""), 0)}, lambda _: b"")
    yield stores
    stores.close()


@pytest.fixture
def indexes(stores: Stores) -> LibraryIndexes:
    return LibraryIndexes(stores.database, "1")


def loaded(indexes: LibraryIndexes) -> tuple[bytes | None, bytes]:
    found: list[bytes] = []
    members = indexes.load("docs", found.extend)
    return members, b"".join(found)


def rows(stores: Stores) -> tuple[int, int]:
    with stores.database.read() as tx:
        counts = [
            tx.value(f"SELECT count(*) FROM {name}") for name in ("library_index", "library_index_part")
        ]
    return counts[0], counts[1]


def test_an_index_comes_back_as_it_was(indexes: LibraryIndexes, stores: Stores) -> None:
    """Piece by piece; a new one takes its place."""
    assert not indexes.is_there("docs")
    assert loaded(indexes) == (None, b"")
    indexes.put("docs", b"first", [b"one ", b"two ", b""])
    assert loaded(indexes) == (b"first", b"one two ")
    indexes.put("docs", b"second", [b"three"])
    assert loaded(indexes) == (b"second", b"three")
    assert indexes.members("docs") == b"second"
    assert rows(stores) == (1, 1)
    indexes.drop("docs")
    assert rows(stores) == (0, 0)
    indexes.put("nothing", b"", [b""])
    assert rows(stores) == (0, 0)


def test_what_was_not_finished_is_not_there(indexes: LibraryIndexes, stores: Stores) -> None:
    """The former index stays; what is left over goes with the next one."""

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError

    for former in (None, b"first"):
        if former is not None:
            indexes.put("docs", former, [b"one"])
        with pytest.raises(ZeroDivisionError):
            indexes.put("docs", b"second", broken())
        assert indexes.members("docs") == former
        assert indexes.is_there("docs") is (former is not None)
    indexes.put("docs", b"third", [b"three"])
    assert loaded(indexes) == (b"third", b"three")
    assert rows(stores) == (1, 1)


def test_each_format_has_its_own(indexes: LibraryIndexes, stores: Stores) -> None:
    """Two are kept, those that were written last."""
    for number in "1231":
        LibraryIndexes(stores.database, number).put("docs", number.encode(), [b"data"])
    assert indexes.members("docs") == b"1"
    assert LibraryIndexes(stores.database, "2").members("docs") is None
    assert LibraryIndexes(stores.database, "3").members("docs") == b"3"
    assert rows(stores) == (2, 2)


def test_one_makes_an_index_at_a_time(indexes: LibraryIndexes) -> None:
    """Who is seen to have stopped loses the claim; who goes on keeps it."""
    assert indexes.claim("docs", "amy") is None
    assert indexes.claim("docs", "amy") is None
    seen = indexes.claim("docs", "bob")
    assert seen == indexes.claimed("docs") == Claim("amy", 1)
    indexes.go_on("docs", "amy")
    assert indexes.claim("docs", "bob", seen) == Claim("amy", 2)
    assert indexes.claim("docs", "bob", Claim("amy", 2)) is None
    indexes.go_on("docs", "amy")
    indexes.release("docs", "amy")
    assert indexes.claimed("docs") == Claim("bob", 1)
    indexes.release("docs", "bob")
    assert indexes.claimed("docs") is None
    assert indexes.claim("nothing", "amy") is None
