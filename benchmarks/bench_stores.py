"""Calls of the stores in process, compared with a bare prepared statement on the same database.

Usage: ``python -m benchmarks.bench_stores [--rows N] [--calls N]``

Fair: every call is the whole tool function with its answer as plain values, one transaction and, for writes,
a full sync to disk; the bare statement has the same settings of the connection and the same sync. The lists
run on 100,000 rows; the column "1,000 rows" shows whether the cost grows with them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from inspect import iscoroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from benchmarks.filling import NOTE, SESSION, fill, open_app
from benchmarks.times import Table, call_ms, spread
from npl_index.index.driver import driver
from npl_mcp.app.app import App
from npl_mcp.app.waiting import result_of
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.domains import listed_tools

TOOLS = {spec.name: spec.function for spec in listed_tools()}
PAGE = 50
PROCESSES = 4
FEW = 1_000

Call = Callable[[int], Any]


def calling(app: App, name_: str, /, **arguments: Any) -> Call:
    """Return a call of a tool as the server makes it, without the protocol."""

    def call(_: int) -> object:
        answer = TOOLS[name_](app, **arguments)
        return as_dict(result_of(answer) if iscoroutine(answer) else answer)

    return call


def writes(app: App) -> Mapping[str, Call]:
    """Return the writing calls."""
    note = {"artifact_type": "document", "filename": "note.md", "content": NOTE}
    message = {"room_id": 1, "persona": "p0", "message": "@p1 please look at it"}
    entry = {"agent_id": "agent", "action": "found", "summary": "something", "session_id": SESSION}
    return {
        "artifact_create": lambda number: calling(app, "artifact_create", name=uuid4().hex, **note)(number),
        "chat_send_message": calling(app, "chat_send_message", **message),
        "worklog_log": calling(app, "worklog_log", **entry),
    }


def lists(app: App) -> Mapping[str, Call]:
    """Return the listing calls."""
    reader = {"agent_id": "reader", "peek": True, "session_id": SESSION}
    return {
        "artifact_list": calling(app, "artifact_list", limit=PAGE),
        "artifact_history": calling(app, "artifact_history", artifact_id=1, limit=PAGE),
        "session_list": calling(app, "session_list", limit=PAGE),
        "chat_get_feed": calling(app, "chat_get_feed", room_id=1, limit=PAGE),
        "chat_get_notifications": calling(app, "chat_get_notifications", persona="p1", limit=PAGE),
        "worklog_read, peek": calling(app, "worklog_read", limit=PAGE, **reader),
    }


def times_of(call: Call, count: int, callers: int = 1) -> list[float]:
    """Return the milliseconds of calls, after a first one."""
    call(count)
    works = [partial(call_ms, partial(call, number)) for number in range(count)]
    if callers == 1:
        return [work() for work in works]
    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(lambda work: work(), works))


def bare(app: App) -> tuple[Call, Call]:
    """Return a write and a read by prepared statements, on a connection set up as ours are."""
    path = app.settings.data_folder / "npl.db"
    connection = driver().connect(str(path), isolation_level=None, check_same_thread=False)
    for pragma in ("busy_timeout = 10000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY, text TEXT) STRICT")

    def write(number: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bare (text) VALUES (?)", (f"text {number}",))
        connection.execute("COMMIT")

    def read(_: int) -> Any:
        statement = "SELECT id, name, type, created_at FROM artifact ORDER BY id DESC LIMIT ?"
        return connection.execute(statement, (PAGE,)).fetchall()

    return write, read


def processes(folder: Path, name: str, count: int) -> list[float]:
    """Run a writing call in several processes at once."""
    command = [sys.executable, "-m", "benchmarks.bench_stores", "--worker", str(folder), name]
    running = [
        subprocess.Popen([*command, "--calls", str(count)], stdout=subprocess.PIPE) for _ in range(PROCESSES)
    ]
    return [spent for process in running for spent in json.loads(process.communicate()[0])]


def work(folder: Path, name: str, count: int) -> None:
    """Be one of the processes."""
    with closing(open_app(folder)) as app:
        print(json.dumps(times_of(writes(app)[name], count)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of milliseconds."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_stores", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="messages in the database")
    parser.add_argument("--calls", type=int, default=400, help="of each figure")
    parser.add_argument("--worker", nargs=2, metavar=("FOLDER", "NAME"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker:
        work(Path(given.worker[0]), given.worker[1], given.calls)
        return 0
    with (
        TemporaryDirectory() as small,
        TemporaryDirectory() as large,
        closing(open_app(Path(small))) as few,
        closing(open_app(Path(large))) as many,
    ):
        fill(few, min(FEW, given.rows))
        fill(many, given.rows)
        calls = given.calls
        write, read = bare(many)
        table = Table(
            f"{given.rows:,} rows, {Table.SPREAD}", "1 caller", "8", "32", "4 processes", "1,000 rows"
        )
        table.row("a bare write", spread(times_of(write, calls)), "", "", "", "")
        for name, call in writes(many).items():
            columns = [spread(times_of(call, calls, callers)) for callers in (1, 8, 32)]
            columns.append(spread(processes(Path(large), name, max(1, calls // PROCESSES))))
            table.row(name, *columns, spread(times_of(writes(few)[name], calls)))
        table.row("a bare page", spread(times_of(read, calls)), "", "", "", "")
        for name, call in lists(many).items():
            columns = [spread(times_of(call, calls, callers)) for callers in (1, 8, 32)]
            table.row(name, *columns, "", spread(times_of(lists(few)[name], calls)))
        page = calling(many, "chat_get_feed", room_id=1, limit=1_000)
        table.row("a page of 1,000 events", spread(times_of(page, min(20, calls))), "", "", "", "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
