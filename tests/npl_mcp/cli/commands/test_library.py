"""Libraries, pushed and pulled as a person does it."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from npl_index.library.roots import Limits
from npl_mcp.__main__ import main
from npl_mcp.app.libraries import Libraries
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.library.names import LibraryRef
from tests.npl_mcp.http.http_server import serving

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(data: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``npl-mcp library`` and return its exit code, what it printed and what it complained of."""

    def work(*arguments: str) -> tuple[int, str, str]:
        code = main(["--data-dir", str(data), "library", *arguments])
        return (code, *capsys.readouterr())

    return work


ODD = {
    "guide.md": b"# Guide\n\nWater early.\n",
    "windows.md": b"\xef\xbb\xbf# Lines\r\n\r\nEnd so.\r\n",
    "empty.md": b"",
    "no line end.md": b"# A name, with a comma & spaces",
    "deep/er/and/deeper.markdown": b"# Deep\n",
    "deep/\u5806\u80a5.md": "# \u5806\u80a5\n".encode(),
    "x@12:y{a,b}*.md": b"# Odd\n",
    "large.md": b"# Large\n\n" + b"Many words stand here.\n" * 60_000,
    ".npl/core/terms.md": b"# Terms\n",
}


def write(root: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def found(root: Path) -> dict[str, bytes]:
    """Return the files below a folder, without its note."""
    paths = (path for path in root.rglob("*") if path.is_file() and path != root / ".npl" / "library")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def docs(data: Path) -> Path:
    """A folder in the project."""
    folder = Path("docs")
    write(folder, {"guide.md": b"# Guide\n\nOne.\n", "plants/roses.md": b"# Roses\n"})
    return folder


def test_what_is_pushed_comes_back_byte_for_byte(run: Run, docs: Path) -> None:
    """Whatever the names and the contents; what a search does not look at stays behind."""
    write(docs, ODD)
    write(docs, {"notes.txt": b"mine", ".git/config.md": b"# Mine\n", "node_modules/a.md": b"# No\n"})
    code, text, problems = run("push", "docs", "--by", "kim", "-m", "First of all")
    assert (code, text, problems) == (0, f"lib:docs@1: {len(ODD) + 1} added, 0 changed, 0 removed\n", "")
    assert run("pull", "docs", "copy")[0] == 0
    assert found(Path("copy")) == {**ODD, "plants/roses.md": b"# Roses\n"}


def test_each_push_is_a_revision(run: Run, docs: Path) -> None:
    """Each can be pulled; a push of nothing new makes none."""
    run("push", "docs", "--by", "kim", "-m", "First")
    (docs / "guide.md").write_bytes(b"# Guide\n\nTwo.\n")
    (docs / "plants" / "roses.md").rename(docs / "roses.md")
    assert run("push", "docs", "--by", "lee")[1] == "lib:docs@2: 1 added, 1 changed, 1 removed\n"
    assert run("push", "docs")[:2] == (0, "no change: lib:docs@2 has the same files\n")
    (docs / "roses.md").rename(docs / "plants" / "roses.md")
    assert run("push", "docs", "--by", "kim", "-m", "Back")[0] == 0
    log = run("log", "docs")[1].splitlines()
    assert [re.sub(r"\d{4}-\S+ \S+ UTC", "THEN", line) for line in log] == [
        "lib:docs@3  THEN by kim: Back  2 files: 1 added, 0 changed, 1 removed",
        "lib:docs@2  THEN by lee  2 files: 1 added, 1 changed, 1 removed",
        "lib:docs@1  THEN by kim: First  2 files: 2 added, 0 changed, 0 removed",
    ]
    assert run("log", "docs", "--limit", "1")[1].splitlines() == log[:1]
    expected = {
        "1": {"guide.md": b"# Guide\n\nOne.\n", "plants/roses.md": b"# Roses\n"},
        "2": {"guide.md": b"# Guide\n\nTwo.\n", "roses.md": b"# Roses\n"},
        "3": {"guide.md": b"# Guide\n\nTwo.\n", "plants/roses.md": b"# Roses\n"},
    }
    for number, files in expected.items():
        assert run("pull", f"docs@{number}", f"copy{number}")[0] == 0
        assert found(Path(f"copy{number}")) == files


def test_libraries_are_listed(run: Run, docs: Path) -> None:
    """By their names, with what they hold now."""
    assert run("list") == (0, "there is no library\n", "")
    run("push", "docs", "--by", "kim")
    run("push", "docs/plants", "--name", "a-plant.s_2", "-m", "Roses")
    lines = run("list")[1].splitlines()
    assert [line.split()[0] for line in lines] == ["lib:a-plant.s_2", "lib:docs"]
    assert re.search(r" 2 files +0.0 MB  revision +1  \d{4}-\S+ \S+ UTC by kim$", lines[1])
    read = json.loads(run("list", "--json")[1])
    assert [(one["library"], one["number"], one["files"]) for one in read] == [
        ("a-plant.s_2", 1, 1),
        ("docs", 1, 2),
    ]
    assert json.loads(run("log", "docs", "--json")[1]) == read[1:]


def test_a_dry_run_shows_what_would_change(run: Run, docs: Path) -> None:
    """And changes nothing."""
    expected = "+ guide.md\n+ plants/roses.md\nlib:docs@1 would be new: 2 added, 0 changed, 0 removed\n"
    assert run("push", "docs", "--dry-run") == (0, expected, "")
    assert run("list")[1] == "there is no library\n"
    run("push", "docs")
    (docs / "guide.md").unlink()
    (docs / "plants" / "roses.md").write_bytes(b"# Red roses\n")
    (docs / "new.md").write_bytes(b"")
    assert run("push", "docs", "--dry-run")[1].splitlines()[:3] == [
        "+ new.md",
        "~ plants/roses.md",
        "- guide.md",
    ]
    assert len(run("log", "docs")[1].splitlines()) == 1


def test_a_pull_replaces_only_what_the_library_has_held(run: Run, docs: Path) -> None:
    """What somebody wrote there stays, unless it is forced; what nobody pushed is never removed."""
    run("push", "docs")
    run("pull", "docs", "copy")
    (docs / "guide.md").write_bytes(b"# Guide\n\nTwo.\n")
    (docs / "plants" / "roses.md").unlink()
    run("push", "docs")
    copy = Path("copy")
    write(copy, {"plants/own.md": b"# Own\n", "own.txt": b"own"})
    assert run("pull", "docs", "copy") == (
        0,
        "lib:docs@2: 0 written, 1 replaced, 1 removed, 0 unchanged\n",
        "",
    )
    own = {"plants/own.md": b"# Own\n", "own.txt": b"own"}
    assert found(copy) == {"guide.md": b"# Guide\n\nTwo.\n", **own}
    (copy / "guide.md").write_bytes(b"# My own guide\n")
    (copy / "plants" / "roses.md").write_bytes(b"# My own roses\n")
    code, text, problems = run("pull", "docs@1", "copy")
    assert (code, text.partition(": ")[2]) == (
        1,
        "0 written, 0 replaced, 0 removed, 0 unchanged, 2 not replaced\n",
    )
    assert "guide.md: it was changed here; --force replaces it" in problems
    assert found(copy)["guide.md"] == b"# My own guide\n"
    assert run("pull", "docs@1", "copy", "--force")[0] == 0
    assert found(copy) == {"guide.md": b"# Guide\n\nOne.\n", "plants/roses.md": b"# Roses\n", **own}


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="links")
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["plain", "force"])
def test_a_pull_does_not_leave_its_folder(run: Run, docs: Path, force: tuple[str, ...]) -> None:
    """Links and folders in the way are named and left alone."""
    write(docs, {"b.md": b"# B\n"})
    run("push", "docs")
    outside = Path("outside")
    write(outside, {"guide.md": b"# Outside\n"})
    copy = Path("copy")
    (copy / "b.md").mkdir(parents=True)
    (copy / "plants").symlink_to(outside.resolve(), target_is_directory=True)
    (copy / "guide.md").symlink_to((outside / "guide.md").resolve())
    code, text, problems = run("pull", "docs", "copy", *force)
    assert (code, text) == (
        1,
        "lib:docs@1: 0 written, 0 replaced, 0 removed, 0 unchanged, 3 not replaced\n",
    )
    assert problems.count("is in the way") == 3
    assert found(outside) == {"guide.md": b"# Outside\n"}


REFUSED = {
    "not UTF-8": ({"bad.md": b"# Bad \xff\n"}, "bad.md is not UTF-8 at byte 6"),
    "binary": ({"sub/bad.md": b"# Bad\0\n"}, "sub/bad.md is binary"),
    "too large": ({"bad.md": b"#" * 2_000_001}, "'bad.md' is larger than 2,000,000 bytes"),
    "a long path": ({f"{'x' * 200}/" * 5 + "a" * 50 + ".md": b"# A\n"}, "cannot be a file of a library"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_search_could_use_is_refused(
    run: Run, docs: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is named, and nothing is pushed."""
    monkeypatch.setenv("NPL_MAX_FILE_BYTES", "2000000")
    files, problem = REFUSED[case]
    write(docs, files)
    code, text, problems = run("push", "docs")
    assert (code, text) == (2, "")
    assert problem in problems
    assert run("list")[1] == "there is no library\n"


WRONG = {
    ("push", "docs", "--name", "Docs"): "'Docs' cannot be the name of a library",
    ("push", "docs", "--name", "../docs"): "cannot be the name of a library",
    ("push", "docs", "--name", "docs@1"): "cannot be the name of a library",
    ("push", "docs", "--name", ""): "cannot be the name of a library",
    ("push", "docs", "--name", "a" * 65): "cannot be the name of a library",
    ("push", "docs", "-m", "two\nlines"): "message has a line break",
    ("push", "nowhere"): "nowhere is not a folder",
    ("push", "bare"): "bare has no Markdown",
    ("pull", "docks", "copy"): "there is no library 'docks'; near: lib:docs",
    ("pull", "docs@0", "copy"): "names no revision; they are numbered from 1 on",
    ("pull", "docs@2", "copy"): "library docs has no revision 2; it has only revision 1",
    ("pull", "docs", "docs/guide.md"): "docs/guide.md cannot be written: File exists",
    ("log", "other"): "there is no library 'other'",
}


@pytest.mark.usefixtures("docs")
def test_mistakes_are_named(run: Run) -> None:
    """With what to write instead; nothing is made."""
    Path("bare").mkdir()
    run("push", "docs")
    for arguments, problem in WRONG.items():
        code, text, problems = run(*arguments)
        assert (code, text) == (2, ""), arguments
        assert problem in problems, arguments
    assert not Path("copy").exists()
    assert len(run("list")[1].splitlines()) == 1


def test_pushes_at_once_take_turns(run: Run, data: Path, docs: Path) -> None:
    """Each is a revision whole, and none is lost."""
    run("push", "docs")
    for name in "abc":
        write(Path(name), {f"{name}{number}.md": b"# %d\n" % number for number in range(20)})
    command = [sys.executable, "-m", "npl_mcp", "--data-dir", str(data), "library", "push"]
    processes = [subprocess.Popen([*command, name, "--name", "docs", "-m", name]) for name in "abc"]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    log = run("log", "docs")[1].splitlines()
    assert [line.partition("  ")[0] for line in log] == [f"lib:docs@{number}" for number in (4, 3, 2, 1)]
    for line in log[:3]:
        top, name = line.partition("  ")[0], re.search(r": ([abc])  ", line)
        assert name is not None
        run("pull", top, f"out-{name[1]}")
        assert found(Path(f"out-{name[1]}")) == found(Path(name[1]))


def test_a_check_finds_what_was_changed_behind_its_back(
    run: Run, data: Path, docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Contents and revisions are read whole."""
    run("push", "docs")
    assert main(["--data-dir", str(data), "check"]) == 0
    connection = sqlite3.connect(data / "npl.db")
    connection.execute("UPDATE library_content SET data = x'00' WHERE CAST(data AS TEXT) LIKE '# Roses%'")
    connection.execute("UPDATE library_file SET size = 1, path = 'other.md' WHERE path = 'guide.md'")
    connection.commit()
    connection.close()
    assert main(["--data-dir", str(data), "check"]) == 1
    problems = capsys.readouterr().err
    assert "revision 1 of library docs differs from what was pushed" in problems
    assert re.search(r"the content [0-9a-f]{32} of a library differs from what was pushed", problems)


GUIDE = b"# Guide\n\n## Water\n\nEarly.\n\n## Soil\n\nDark.\n"


@pytest.fixture
def authors(run: Run, docs: Path) -> tuple[Path, Path]:
    """Two folders with revision 1 of a library."""
    write(docs, {"guide.md": GUIDE, "own.md": b"# Own\n", "old.md": b"# Old\n"})
    assert run("push", "docs")[0] == 0
    for name in ("ann", "bo"):
        assert run("pull", "docs", name)[0] == 0
    return Path("ann"), Path("bo")


def test_others_pushes_are_merged_by_section(run: Run, authors: tuple[Path, Path]) -> None:
    """Files and sections that only one changed are as that one left them, there and here."""
    ann, bo = authors
    (ann / "guide.md").write_bytes(GUIDE.replace(b"Early", b"Late"))
    (ann / "old.md").unlink()
    write(ann, {"new.md": b"# New\n"})
    assert run("push", "ann", "--name", "docs")[1] == "lib:docs@2: 1 added, 1 changed, 1 removed\n"
    (bo / "guide.md").write_bytes(GUIDE.replace(b"Dark", b"Red"))
    (bo / "own.md").write_bytes(b"# Own\n\nMore.\n")
    code, text, problems = run("push", "bo", "--name", "docs")
    assert (code, problems) == (0, "")
    assert text.splitlines() == [
        "lib:docs@3: 0 added, 2 changed, 0 removed",
        "merged by others: guide.md, new.md, old.md",
    ]
    assert found(bo)["guide.md"] == GUIDE.replace(b"Dark", b"Red").replace(b"Early", b"Late")
    assert "old.md" not in found(bo)
    assert run("pull", "docs", "ann")[0] == 0
    assert found(ann) == found(bo)
    assert run("push", "bo", "--name", "docs")[1] == "no change: lib:docs@3 has the same files\n"


CHANGED: dict[str, tuple[bytes | None, bytes | None]] = {
    "one section": (GUIDE.replace(b"Early", b"Late"), GUIDE.replace(b"Early", b"Never")),
    "removed here": (GUIDE.replace(b"Early", b"Late"), None),
    "removed there": (None, GUIDE.replace(b"Early", b"Late")),
}


@pytest.mark.parametrize("case", CHANGED)
def test_what_both_changed_is_refused(run: Run, authors: tuple[Path, Path], case: str) -> None:
    """The files are named, nothing is pushed, both texts stay; force says what it replaced."""
    for author, text in zip(authors, CHANGED[case], strict=True):
        if text is None:
            (author / "guide.md").unlink()
        else:
            (author / "guide.md").write_bytes(text)
    assert run("push", "ann", "--name", "docs")[0] == 0
    before = found(authors[1])
    code, text_, problems = run("push", "bo", "--name", "docs")
    assert (code, text_) == (2, "")
    assert "others changed the same sections of guide.md" in problems
    assert "lib:docs@2/guide.md" in problems
    assert found(authors[1]) == before
    assert len(run("log", "docs")[1].splitlines()) == 2
    text_ = run("push", "bo", "--name", "docs", "--force")[1]
    assert ("replaced by others: guide.md" in text_) is (case != "removed there")
    assert run("pull", "docs@3", "copy")[0] == 0
    assert found(Path("copy")) == before


def test_a_pull_that_leaves_a_file_keeps_the_note(run: Run, authors: tuple[Path, Path]) -> None:
    """So the next push knows that others changed this file."""
    ann, bo = authors
    (ann / "own.md").write_bytes(b"# Ann\n")
    run("push", "ann", "--name", "docs")
    (bo / "own.md").write_bytes(b"# Bo\n")
    assert run("pull", "docs", "bo")[0] == 1
    assert "others changed the same sections of own.md" in run("push", "bo", "--name", "docs")[2]


def test_a_folder_of_another_library_is_refused(run: Run, authors: tuple[Path, Path]) -> None:
    """Its note says what it began from."""
    note = authors[0] / ".npl" / "library"
    note.write_text(note.read_text().replace('"digest": "', '"digest": "0'))
    code, _, problems = run("push", "ann", "--name", "docs")
    assert (code, "has a revision that library docs does not have" in problems) == (2, True)
    note.write_text("no JSON")
    assert run("push", "ann", "--name", "docs")[0] == 0


def test_authors_who_push_at_once_lose_nothing(data: Path, authors: tuple[Path, Path]) -> None:
    """Each writes its own section of one file in many rounds, and sees the other's."""
    for author in authors:
        write(author, {"guide.md": GUIDE})

    def work(number: int) -> None:
        folder, section = authors[number], (b"Early", b"Dark")[number]
        with closing(Stores(data)) as stores:
            libraries = Libraries(stores.library, Limits())
            for turn in range(12):
                text = (folder / "guide.md").read_bytes()
                (folder / "guide.md").write_bytes(text.replace(section, section + b" %d" % turn))
                libraries.push(folder, "docs")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
    with closing(Stores(data)) as stores:
        libraries = Libraries(stores.library, Limits())
        for author in authors:
            libraries.pull(LibraryRef("docs"), author)
            text = (author / "guide.md").read_text()
            for section in ("Early", "Dark"):
                assert f"{section} {' '.join(map(str, reversed(range(12))))}." in text


def test_a_token_pushes_through_a_server(
    run: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under its name, and only the libraries that it has the right to; a pull needs sight alone."""
    write(docs, {**ODD, **{f"many/{number}.md": b"# %d\n" % number for number in range(1_200)}})
    place = tmp_path / "served"
    place.mkdir()
    with closing(Stores(place / "data")) as stores:
        tokens = {"ann": stores.access.add("ann", pushes=("docs",)), "eve": stores.access.add("eve")}
    with serving(place) as server:
        monkeypatch.setenv("NPL_MCP_URL", server.state.url or "")
        monkeypatch.setenv("NPL_MCP_TOKEN", tokens["ann"])
        counts = f"{len(ODD) + 1_201:,} added, 0 changed, 0 removed"
        assert run("push", "docs", "--dry-run")[1].endswith(f"lib:docs@1 would be new: {counts}\n")
        assert run("push", "docs", "-m", "First") == (0, f"lib:docs@1: {counts}\n", "")
        assert run("pull", "docs", "copy")[0] == 0
        assert found(Path("copy")) == found(docs)
        (docs / "guide.md").write_bytes(GUIDE)
        assert run("push", "docs")[1] == "lib:docs@2: 0 added, 1 changed, 0 removed\n"
        write(Path("copy"), {"own.md": b"# Own\n"})
        assert "merged by others: guide.md" in run("push", "copy", "--name", "docs")[1]
        assert found(Path("copy"))["guide.md"] == GUIDE
        code, _, problems = run("push", "docs", "--name", "other")
        assert (code, "may not push library other" in problems) == (77, True)
        monkeypatch.setenv("NPL_MCP_TOKEN", tokens["eve"])
        assert run("pull", "docs@1", "older")[0] == 0
        assert "may not push library docs" in run("push", "older", "--name", "docs")[2]
    with closing(Stores(place / "data")) as stores:
        assert [one.created_by for one in stores.library.log("docs")] == ["ann"] * 3
