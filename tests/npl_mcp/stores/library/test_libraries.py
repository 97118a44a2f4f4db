"""Revisions of libraries: each is what was pushed, whatever came before and after."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from npl_index.errors import InvalidRequestError, UnreadableDocumentError
from npl_mcp.stores.base.database import digest_of
from npl_mcp.stores.base.errors import ConflictError
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.library.libraries import LibraryFile, LibraryStore

Texts = dict[str, bytes]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    stores = Stores(tmp_path / "data")
    yield stores
    stores.close()


@pytest.fixture
def library(stores: Stores) -> LibraryStore:
    return stores.library


def push(library: LibraryStore, texts: Texts, name: str = "docs") -> int:
    files = {path: LibraryFile(digest_of(text), len(text)) for path, text in texts.items()}
    return library.push(name, files, lambda path: texts[path]).number


def held(library: LibraryStore, number: int) -> Texts:
    files = library.files(library.revision("docs", number))
    assert list(files) == sorted(files)
    return {path: library.content(path, file.digest) for path, file in files.items()}


@pytest.mark.parametrize("seed", range(3))
def test_every_revision_stays_what_it_was(library: LibraryStore, seed: int) -> None:
    """Files come, go, change, come back and change places; any two revisions differ as they should."""
    chance = random.Random(seed)
    paths = [f"{folder}{name}.md" for folder in ("", "a/", "a/b/", "\u5806/") for name in "xyz"]
    pushed: list[Texts] = []
    texts: Texts = {}
    while len(pushed) < 12:
        texts = dict(texts)
        for path in chance.sample(paths, 3):
            if path in texts and chance.random() < 0.4 and len(texts) > 1:
                del texts[path]
            else:
                texts[path] = b"# Text %d\n" % chance.randrange(4)
        number = push(library, texts)
        if not pushed or texts != pushed[-1]:
            pushed.append(texts)
        assert number == len(pushed)
    for number, texts in enumerate(pushed, 1):
        assert held(library, number) == texts
        revision = library.revision("docs", number)
        assert (revision.files, revision.bytes) == (len(texts), sum(map(len, texts.values())))
    for before, after in combinations(range(1, len(pushed) + 1), 2):
        since = library.since(library.revision("docs", before), library.revision("docs", after))
        assert since is not None
        old, new = pushed[before - 1], pushed[after - 1]
        # A file that went and came back as it was may be among what is new.
        same = {path for path in since[0] if path in old and digest_of(old[path]) == since[0][path].digest}
        assert set(since[0]) - same == {path for path in new if new[path] != old.get(path)}
        assert set(since[1]) == set(old) - set(new)
        assert {path: file.digest for path, file in since[0].items()} == {
            path: digest_of(new[path]) for path in since[0]
        }
    assert list(library.check()) == []


def test_a_content_is_kept_once(stores: Stores) -> None:
    """However many files of however many libraries have it."""
    push(stores.library, {"a.md": b"same", "b.md": b"same", "c.md": b""})
    push(stores.library, {"d.md": b"same"}, "other")
    push(stores.library, {"a.md": b"other", "b.md": b"same"})
    with stores.database.read() as tx:
        assert tx.value("SELECT count(*) FROM library_content") == 3
        assert tx.value("SELECT count(*) FROM library_file WHERE library_id = 1") == 4


def test_a_file_that_changes_meanwhile_stops_the_push(library: LibraryStore) -> None:
    """Nothing of it is kept."""
    push(library, {"a.md": b"one"})
    files = {path: LibraryFile(digest_of(b"two"), 3) for path in ("a.md", "b.md")}
    with pytest.raises(ConflictError, match=r"'a\.md' changed"):
        library.push("docs", files, lambda _: b"three")
    assert library.revision("docs").number == 1
    assert held(library, 1) == {"a.md": b"one"}


@pytest.mark.parametrize("path", ["", "a.txt", "/a.md", "../a.md", "a//b.md", "a/./b.md", "a\n.md", ".md/"])
def test_a_path_lies_below_the_library(library: LibraryStore, path: str) -> None:
    """And is that of Markdown."""
    with pytest.raises(InvalidRequestError):
        push(library, {path: b""})
    assert library.list() == []


def test_another_history_is_not_taken_for_this_one(stores: Stores, tmp_path: Path) -> None:
    """A backup that was put back has the same numbers and other files."""
    other = Stores(tmp_path / "other")
    for number in range(1, 4):
        push(stores.library, {"a.md": b"%d" % number})
        push(other.library, {"a.md": b"other %d" % number})
    mine, theirs = (one.library.revision("docs", 1) for one in (stores, other))
    assert stores.library.since(mine, stores.library.revision("docs")) is not None
    assert stores.library.since(theirs, stores.library.revision("docs")) is None
    other.close()


def test_what_is_not_there_is_damaged(library: LibraryStore) -> None:
    """A content that nobody pushed."""
    push(library, {"a.md": b"one"})
    with pytest.raises(UnreadableDocumentError):
        library.content("a.md", digest_of(b"two"))
