"""Libraries of earlier versions are exported, checked, copied and backed up, and nothing else."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from hashlib import blake2b
from pathlib import Path

import pytest

from npl_mcp.stores.base.engine import CallDeadline
from npl_mcp.stores.base.migrating import MIGRATIONS, migrate
from npl_mcp.stores.base.opening import database_of
from tests import engines
from tests.conftest import Call, cases
from tests.folders import fill
from tests.npl_mcp.http.http_server import serving
from tests.programs import Run
from tests.until import until

NOW = "2026-01-31T12:00:00.000000Z"

STILL = 2**53 - 1
"""The last revision of a file that still exists."""

# Number, name and newest revision; path, content, first and last revision of each file.
LIBRARIES = {
    (1, "docs", 2): [
        ("guide.md", b"# Guide\n\nWater early.\n", 1, 1),
        ("guide.md", b"# Guide\n\nWater late.\r\n", 2, STILL),
        ("deep/er/\u5806 %.md", b"", 1, STILL),
        ("gone.md", b"# Gone\n", 1, 1),
        ("x@12:y{a,b}*.md", b"# Odd\n", 2, STILL),
    ],
    (2, "notes", 1): [("guide.md", b"# Notes\n", 1, STILL)],
}
EXPORTED = {
    f"{name}/{path}": data
    for (_, name, _), files in LIBRARIES.items()
    for path, data, _, last in files
    if last == STILL
}


def blob(data: bytes) -> str:
    """Return an expression of SQL for bytes."""
    return f"x'{data.hex()}'" if engines.ENGINE == "sqlite" else f"'\\x{data.hex()}'"


def statements() -> Iterator[str]:
    """Write the libraries as earlier versions did."""
    for (number, name, newest), files in LIBRARIES.items():
        yield f"INSERT INTO library VALUES ({number}, '{name}', '{NOW}', {newest})"
        for revision in range(1, newest + 1):
            present = sum(first <= revision <= last for *_, first, last in files)
            row = f"{number}, {revision}, '{NOW}', 'ann', NULL, '', {present}, 0, 0, 0, 0"
            yield f"INSERT INTO library_revision VALUES ({row})"
        for path, data, first, last in files:
            digest = blake2b(data, digest_size=16).hexdigest()
            yield f"INSERT INTO library_content VALUES ('{digest}', {blob(data)})"
            row = f"{number}, '{path}', '{digest}', {len(data)}, {first}, {last}"
            yield f"INSERT INTO library_file VALUES ({row})"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of an earlier version with two libraries."""
    monkeypatch.chdir(tmp_path)
    for name in ("data", "then"):
        (tmp_path / name).mkdir()
    for file in MIGRATIONS.glob("*.sql"):
        if file.name[:4] <= "0010":
            shutil.copy(file, "then")
    data = tmp_path / "data"
    with closing(database_of(data, engines.empty_address(data))) as database:
        migrate(database.engine, CallDeadline(), "0001", Path("then"))
    for statement in statements():
        engines.execute(data, statement)
    for name, value in engines.environment(data).items():
        monkeypatch.setenv(name, value)
    return data


@pytest.fixture
def run(folder: Path, program: Run) -> Run:
    """Run ``npl-mcp`` in the data folder."""
    return partial(program, "npl-mcp", "--data-dir", str(folder))


def lines(problems: str) -> list[str]:
    return [line.removeprefix("npl-mcp: ") for line in problems.splitlines()]


def contents(place: Path) -> dict[str, bytes]:
    paths = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in paths}


def test_the_newest_state_is_written_byte_for_byte(run: Run) -> None:
    for _ in range(2):
        assert run("library", "export", "new/out") == (0, "4 of 4 files of libraries are in new/out\n", "")
        assert contents(Path("new/out")) == EXPORTED


def test_nothing_is_replaced_and_no_link_is_followed(run: Run) -> None:
    """Files that were not written are named, the others are there."""
    for name in ("out/docs", "elsewhere"):
        Path(name).mkdir(parents=True)
    Path("out/docs/guide.md").write_bytes(b"# Mine\n")
    Path("out/docs/x@12:y{a,b}*.md").symlink_to("../../elsewhere/x.md")
    Path("out/notes").symlink_to("../elsewhere")
    code, text, problems = run("library", "export", "out")
    assert (code, text) == (1, "1 of 4 files of libraries are in out\n")
    first, second, third = lines(problems)
    assert first == "docs/guide.md: a different file, a folder or a link has this name"
    assert (second.partition(": ")[0], third.partition(": ")[0]) == ("docs/x@12:y{a,b}*.md", "notes/guide.md")
    assert contents(Path("elsewhere")) == {}
    assert contents(Path("out")) == {"docs/guide.md": b"# Mine\n", "docs/deep/er/\u5806 %.md": b""}


@pytest.mark.parametrize("path", ["../../x.md", "/x.md", "a//x.md", "./x.md", "", "..", "a/", "a\nb.md"])
def test_a_damaged_path_leads_nowhere(run: Run, folder: Path, path: str) -> None:
    engines.execute(folder, f"UPDATE library_file SET path = '{path}' WHERE path = 'x@12:y{{a,b}}*.md'")
    code, text, problems = run("library", "export", "in/out")
    assert (code, text) == (1, "3 of 4 files of libraries are in in/out\n")
    assert "this is not the path of a file of a library" in problems
    written = {name: data for name, data in contents(Path()).items() if name.startswith("in")}
    assert written == {f"in/out/{name}": data for name, data in EXPORTED.items() if "@" not in name}


def test_damage_is_found_and_named(run: Run, folder: Path) -> None:
    """The check and the export name it; readable files are still written."""
    assert run("check")[0] == 0
    of_notes = "(SELECT digest FROM library_file WHERE library_id = 2)"
    engines.execute(folder, f"UPDATE library_content SET data = {blob(b'# Other')} WHERE digest = {of_notes}")
    engines.execute(folder, "DELETE FROM library_file WHERE path = 'gone.md'")
    code, _, problems = run("check")
    assert code == 1
    assert set(lines(problems)) == {"the content of guide.md of library notes is not the one that was stored"}
    code, text, problems = run("library", "export", "out")
    assert (code, text) == (1, "3 of 4 files of libraries are in out\n")
    assert lines(problems) == ["notes/guide.md: it is damaged in the database"]


@pytest.mark.parametrize("way", ["backup", "copy"])
def test_copies_have_them(run: Run, folder: Path, way: str, program: Run) -> None:
    """Copies carry the tables until they are dropped."""
    source = () if way == "backup" else (engines.address(folder) or str(folder),)
    assert run(way, *source, "copied")[0] == 0
    os.environ.pop("NPL_DATABASE_URL", None)
    for words in (["check"], ["library", "export", "out"]):
        assert program("npl-mcp", "--data-dir", "copied", *words).code == 0
    assert contents(Path("out")) == EXPORTED


def test_a_server_says_once_that_libraries_are_not_served(folder: Path, tmp_path: Path) -> None:
    line = "'npl-mcp library export DIR' writes those of this database as files"
    with serving(tmp_path, **engines.environment(folder)) as server:
        until(lambda: line in server.log)
        assert server.log.count(line) == 1


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
    """It may stand in a parameter, in a list, and in a selector of an old message."""
    answer = call(tool, **arguments)
    assert answer["error_code"] == "NOT_FOUND"
    assert "no longer served; 'npl-mcp library export DIR' writes the libraries" in answer["error"]


def test_a_folder_may_be_called_like_the_scheme(call: Call, docs: Path) -> None:
    """Only the colon makes it an address."""
    for name in ("lib", "cr", "artifact"):
        fill(docs / name, {"valve.md": "# Valve\n\nOil it.\n"})
        assert call("npl_section_index", file=name)["data"]["sections"][0]["name"] == f"{name}/valve.md"


LIMITS = cases("npl_mcp/stores/libraries")["limits"]


@pytest.mark.parametrize(("roots", "libraries", "shown"), LIMITS)
def test_a_token_for_libraries_sees_no_more_than_before(
    run: Run, folder: Path, roots: str | None, libraries: str | None, shown: str
) -> None:
    """Its row, which an earlier version wrote, has the right to push."""
    columns = "name, digest, read_only, created_at, roots, libraries, pushes"
    limits = ", ".join("NULL" if limit is None else f"'{limit}'" for limit in (roots, libraries, '["docs"]'))
    values = f"'kim', '{'0' * 64}', 0, '{NOW}', {limits}"
    engines.execute(folder, f"INSERT INTO access_token ({columns}) VALUES ({values})")
    line = run("token", "list")[1].splitlines()[1]
    assert line.startswith("kim ")
    assert line.endswith(f"  {shown}")
    row = json.loads(run("token", "list", "--json")[1])[0]
    assert row["roots"] == (json.loads(roots) if roots else [] if libraries else None)
