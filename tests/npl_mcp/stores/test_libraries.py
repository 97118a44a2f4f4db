"""Libraries of earlier versions: they are exported, checked, copied and backed up, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import pytest

from npl_mcp.__main__ import main
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.engine import CallDeadline
from npl_mcp.stores.base.migrating import MIGRATIONS, migrate
from npl_mcp.stores.base.opening import database_of
from tests import engines
from tests.conftest import Call
from tests.npl_mcp.http.http_server import environment, serving

Run = Callable[..., tuple[int, str, str]]

STILL = 2**53 - 1
"""The last revision of a file that still exists."""

DOCS = {"guide.md": b"# Guide\n\nWater late.\r\n", "deep/er/\u5806 %.md": b"", "x@12:y{a,b}*.md": b"# Odd\n"}
OLD = {"guide.md": b"# Guide\n\nWater early.\n", "deep/er/\u5806 %.md": b"", "gone.md": b"# Gone\n"}


NOW = "2026-01-31T12:00:00.000000Z"


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def blob(text: str) -> str:
    """Return an expression of SQL for bytes."""
    return f"CAST('{text}' AS BLOB)" if engines.ENGINE == "sqlite" else f"'{text}'::bytea"


def store(database: Database, name: str, *revisions: dict[str, bytes]) -> None:
    """Write a library as earlier versions did, by SQL."""
    with database.write() as tx:
        library = tx.insert("library", "id", name=name, created_at=tx.now, revision=len(revisions))["id"]
        before: dict[str, bytes] = {}
        for number, files in enumerate(revisions, 1):
            counts = dict.fromkeys(("bytes", "added", "changed", "removed"), 0)
            made = {"library_id": library, "number": number, "created_at": tx.now, "files": len(files)}
            tx.insert("library_revision", "number", **made, **counts, digest="")
            for path in before:
                if files.get(path) != before[path]:
                    ended = "UPDATE library_file SET last_revision = :last WHERE path = :path"
                    tx.run(f"{ended} AND last_revision = {STILL}", last=number - 1, path=path)
            for path, data in files.items():
                if before.get(path) != data:
                    tx.insert("library_content", "digest", "digest", digest=digest(data), data=data)
                    file = {"library_id": library, "path": path, "digest": digest(data), "size": len(data)}
                    tx.insert("library_file", "path", **file, first_revision=number, last_revision=STILL)
            before = files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with two libraries, one with an older revision."""
    monkeypatch.chdir(tmp_path)
    for name, value in engines.environment(tmp_path / "data").items():
        monkeypatch.setenv(name, value)
    with closing(engines.database(tmp_path / "data")) as database:
        store(database, "docs", OLD, DOCS)
        store(database, "notes", {"guide.md": b"# Notes\n"})
    return tmp_path / "data"


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``npl-mcp`` and return its exit code, what it printed and what it complained of."""

    def work(*words: str) -> tuple[int, str, str]:
        code = main(["--data-dir", str(folder), *words])
        return (code, *capsys.readouterr())

    return work


def lines(problems: str) -> list[str]:
    return [line.removeprefix("npl-mcp: ") for line in problems.splitlines()]


def found(place: Path) -> dict[str, bytes]:
    paths = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in paths}


EXPORTED = {**{f"docs/{path}": data for path, data in DOCS.items()}, "notes/guide.md": b"# Notes\n"}


def test_the_newest_state_is_written_byte_for_byte(run: Run) -> None:
    """The second export finds it done."""
    for _ in range(2):
        assert run("library", "export", "new/out") == (0, "4 files of libraries are in new/out\n", "")
        assert found(Path("new/out")) == EXPORTED


def test_nothing_is_replaced_and_no_link_is_followed(run: Run) -> None:
    """What was not written is named, the other files are there."""
    for name in ("out/docs", "elsewhere"):
        Path(name).mkdir(parents=True)
    Path("out/docs/guide.md").write_bytes(b"# Mine\n")
    Path("out/docs/x@12:y{a,b}*.md").symlink_to("../../elsewhere/x.md")
    Path("out/notes").symlink_to("../elsewhere")
    code, text, problems = run("library", "export", "out")
    assert (code, text) == (1, "1 files of libraries are in out\n")
    first, second, third = lines(problems)
    assert first == "docs/guide.md: a different file, a folder or a link has this name"
    assert (second.partition(": ")[0], third.partition(": ")[0]) == ("docs/x@12:y{a,b}*.md", "notes/guide.md")
    assert found(Path("elsewhere")) == {}
    assert found(Path("out")) == {"docs/guide.md": b"# Mine\n", "docs/deep/er/\u5806 %.md": b""}


@pytest.mark.parametrize("path", ["../../x.md", "/x.md", "a//x.md", "./x.md", "", "..", "a/", "a\nb.md"])
def test_a_damaged_path_leads_nowhere(run: Run, folder: Path, path: str) -> None:
    engines.execute(folder, f"UPDATE library_file SET path = '{path}' WHERE path = 'x@12:y{{a,b}}*.md'")
    code, text, problems = run("library", "export", "in/out")
    assert (code, text) == (1, "3 files of libraries are in in/out\n")
    assert "this is not the path of a file of a library" in problems
    written = {name: data for name, data in found(Path()).items() if name.startswith("in")}
    assert written == {f"in/out/{name}": data for name, data in EXPORTED.items() if "@" not in name}


def test_damage_is_found_and_named(run: Run, folder: Path) -> None:
    """By the check and by the export; what can be read is still written."""
    assert run("check")[0] == 0
    of_notes = "(SELECT digest FROM library_file WHERE library_id = 2)"
    engines.execute(folder, f"UPDATE library_content SET data = {blob('# Other')} WHERE digest = {of_notes}")
    engines.execute(folder, "DELETE FROM library_file WHERE path = 'gone.md'")
    code, _, problems = run("check")
    assert code == 1
    assert set(lines(problems)) == {
        "the content of guide.md of library notes is not the one that was stored",
        "library 1 counts 3, but there are 2",
    }
    code, text, problems = run("library", "export", "out")
    assert (code, text) == (1, "3 files of libraries are in out\n")
    assert lines(problems) == ["notes/guide.md: it is damaged in the database"]


@pytest.mark.parametrize("way", ["backup", "copy"])
def test_copies_have_them(run: Run, folder: Path, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables are carried until they are dropped."""
    source = () if way == "backup" else (engines.address(folder) or str(folder),)
    assert run(way, *source, "copied")[0] == 0
    os.environ.pop("NPL_DATABASE_URL", None)
    assert main(["--data-dir", "copied", "check"]) == 0
    assert main(["--data-dir", "copied", "library", "export", "out"]) == 0
    assert found(Path("out")) == EXPORTED


def test_servers_say_once_that_libraries_are_not_served(folder: Path, tmp_path: Path) -> None:
    """One line on standard error, over HTTP and over standard streams."""
    line = "'npl-mcp library export DIR' writes those of this database as files"
    database = engines.environment(folder)
    with serving(tmp_path, **database) as server:
        wait_for(lambda: line in server.log)
        assert server.log.count(line) == 1
    errors = tmp_path / "errors.txt"
    with errors.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "npl_mcp"],
            env=environment(tmp_path, **database),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        assert process.stdin is not None
        process.stdin.write(b"\n")  # the server starts with the first byte
        process.stdin.flush()
        wait_for(lambda: line in errors.read_text(encoding="utf-8"))
    finally:
        process.communicate()
    assert errors.read_text(encoding="utf-8").count(line) == 1


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


OLDER = f"""
INSERT INTO library (name, created_at, revision) VALUES ('docs', '{NOW}', 1);
INSERT INTO library_revision (library_id, number, created_at, digest, files, bytes, added, changed, removed)
VALUES (1, 1, '{NOW}', '', 1, 7, 1, 0, 0);
INSERT INTO library_content (digest, data) VALUES ('{digest(b"# Guide")}', {blob("# Guide")});
INSERT INTO library_file (library_id, path, digest, size, first_revision, last_revision)
VALUES (1, 'guide.md', '{digest(b"# Guide")}', 7, 1, {STILL});
INSERT INTO access_token (name, digest, libraries, pushes, read_only, created_at)
VALUES ('kim', '{"0" * 64}', '["docs"]', '["docs"]', 0, '{NOW}')
"""


def test_an_older_database_opens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its library and its token are what they were before the migrations to this version."""
    for file in MIGRATIONS.glob("*.sql"):
        if file.name[:4] <= "0010":
            (tmp_path / "then").mkdir(exist_ok=True)
            shutil.copy(file, tmp_path / "then")
    data = tmp_path / "data"
    data.mkdir()
    with closing(database_of(data, engines.empty_address(data))) as database:
        migrate(database.engine, CallDeadline(), "0001", tmp_path / "then")
    for statement in OLDER.split(";"):
        engines.execute(data, statement)
    for words in (["check"], ["token", "list"], ["library", "export", str(tmp_path / "out")]):
        assert main(["--data-dir", str(data), *words]) == 0
    assert "none (was limited to lib:docs)\n" in capsys.readouterr().out
    assert found(tmp_path / "out") == {"docs/guide.md": b"# Guide"}


ADDRESSED: list[tuple[str, dict[str, object]]] = [
    *(
        ("npl_section_index", {"file": file})
        for file in ("lib:docs", "lib:docs/guide.md", "lib:docs@1/x", "lib:*", "guide.md, lib:docs")
    ),
    ("npl_load_tailored", {"file": "lib:docs", "context": "water"}),
    ("npl_load_tailored", {"selectors": ["lib:docs/guide > ## Watering"]}),
    ("search", {"query": "water", "file": "lib:docs"}),
]


@pytest.mark.parametrize(("tool", "arguments"), ADDRESSED)
def test_an_address_says_what_became_of_it(call: Call, tool: str, arguments: dict[str, object]) -> None:
    """In a parameter, in a list, and in a selector from an old message."""
    answer = call(tool, **arguments)
    assert answer["error_code"] == "NOT_FOUND"
    assert "no longer served; 'npl-mcp library export DIR' writes the libraries" in answer["error"]


def test_a_folder_may_be_called_like_the_scheme(call: Call, docs: Path) -> None:
    """Only the colon makes it an address."""
    for name in ("lib", "cr", "artifact"):
        (docs / name).mkdir()
        (docs / name / "valve.md").write_text("# Valve\n\nOil it.\n", encoding="utf-8")
        assert call("npl_section_index", file=name)["data"]["sections"][0]["name"] == f"{name}/valve.md"


LIMITS = [
    (None, '["docs"]', "none (was limited to lib:docs)"),
    ("[]", '["docs", "x"]', "none (was limited to lib:docs, lib:x)"),
    ('["/srv"]', '["docs"]', "/srv (was limited to lib:docs)"),
    ('["/srv"]', "[]", "/srv"),
    (None, None, "all"),
]


@pytest.mark.parametrize(("roots", "libraries", "shown"), LIMITS)
def test_a_token_for_libraries_sees_no_more_than_before(
    run: Run, folder: Path, roots: str | None, libraries: str | None, shown: str
) -> None:
    """Its row is as an earlier version wrote it, with the right to push; the list shows the limit."""
    with closing(engines.database(folder)) as database, database.write() as tx:
        row = {"name": "kim", "digest": "0" * 64, "read_only": 0, "created_at": tx.now}
        limits = {"roots": roots, "libraries": libraries, "pushes": '["docs"]'}
        tx.insert("access_token", "name", **row, **limits)
    line = run("token", "list")[1].splitlines()[1]
    assert line.startswith("kim ")
    assert line.endswith(f"  {shown}")
    row = json.loads(run("token", "list", "--json")[1])[0]
    assert row["libraries"] == json.loads(libraries or "null")
    assert row["roots"] == (json.loads(roots) if roots else [] if libraries else None)
