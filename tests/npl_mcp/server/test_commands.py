"""Commands that maintain a data folder."""

import base64
import json
import os
import pty
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests import engines
from tests.conftest import Call, calls, cases
from tests.npl_mcp.app.many import index_file
from tests.programs import Run as Program

FILES = 32

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(settings: Settings, monkeypatch: pytest.MonkeyPatch, program: Program) -> Run:
    """Run ``npl-mcp`` in the working folder, in this process."""

    def work(*arguments: str, data: Path = settings.data_folder) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch:
            patch.chdir(settings.cwd)
            for name, value in {"HOME": str(settings.home), **engines.environment(data)}.items():
                patch.setenv(name, value)
            done = program("npl-mcp", "--data-dir", str(data), *arguments)
        return subprocess.CompletedProcess(arguments, *done)

    return work


@pytest.fixture
def plan(call: Call) -> int:
    """An artifact with two revisions, in a room."""
    content = base64.b64encode(b"# Plan\n\n## Steps\n\nOne.\n").decode()
    made = call(
        "artifact_create",
        name="plan",
        artifact_type="document",
        file_content_base64=content,
        filename="plan.md",
    )["data"]["artifact_id"]
    call("artifact_add_revision", artifact_id=made, file_content_base64=content, filename="plan.md")
    call("chat_create_room", name="room", members=["a"])
    return int(made)


def test_a_backup_is_a_data_folder(run: Run, settings: Settings, plan: int, tmp_path: Path) -> None:
    done = run("backup", str(tmp_path / "copy"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"database and 2 revisions copied to {tmp_path / 'copy'}\n"
    requests = [("artifact_get", {"artifact_id": plan}), ("chat_get_feed", {"room_id": 1})]
    copied = calls(replace(settings, data_dir=tmp_path / "copy", database_url=None), requests)
    original = calls(settings, requests)
    for copy, other in zip(copied, original, strict=True):
        copy["data"].pop("file_path", None)
        other["data"].pop("file_path", None)
        assert copy == other
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".copy")] == []


def test_a_backup_overwrites_nothing(run: Run, plan: int, tmp_path: Path) -> None:
    """A target that is not empty is refused and stays as it is."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "notes.txt").write_text("mine")
    done = run("backup", str(tmp_path / "copy"))
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["notes.txt"]


@pytest.mark.engine("sqlite")
def test_a_check_finds_what_was_changed_behind_its_back(run: Run, settings: Settings, plan: int) -> None:
    """A changed content is named; the rest can still be backed up."""
    assert run("check").stdout == "database and 2 revisions checked; problems: 0\n"
    engines.execute(settings.data_folder, "UPDATE content SET data = CAST('# Other' AS BLOB)")
    done = run("check")
    assert done.returncode == 1
    for number in (0, 1):  # which have one content
        assert f"the content of revision {number} of artifact {plan} is not the one" in done.stderr
    assert done.stdout == "database and 2 revisions checked; problems: 2\n"
    copied = run("backup", str(settings.cwd / "copy"))
    assert copied.returncode == 1
    assert engines.query(settings.cwd / "copy", "SELECT name FROM room") == [("room",)]


def test_a_database_is_migrated(run: Run) -> None:
    first, second = run("migrate"), run("migrate")
    assert (first.returncode, second.returncode) == (0, 0)
    assert re.fullmatch(r"the schema (was empty, now )?is \d{4}\n", first.stdout)
    assert re.fullmatch(r"the schema is \d{4}\n", second.stdout)


def test_worklogs_of_the_predecessor_come_in(run: Run, settings: Settings) -> None:
    log = settings.cwd / ".npl" / "sessions" / "s1" / "worklog.jsonl"
    log.parent.mkdir(parents=True)
    entry = {"seq": 1, "ts": "2025-11-03T10:00:00Z", "agent_id": "a", "action": "found", "summary": "one"}
    log.write_text(f"{json.dumps(entry)}\nnot an entry\n")
    done = run("worklog", "import")
    assert done.stdout == "1 sessions with 1 entries imported; 1 lines are not entries\n"


@pytest.fixture
def many(settings: Settings) -> Path:
    folder = settings.cwd / "many"
    folder.mkdir()
    for number in range(FILES):
        path = folder / f"page{number}.md"
        path.write_text(f"# Page {number}\n\n## Valve {number}\n\nOil it.\n", encoding="utf-8")
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return folder


def test_a_folder_is_indexed_ahead(run: Run, settings: Settings, many: Path) -> None:
    """The command reports its work; it and a server with the same root do nothing a second time."""
    done = run("index", "many")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        rf"{FILES} files with {3 * FILES} sections: {FILES} indexed, [\d.]+ s; stored in .+\n", done.stdout
    )
    again = run("--root", str(many), "index")
    assert f": 0 indexed, {FILES} unchanged, " in again.stdout
    for file in (None, ".", str(many)):
        app = App(replace(settings, roots=(many,)))
        assert len(app.gather(DocumentRef(file=file)).files) == FILES
        assert app.state.sets.built == 0
        app.close()


def test_what_is_not_kept_is_said(run: Run, settings: Settings, docs: Path) -> None:
    """A missing folder, no folder, and a disabled cache are reported."""
    (docs / "broken.md").write_bytes(b"\xff\xfe")
    done = run("index", str(docs))
    assert done.returncode == 1
    assert "broken.md" in done.stderr
    for arguments, message in (
        (("index", "nowhere"), "nowhere is not a folder"),
        (("index",), "no folder to index"),
        (("--cache", "memory", "index", str(docs)), "no index is stored"),
    ):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


def test_damage_of_the_index_is_named(run: Run, settings: Settings, many: Path) -> None:
    run("index", str(many))
    with closing(sqlite3.connect(index_file(settings))) as connection:
        connection.execute("UPDATE document SET terms = x'00' WHERE id = (SELECT min(id) FROM document)")
        connection.commit()
    checked = run("check")
    assert f"index: {many}/page0.md: its data cannot be read; the next start" in checked.stderr
    assert checked.returncode == 1


@pytest.mark.parametrize("named", [True, False])
def test_at_a_terminal_it_says_how_to_connect_it(settings: Settings, docs: Path, named: bool) -> None:
    """The server explains itself for this folder if no other is named, serves, and ends with its input."""
    root, cwd = (["--root", docs.name], docs.parent) if named else ([], docs)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "npl_mcp", "--data-dir=data", *root],
        cwd=cwd,
        env={**os.environ, "HOME": str(settings.home), "PATH": "/nowhere"},
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert process.stdout is not None
        shown = "".join(
            iter(
                process.stderr.readline,
                "It now waits for a client's messages;"
                " Ctrl-D ends it. npl-mcp --help shows options and commands.\n",
            )
        )
        request = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
        os.write(ours, request.encode())
        assert json.loads(process.stdout.readline())["id"] == 1
        os.write(ours, b"\x04")
        assert process.wait(timeout=60) == 0
    os.close(ours)
    words = [str(Path(sys.executable).with_name("npl-mcp")), f"--root={docs}", f"--data-dir={cwd / 'data'}"]
    words += ["--domains", "reading", "--format", "markdown"]
    assert f"claude mcp add npl -- {shlex.join(words)}\n" in shown
    entry = json.loads(next(line for line in shown.splitlines() if "mcpServers" in line))["mcpServers"]["npl"]
    assert [entry["command"], *entry["args"]] == words
    assert "without it all are listed, and some clients take 40" in shown


@pytest.mark.parametrize(
    "address",
    cases("npl_mcp/server/commands")["a_malformed_address_of_a_database_is_one_message"],
)
@pytest.mark.parametrize(
    "words", ["check", "token list", "config show", "doctor", "migrate", "backup new", "copy {address} new"]
)
def test_a_malformed_address_of_a_database_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program, address: str, words: str
) -> None:
    """No command shows the password."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPL_DATABASE_URL", address)
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(tmp_path / "data"))
    code, out, err = program("npl-mcp", *(word.format(address=address) for word in words.split()))
    shown = out + err
    assert code in (0, 1, 2)
    assert "Traceback" not in shown
    assert not re.search("hi(%00)?dden", shown)
    assert words == "config show" or "address" in shown, shown


def test_a_server_with_a_malformed_address_ends_with_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    monkeypatch.setenv("NPL_DATABASE_URL", "postgresql://u:hidden@[::1/x")
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(tmp_path / "data"))
    code, _, shown = program("npl-mcp")
    assert code == 2
    assert shown.startswith("npl-mcp: the address of the database cannot be read")
    assert "hidden" not in shown
