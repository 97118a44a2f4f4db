"""``.gitignore`` files and ``exclude`` leave files out of folders."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from npl_index.deadline import limited
from npl_index.errors import DocumentTimeoutError
from npl_index.library.catalog import Catalog, Root
from npl_index.library.documents import DocumentRef, Library
from npl_index.library.fingerprints import FINE_GRANULARITY_NS
from npl_index.library.ignoring import MAX_BYTES, MAX_RULES, Ignoring
from npl_index.library.walking import Walk
from tests.conftest import cases
from tests.folders import fill

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "cases" / "gitignore.json").read_text(encoding="utf-8")
)
"""Rules by folder, and the files that git ignores and serves with them."""


def put(root: Path, *names: str) -> None:
    fill(root, dict.fromkeys(names, "# T\n"))


def library(root: Path, *exclude: str, npl: str = "", gitignore: bool = True) -> Library:
    roots = [Root(str(root), "docs"), *([Root(str(root / npl), "npl", npl=True)] if npl else [])]
    return Library(roots, Catalog(()), searched=roots[:1], ignoring=Ignoring(gitignore, exclude))


def settle() -> None:
    """Wait until an unchanged folder is not read again."""
    time.sleep(1.1 * FINE_GRANULARITY_NS / 1e9)


def served(files: Library, file: str | None = None) -> list[str]:
    return sorted(file.path for file in files.find(DocumentRef(file)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case["rules"])[:60])
def test_the_same_files_are_ignored_as_by_git(case: dict[str, Any], tmp_path: Path) -> None:
    put(tmp_path, *case["served"], *case["ignored"])
    for folder, text in case["rules"].items():
        (tmp_path / folder / ".gitignore").write_bytes(text.encode())
    files = library(tmp_path)
    assert served(files) == sorted(case["served"])
    assert sum(files.left_out().values()) == len(case["ignored"])
    assert served(library(tmp_path, gitignore=False)) == sorted([*case["served"], *case["ignored"]])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    put(tmp_path, "a.md", "build/x.md", "build/in/y.md", "docs/b.md", "docs/local.md", ".npl/local.md")
    (tmp_path / ".gitignore").write_text("build/\nlocal.md\n.npl/\n")
    return tmp_path


@pytest.mark.parametrize(("file", "expected"), cases("npl_index/library/ignoring")["what_is_named_is_served"])
def test_what_is_named_is_served(file: str | None, expected: list[str], tree: Path) -> None:
    """An ignored file or folder is served if the caller names it in full."""
    assert served(library(tree), file) == expected


def test_a_walk_ends_with_its_call(tree: Path) -> None:
    with limited(-1), pytest.raises(DocumentTimeoutError, match="took longer than the limit"):
        served(library(tree))
    assert served(library(tree))


def test_roots_of_npl_ignore_nothing(tree: Path) -> None:
    assert served(library(tree, npl=".npl")) == [".npl/local.md", "a.md", "docs/b.md"]


def test_a_root_below_ignored_folders_is_served(tree: Path) -> None:
    """Rules above a root do not count."""
    assert served(library(tree / "build")) == ["in/y.md", "x.md"]


def test_changed_rules_are_seen_at_once(tree: Path) -> None:
    """The same library sees new rules of any folder, which ignore known files or serve them again."""
    files, rules, inner = library(tree), tree / ".gitignore", tree / "docs" / ".gitignore"
    for text, more, expected in [
        ("build/", "", 4),
        ("docs/", "", 4),
        ("a.md\nbuild/", "local.md", 2),
        ("b.md\nbuild/", "!b.md", 4),
        ("", "", 6),
    ]:
        rules.write_text(text)
        inner.write_text(more)
        assert len(served(files)) == expected, text
        settle()
        assert len(served(files)) == expected, text
    inner.unlink()
    rules.unlink()
    assert len(served(files)) == 6


@pytest.mark.parametrize(
    ("exclude", "expected"),
    cases("npl_index/library/ignoring")["a_setting_excludes_in_the_same_form"],
)
def test_a_setting_excludes_in_the_same_form(exclude: list[str], expected: list[str], tree: Path) -> None:
    """No ``.gitignore`` below the root overrides the setting."""
    (tree / "docs" / ".gitignore").write_text("!*\n!b.md\n")
    files = library(tree, *exclude)
    assert [path for path in served(files) if path != "docs/local.md"] == expected
    assert any("--exclude" in kind for kind in files.left_out()) is (len(expected) == 1)
    assert served(files, "docs/b.md") == ["docs/b.md"]


def test_only_plain_files_of_rules_count(tmp_path: Path) -> None:
    """A link, a pipe, a folder or a large file has no rules, and nothing is opened through them."""
    put(tmp_path, "outside", *(f"docs/{name}/a.md" for name in "lpfbn"))
    (tmp_path / "outside").write_text("*\n")
    (tmp_path / "docs/l/.gitignore").symlink_to(tmp_path / "outside")
    os.mkfifo(tmp_path / "docs/p/.gitignore")
    (tmp_path / "docs/f/.gitignore").mkdir()
    (tmp_path / "docs/b/.gitignore").write_text("*\n" + "#" * MAX_BYTES)
    (tmp_path / "docs/n/.gitignore").write_text("*\n" * (MAX_RULES + 1))
    assert len(served(library(tmp_path / "docs"))) == 5


def test_links_to_ignored_folders(tree: Path) -> None:
    """A link is ignored by its own name, and a rule for folders does not match it."""
    (tree / "docs" / "linked").symlink_to(tree / "build" / "in")
    assert served(library(tree)) == ["a.md", "build/in/y.md", "docs/b.md"]
    (tree / ".gitignore").write_text("build/\nlocal.md\nlinked\n.npl/\n")
    assert served(library(tree)) == ["a.md", "docs/b.md"]


def test_costly_rules_take_no_time(tmp_path: Path) -> None:
    """A name with many stars would take a backtracking matcher hours."""
    put(tmp_path, f"{'a' * 200}.md", "/".join(["a"] * 20) + "/x.md")
    (tmp_path / ".gitignore").write_text("*a" * 20 + "*b.md\n" + "**/a/" * 15 + "**/y.md\n")
    assert len(served(library(tmp_path))) == 2


def test_ignored_files_are_counted_within_a_bound(tree: Path) -> None:
    """Ignored folders are counted last; beyond the bound the count is lower, without an error."""
    files = library(tree)
    for most, expected in ((20, 4), (9, None)):
        walk = Walk(files.roots, most=most, counted=True)
        assert sorted(path for path, _ in walk.files(str(tree))) == ["a.md", "docs/b.md"]
        ((label, number),) = walk.skipped.items()
        assert label.endswith("ignored by .gitignore")
        assert number == expected or label.startswith("or more")
