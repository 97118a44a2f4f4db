"""Real full disks, read-only folders, locks and damage: tools report them, and nothing changes."""

import base64
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from npl_index.errors import NPLError
from npl_mcp.app.app import App
from npl_mcp.stores.base import engine, postgres
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.tools.contract.error_codes import translate
from npl_mcp.tools.contract.responses import Reply, as_dict
from npl_mcp.tools.domains import listed_tools
from tests import engines
from tests.faults import largest_file, read_only
from tests.npl_mcp.stores.writer import examine, settings_in

TOOLS = {spec.name: spec for spec in listed_tools()}


def ask(app: App, tool: str, **arguments: Any) -> dict[str, Any]:
    try:
        body: dict[str, Any] = as_dict(Reply(data=TOOLS[tool](app, **arguments)))
    except NPLError as error:
        body = as_dict(translate(error, tool))
    return body


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def file(content: bytes = b"# Plan\n") -> dict[str, str]:
    return {"file_content_base64": encoded(content), "filename": "plan.md"}


# A call for each domain that writes; each can be repeated but the first two.
WRITES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("session_create", {"session_id": "later"}),
    ("artifact_create", {"name": "later", "artifact_type": "document", **file()}),
    ("artifact_add_revision", {"artifact_id": 1, **file(b"# Plan 2\n")}),
    ("chat_send_message", {"room_id": 1, "persona": "alice", "message": "@bob look"}),
    ("review_add_comment", {"review_id": 1, "location": "line:1", "comment": "why?", "persona": "bob"}),
    ("worklog_log", {"agent_id": "alice", "action": "did", "summary": "something"}),
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder outside of pytest's own that every user of the machine can reach."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        (path / "project").mkdir()
        yield path


def fill(app: App) -> None:
    for tool, arguments in (
        ("chat_create_room", {"name": "room", "members": ["alice", "bob"], "session_id": "shared"}),
        ("artifact_create", {"name": "plan", "artifact_type": "document", **file()}),
        ("review_create", {"artifact_id": 1, "revision_id": 1, "reviewer_persona": "bob"}),
        ("worklog_init", {"session_id": "shared"}),
    ):
        assert ask(app, tool, **arguments)["success"]


@pytest.fixture
def app(place: Path) -> Iterator[App]:
    made = App(settings_in(place))
    fill(made)
    yield made
    made.close()


def state(place: Path) -> tuple[dict[str, list[Any]], dict[str, bytes]]:
    """Return all rows and all files of artifacts."""
    database, folder = engines.database(place / "data"), engines.files(place / "data")
    tables = engines.tables(place / "data")
    with database.read() as tx:
        rows = {name: [tuple(row.values()) for row in tx.all(f"SELECT * FROM {name}")] for name in tables}
    database.close()
    return rows, {name: (folder / name).read_bytes() for name in files_of(place)}


def files_of(place: Path) -> set[str]:
    """Name the files of artifacts, and all other files there."""
    folder = engines.files(place / "data")
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


Fault = Callable[[App, Path, pytest.MonkeyPatch], AbstractContextManager[None]]


@contextmanager
def full_disk(app: App, place: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    with largest_file(4_000):
        yield


@contextmanager
def full_disk_at_start(app: App, place: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    app.close()
    with largest_file(4_000):
        yield


@contextmanager
def read_only_folder(app: App, place: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    app.close()
    with read_only(place, "data"):
        yield


@contextmanager
def file_for_folder(app: App, place: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    app.close()
    (place / "data").rename(place / "away")
    (place / "data").write_text("a file where the folder should be")
    yield
    (place / "data").unlink()
    (place / "away").rename(place / "data")


@contextmanager
def damaged(app: App, place: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    app.close()
    path = place / "data" / "npl.db"
    before = path.read_bytes()
    path.write_bytes(before[:20_000] + b"\xff" * 40_000 + before[60_000:])
    yield
    app.close()
    path.write_bytes(before)


LOCKING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(app: App, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    app.close()
    # Within this time PostgreSQL opens a connection as well.
    monkeypatch.setattr(engine, "BUSY_MILLISECONDS", 50 if engines.ENGINE == "sqlite" else 1_000)
    if engines.ENGINE == "postgres":
        with psycopg.connect(engines.address(place / "data") or "") as connection:
            connection.execute(f"SELECT pg_advisory_xact_lock({postgres.WRITERS})")
            yield
        return
    command = [sys.executable, "-c", LOCKING, str(place / "data" / "npl.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        yield
        other.communicate()


@contextmanager
def unreachable(app: App, place: Path, _: pytest.MonkeyPatch) -> Iterator[None]:
    with engines.refusing(place / "data"):
        yield


SQLITE_FAULTS: dict[str, tuple[Fault, str]] = {
    "the disk is full": (full_disk, "cannot be used"),
    "the disk was full at the start": (full_disk_at_start, "cannot be used"),
    "the data folder is read-only": (read_only_folder, "writable|read-only"),
    "a file stands where the data folder was": (file_for_folder, "data folder cannot be used"),
    "the database is damaged": (damaged, "damaged"),
    "another program locks the database": (locked, "locked by another program"),
}

POSTGRES_FAULTS: dict[str, tuple[Fault, str]] = {
    "the server cannot be reached": (unreachable, "(cannot be reached|starting or ending).*try again"),
    "another program locks the database": (locked, "locked by another program"),
}

FAULTS = SQLITE_FAULTS if engines.ENGINE == "sqlite" else POSTGRES_FAULTS


@pytest.mark.parametrize("case", FAULTS)
def test_a_write_that_cannot_be_done_changes_nothing(
    app: App, place: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each domain's call fails with the reason; rows and files stay. Afterwards the next call works."""
    fault, reason = FAULTS[case]
    before = state(place)
    with fault(app, place, monkeypatch):
        answers = [ask(app, tool, **arguments) for tool, arguments in WRITES]
    assert [body.get("error_code") for body in answers] == ["DATABASE_ERROR"] * len(WRITES)
    for body in answers:
        assert str(place) not in body["error"]
        assert re.search(reason, body["error"])
    assert state(place) == before
    assert [ask(app, tool, **arguments)["success"] for tool, arguments in WRITES] == [True] * len(WRITES)
    assert app.stores.database.check() == []


def test_readers_go_on_while_another_program_holds_the_write_lock(
    app: App, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long write elsewhere delays no reader."""
    with locked(app, place, monkeypatch):
        answers = [
            ask(app, "artifact_get", artifact_id=1),
            ask(app, "chat_get_feed", room_id=1),
            ask(app, "session_list"),
        ]
    assert [body["success"] for body in answers] == [True] * 3


@pytest.mark.engine("sqlite")
def test_a_full_database_is_reported_and_nothing_changed(app: App, place: Path) -> None:
    """SQLite itself reports it in the middle of a transaction."""
    before = state(place)
    with app.stores.database.write() as tx:
        tx.run("PRAGMA max_page_count = 1")  # means: no more than there are now
    message = {"room_id": 1, "persona": "alice", "message": "@bob " + "long " * 10_000}
    body = ask(app, "chat_send_message", **message)
    assert (body["error_code"], body["error"]) == (
        "DATABASE_ERROR",
        "the database cannot be used: the disk is full; make room, then try again",
    )
    assert state(place) == before
    assert ask(app, "chat_send_message", **message)["success"]


@pytest.mark.engine("sqlite")
@pytest.mark.parametrize("tool", ["artifact_create", "artifact_add_revision"])
def test_a_content_that_finds_no_room_leaves_nothing(app: App, place: Path, tool: str) -> None:
    """It leaves neither row nor file; with room again the call works."""
    arguments = dict(WRITES)[tool] | file(b"x" * 2_000_000)
    before = state(place)
    with largest_file(1_000_000):
        body = ask(app, tool, **arguments)
        assert body["error_code"] == "DATABASE_ERROR"
        assert str(place) not in body["error"]
    assert state(place) == before
    assert ask(app, tool, **arguments)["success"]
    assert examine(place)["stray or changed contents"] == []


@pytest.mark.engine("sqlite")
def test_a_folder_of_artifacts_that_is_read_only_is_no_reason_to_refuse(
    app: App, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning says that there is no file, and no answer names it until a later one can be written."""
    with read_only(place, f"data/{engines.files(place / 'data').name}"):
        answers = [ask(app, tool, **arguments) for tool, arguments in WRITES if tool.startswith("artifact_")]
        newest = ask(app, "artifact_get", artifact_id=1)["data"]
        assert (newest["content"], "file_path" in newest) == ("# Plan 2\n", False)
    assert [body["success"] for body in answers] == [True] * 2
    assert "an artifact has no file here" in caplog.text
    newest = ask(app, "artifact_get", artifact_id=1)["data"]
    assert Path(newest["file_path"]).read_text() == newest["content"]


GONE: dict[str, Callable[[Path], object]] = {
    "removed": shutil.rmtree,
    "moved": lambda data: data.rename(data.with_name("away")),
}


@pytest.mark.engine("sqlite")
@pytest.mark.parametrize("case", GONE)
def test_nothing_is_written_to_a_database_that_is_no_longer_there(app: App, place: Path, case: str) -> None:
    """Writes acknowledged after the data folder was removed are in the new one."""
    GONE[case](place / "data")
    assert ask(app, "session_create", session_id="new")["success"]
    rows, _ = state(place)
    assert [row[1] for row in rows["session"]] == ["new"]


LOST: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda database: database.write_bytes(b""),
}


@pytest.mark.engine("sqlite")
@pytest.mark.parametrize(("case", "used"), [("missing", True), ("missing", False), ("empty", False)])
def test_no_new_database_is_made_next_to_artifacts(app: App, place: Path, case: str, used: bool) -> None:
    """A lost database is reported, with the way out."""
    database = place / "data" / "npl.db"
    copy, before = database.with_name("copy.db"), files_of(place)
    app.stores.database.copy(copy)
    if not used:
        app.close()
    for log in place.glob("data/npl.db-*"):
        log.unlink()
    LOST[case](database)
    answers = [ask(app, tool, **arguments) for tool, arguments in WRITES]
    assert {body.get("error_code") for body in answers} == {"DATABASE_ERROR"}
    assert all(f"npl.db is {case}" in body["error"] and "backup" in body["error"] for body in answers)
    assert files_of(place) == before
    app.close()
    copy.rename(database)
    assert ask(app, "artifact_get", artifact_id=1)["data"]["artifact_name"] == "plan"
    app.close()
    database.unlink()
    (place / "data" / "artifacts").rename(place / "artifacts")
    assert ask(app, "session_create", session_id="new")["success"]


@pytest.mark.engine("sqlite")
def test_a_data_folder_that_became_a_file_is_noticed_at_once(app: App, place: Path) -> None:
    """Connections do not continue in the moved folder; once it is back, everything is there."""
    before = state(place)
    (place / "data").rename(place / "away")
    (place / "data").write_text("a file where the folder should be")
    answers = [ask(app, tool, **arguments) for tool, arguments in WRITES]
    assert [body["error_code"] for body in answers] == ["DATABASE_ERROR"] * len(WRITES)
    (place / "data").unlink()
    (place / "away").rename(place / "data")
    assert state(place) == before
    assert [ask(app, tool, **arguments)["success"] for tool, arguments in WRITES] == [True] * len(WRITES)


ASK_FOR_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
"""


@pytest.mark.engine("sqlite")
def test_a_failed_call_takes_no_lock_from_others(app: App, place: Path) -> None:
    """After reopening, the process still holds the lock by which others know that the log is in use.

    SQLite keeps it on the bytes 0x40000002 to 0x400001FF while a connection is open
    (https://sqlite.org/howtocorrupt.html, "POSIX advisory locks canceled").
    """
    database = app.stores.database
    with database.read() as reading:
        reading.all("SELECT * FROM session")
        with pytest.raises(DatabaseError), database.write() as tx:
            tx.run("INSERT INTO total (name, value) VALUES (NULL, 'none')")
        assert ask(app, "session_list")["success"]
        command = [sys.executable, "-c", ASK_FOR_LOCK, str(place / "data" / "npl.db")]
        refused = subprocess.run(command, capture_output=True, text=True)
    assert "BlockingIOError" in refused.stderr


@pytest.mark.engine("sqlite")
def test_a_new_database_that_another_process_prepares_is_waited_for(place: Path) -> None:
    """Switching to a log fails at once while another process is about to write, and is tried again."""
    (place / "data").mkdir()
    command = [sys.executable, "-c", LOCKING, str(place / "data" / "npl.db")]
    made = App(settings_in(place))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == b"locked\n"
        release = threading.Timer(0.2, other.stdin.close)
        release.start()
        assert ask(made, "session_create", session_id="first")["success"]
        release.join()
    made.close()
