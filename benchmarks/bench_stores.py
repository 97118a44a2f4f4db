"""Calls of the stores in process, compared with a bare prepared statement on the same database.

Fair: every call is the whole tool function with its answer as plain values, one transaction and, for writes,
a full sync to disk; the bare statement has the same settings of the connection and the same sync. The lists
run on 100,000 rows; the column "1,000 rows" shows whether the cost grows with them.

    python benchmarks/bench_stores.py [rows] [calls]
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base import sqlite
from npl_mcp.stores.base.database import content_digest
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.domains import listed_tools

Call = Callable[[int], Any]

TOOLS = {spec.name: spec.function for spec in listed_tools()}
TEXT = b"# Note\n\nOne line of a note that agents share.\n" * 24
CONTENT = base64.b64encode(TEXT).decode()
MOMENT = "2026-01-31T12:00:00.000000Z"
PAGE = 50


def open_app(folder: Path) -> App:
    """Open an application on a data folder."""
    return App(Settings(cwd=folder, home=folder, data_dir=folder / "data", warm_up=False))


def tool(app: App, name_: str, /, **arguments: Any) -> Any:
    """Call a tool as the server does, without the protocol."""
    return as_dict(TOOLS[name_](app, **arguments))


def fill(app: App, rows: int) -> None:
    """Insert rows for every list with the fewest statements."""
    tool(app, "chat_create_room", name="r", members=["a", "b"])
    tool(
        app,
        "artifact_create",
        name="first",
        artifact_type="document",
        file_content_base64=CONTENT,
        filename="note.md",
    )
    numbers = range(10, rows)
    with app.stores.database.write() as tx:
        message = {"room_id": 1, "event_type": "message", "persona": "a", "timestamp": MOMENT}
        message["data"] = '{"message":"hello","mentions":[]}'
        tx.insert_many("event", [message | {"position": number} for number in numbers])
        tx.run("UPDATE room SET event_count = :rows WHERE id = 1", rows=rows - 1)
        tx.run("INSERT INTO mailbox (persona, total, unread) VALUES ('b', :rows, :rows)", rows=len(numbers))
        tx.run(
            "INSERT INTO notification (persona, event_id, notification_type, created_at) "
            "SELECT 'b', id, 'mention', :t FROM event WHERE position >= 10",
            t=MOMENT,
        )
        artifact = {"type": "document", "created_at": MOMENT, "revision_count": 1}
        tx.insert_many("artifact", [artifact | {"name": f"artifact {number}"} for number in numbers])
        tx.run(
            "INSERT INTO revision (artifact_id, revision_num, created_at, filename, size, digest, purpose) "
            "SELECT id, 0, :t, 'note.md', 1, :digest, 'p' FROM artifact WHERE id > 1",
            t=MOMENT,
            digest=content_digest(TEXT),
        )
        revision = {"artifact_id": 1, "created_at": MOMENT, "filename": "note.md", "size": 1}
        revision |= {"digest": content_digest(TEXT), "purpose": "p"}
        tx.insert_many("revision", [revision | {"revision_num": number} for number in range(1, rows)])
        tx.run("UPDATE artifact SET revision_count = :rows WHERE id = 1", rows=rows)
        session = {"created_at": MOMENT, "updated_at": MOMENT}
        tx.insert_many("session", [session | {"id": f"s{number}"} for number in numbers])
    tool(app, "worklog_init", session_id="bench")
    with app.stores.database.write() as tx:
        entry = {
            "session_number": 1,
            "ts": MOMENT,
            "agent_id": "a",
            "action": "found",
            "summary": "something",
        }
        tx.insert_many("worklog_entry", [entry | {"seq": number} for number in range(1, rows)])
        tx.run("UPDATE worklog_session SET entry_count = :rows, last_entry = :t", rows=rows - 1, t=MOMENT)


def writes(app: App, tag: str) -> dict[str, Call]:
    """Return the writing calls, each with the number of the call."""
    return {
        "artifact_create": lambda number: tool(
            app,
            "artifact_create",
            name=f"{tag} {number} {time.time_ns()}",
            artifact_type="document",
            file_content_base64=CONTENT,
            filename="note.md",
        ),
        "chat_send_message": lambda number: tool(
            app, "chat_send_message", room_id=1, persona="a", message=f"@b please look at {number}"
        ),
        "worklog_log": lambda number: tool(
            app, "worklog_log", agent_id=f"agent-{number % 4}", action="found", summary="something"
        ),
    }


def lists(app: App) -> dict[str, Call]:
    """Return the listing calls."""
    return {
        "artifact_list": lambda _: tool(app, "artifact_list", limit=PAGE),
        "artifact_history": lambda _: tool(app, "artifact_history", artifact_id=1, limit=PAGE),
        "session_list": lambda _: tool(app, "session_list", limit=PAGE),
        "chat_get_feed": lambda _: tool(app, "chat_get_feed", room_id=1, limit=PAGE),
        "chat_get_notifications": lambda _: tool(app, "chat_get_notifications", persona="b", limit=PAGE),
        "worklog_read, peek": lambda _: tool(app, "worklog_read", agent_id="reader", peek=True, limit=PAGE),
    }


def timed(call: Call, count: int, callers: int = 1) -> list[float]:
    """Run calls and return their times in milliseconds."""

    def one(number: int) -> float:
        start = time.perf_counter()
        call(number)
        return 1000 * (time.perf_counter() - start)

    if callers == 1:
        return [one(number) for number in range(count)]
    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(one, range(count)))


def bare(path: Path) -> tuple[Call, Call]:
    """Return one write and one read by prepared statements, on a connection set up as ours are."""
    connection = sqlite.driver().connect(str(path), isolation_level=None)
    for pragma in ("busy_timeout = 10000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY, text TEXT) STRICT")

    def write(number: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bare (text) VALUES (?)", (f"text {number}",))
        connection.execute("COMMIT")

    def read(_: int) -> list[Any]:
        found: list[Any] = connection.execute(
            "SELECT id, name, type, created_at FROM artifact ORDER BY id DESC LIMIT ?", (PAGE,)
        ).fetchall()
        return found

    return write, read


def shown(times: list[float]) -> str:
    """Format the median and the 99th percentile."""
    return f"{median(times):6.2f} {quantiles(times, n=100)[98]:7.2f}"


def processes(folder: Path, name: str, count: int) -> list[float]:
    """Run a writing call in four processes at once."""
    command = [sys.executable, __file__, "--worker", str(folder), name, str(count)]
    running = [subprocess.Popen([*command, str(which)], stdout=subprocess.PIPE) for which in range(4)]
    return [time for process in running for time in json.loads(process.communicate()[0])]


def worker(folder: Path, name: str, count: int, which: str) -> None:
    """Be one of the four processes."""
    app = open_app(folder)
    call = writes(app, which)[name]
    timed(call, 3)
    print(json.dumps(timed(call, count)))
    app.close()


def main() -> None:
    """Print a table of milliseconds: median and 99th percentile."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as large:
        few, many = open_app(Path(small)), open_app(Path(large))
        fill(few, 1_000)
        fill(many, rows)
        write, read = bare(many.settings.data_folder / "npl.db")
        print(f"ms, p50 and p99; {rows:,} rows; bare write {shown(timed(write, count))}")
        print(f"{'':24}{'1 caller':>16}{'8':>16}{'32':>16}{'4 processes':>16}{'1,000 rows':>16}")
        for name, call in writes(many, "main").items():
            timed(call, 5)
            columns = [shown(timed(call, count, callers)) for callers in (1, 8, 32)]
            columns.append(shown(processes(Path(large), name, count // 4)))
            columns.append(shown(timed(writes(few, "few")[name], count)))
            print(f"{name:24}" + "".join(f"{column:>16}" for column in columns))
        print(f"bare write again {shown(timed(write, count))}, bare page {shown(timed(read, count))}")
        for name, call in lists(many).items():
            timed(call, 5)
            columns = [shown(timed(call, count, callers)) for callers in (1, 8, 32)]
            columns.append(shown(timed(lists(few)[name], count)))
            print(f"{name:24}{columns[0]:>16}{columns[1]:>16}{columns[2]:>16}{'':16}{columns[3]:>16}")
        thousand = timed(lambda _: tool(many, "chat_get_feed", room_id=1, limit=1_000), 20)
        print(f"a page of 1,000 events: {shown(thousand)}")
        few.close()
        many.close()


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        worker(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5])
    else:
        main()
