"""A remembered folder equals a new reading of it, after any change by other programs."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from npl_index.errors import NPLError
from npl_index.library.catalog import Catalog, Root
from npl_index.library.documents import DocumentRef, Library, Limits
from npl_index.library.fingerprints import FINE_GRANULARITY_NS
from npl_index.library.listing import Listed
from tests.conftest import cases

WRITER = """
import json, os, shutil, sys
kept = []
def append(path): open(path, "a").write("more")
def unclosed(path):
    file = os.open(path, os.O_WRONLY | os.O_APPEND); os.write(file, b"unclosed"); kept.append(file)
    if len(kept) > 30: os.close(kept.pop(0))
def overwrite(path):
    file = os.open(path, os.O_WRONLY); os.write(file, b"#"); os.close(file)
def replace(path):
    open(path + ".tmp", "w").write("other"); os.replace(path + ".tmp", path)
def back(path):
    then = os.stat(path); append(path); os.truncate(path, then.st_size)
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
def create(path): os.makedirs(os.path.dirname(path), exist_ok=True); open(path, "w").write("# New")
def cut(path): os.truncate(path, 0)
def mode(path, mode): os.chmod(path, mode)
def again(path, other): os.rename(path, path + "-old"); shutil.copytree(other, path)
work = {**globals(), "move": os.rename, "remove": os.unlink, "folder": os.makedirs, "link": os.symlink,
        "tree": shutil.copytree, "gone": shutil.rmtree, "second": os.link}
for line in sys.stdin:
    name, *arguments = json.loads(line)
    try: work[name](*arguments); print("done", flush=True)
    except OSError as error: print(error, flush=True)
"""

Do = Callable[..., str]


@pytest.fixture(scope="module")
def do() -> Iterator[Do]:
    """Let another process act, and wait for its end."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None

        def run(name: str, *arguments: Any) -> str:
            line = [name, *(value if isinstance(value, int) else str(value) for value in arguments)]
            writer.stdin.write(json.dumps(line) + "\n")  # type: ignore[union-attr]
            writer.stdin.flush()  # type: ignore[union-attr]
            return writer.stdout.readline().strip()  # type: ignore[union-attr]

        yield run
        writer.stdin.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Some folders with files, and a neighbour."""
    root = tmp_path / "top" / "docs"
    for folder in ("", "a", "a/b", "c", "c/d/e"):
        for number in range(3):
            put(root / folder / f"page{number}.md")
    put(tmp_path / "top" / "outside" / "inner" / "other.md")
    return root


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {path.name}\n", encoding="utf-8")


def settle() -> None:
    time.sleep(1.1 * FINE_GRANULARITY_NS / 1e9)


def library(root: Path) -> Library:
    return Library([Root(str(root), "docs")], Catalog(()))


def told(files: Library, name: str = ".") -> object:
    """Return the files of a folder with their states, or the reason for an error."""
    try:
        listed = files.find(DocumentRef(name))
    except NPLError as error:
        return error.message
    states = listed.states if isinstance(listed, Listed) else tuple(map(files.stat, listed))
    return [(file.path, state) for file, state in zip(listed, states, strict=True)]


CHANGES = cases("npl_index/library/listing")


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", [".", "a", "**/page*.md"])
def test_a_change_is_seen_at_once(changes: list[tuple[Any, ...]], name: str, root: Path, do: Do) -> None:
    lasting = library(root)
    if name == ".":
        settle()  # folders that are not read again
    assert told(lasting, name) == told(library(root), name)
    for act, *arguments in changes:
        paths = [
            lasting if isinstance(lasting, int) else os.path.normpath(root / lasting) for lasting in arguments
        ]
        if act == "link":
            paths[0] = arguments[0]
        assert do(act, *paths) == "done"
        assert told(lasting, name) == told(library(root), name)
    for path in (root / "a", root / "a" / "page0.md"):
        if path.exists():
            path.chmod(0o700)
    assert told(lasting, name) == told(library(root), name)


@pytest.mark.thorough
def test_thousands_of_changes_are_seen_at_once(root: Path, do: Do) -> None:
    lasting, chance = library(root), Random(1)
    folders = [root / name for name in ("", "a", "a/b", "c", "c/d/e", "new", "new/er")]
    acts = ("append", "unclosed", "overwrite", "replace", "back", "cut", "create", "remove", "move", "move")
    for trial in range(1000):
        path = chance.choice(folders) / f"page{chance.randrange(5)}.md"
        act = chance.choice(acts)
        other = [chance.choice(folders) / f"page{chance.randrange(5)}.md"] if act == "move" else []
        if not trial % 50:
            act, path, other = "move", *chance.sample(folders[1:], 1), [root / f"moved{trial}"]
        do(act, path, *other)
        assert told(lasting) == told(library(root)), (act, path, other)


def test_the_same_object_says_that_nothing_changed(root: Path) -> None:
    lasting = library(root)
    assert lasting.find(DocumentRef(".")) is lasting.find(DocumentRef("."))
    (root / "notes.txt").write_text("not served")
    (root / ".hidden").mkdir()
    put(root / ".hidden" / "page.md")
    assert lasting.find(DocumentRef(".")) is lasting.find(DocumentRef("."))


def test_several_folders_together(root: Path) -> None:
    roots = [Root(str(root / "a"), "a"), Root(str(root / "c"), "c")]
    lasting = Library(roots, Catalog(()), searched=roots)
    before = lasting.find(DocumentRef())
    assert isinstance(before, Listed)
    assert lasting.find(DocumentRef()) is before
    (root / "c" / "page0.md").write_text("# Other\n")
    after = lasting.find(DocumentRef())
    assert isinstance(after, Listed)
    assert after == before == Library(roots, Catalog(()), searched=roots).find(DocumentRef())
    assert after.states != before.states
    assert list(after.states) == [file.stat() for file in after]


@pytest.mark.parametrize("names", [("c", "a"), ("a", "c"), (".", "a/b"), ("a/b", ".")])
def test_files_come_in_the_order_of_their_roots(names: Sequence[str], root: Path) -> None:
    """Of equal texts, an answer has that of the first root."""
    roots = [Root(str(root / name), name) for name in names]
    places = [
        names.index(file.label) for file in Library(roots, Catalog(()), searched=roots).find(DocumentRef())
    ]
    assert places == sorted(places)
    assert set(places) == ({0} if names[0] == "." else {0, 1})


def test_a_root_in_another_has_its_own_levels(root: Path) -> None:
    put(root / "a" / "b" / "deep" / "page.md")
    roots = [Root(str(root), "docs"), Root(str(root / "a" / "b"), "b")]
    shallow = Library(roots, Catalog(()), Limits(max_depth=2), searched=roots)
    assert "a/b/deep/page.md" in [file.path for file in shallow.find(DocumentRef())]


def test_unchanged_files_keep_their_objects(root: Path) -> None:
    lasting = library(root)
    before = lasting.find(DocumentRef("."))
    (root / "a" / "page1.md").write_text("# Other\n", encoding="utf-8")
    put(root / "a" / "page1b.md")
    after = {file.path: file for file in lasting.find(DocumentRef("."))}
    assert all(after[file.path] is file for file in before)
    assert len(after) == len(before) + 1


def test_a_link_into_another_folder_leads_where_it_points_now(root: Path) -> None:
    lasting = library(root)
    (root / "short").symlink_to("a/b")
    assert told(lasting) == told(library(root))
    (root / "short").unlink()
    (root / "short").symlink_to("c/d")
    assert told(lasting) == told(library(root))


def test_threads_see_what_was_written_before_they_ask(root: Path) -> None:
    lasting, wrong = library(root), []

    def ask(number: int) -> None:
        path = root / ("a", "c", "a/b", "c/d/e")[number] / f"own{number}.md"
        for size in range(150):
            path.write_text("x" * (size % 7 + 1))
            if size % 10 == 0:
                path.unlink()
            seen = {file.absolute: state for file, state in states(lasting)}
            state = seen.get(str(path))
            if (state is None) is not (size % 10 == 0) or (state and state.size != size % 7 + 1):
                wrong.append((number, size))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def states(files: Library) -> list[tuple[Any, Any]]:
    listed = files.find(DocumentRef("."))
    return list(
        zip(listed, listed.states if isinstance(listed, Listed) else map(files.stat, listed), strict=True)
    )
