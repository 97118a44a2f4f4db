"""``npl-worklog``: reports of agents on one project to each other, on the command line."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from npl_index.errors import escaped
from npl_mcp.cli.terminal.arguments import CLIENT_FLAGS, JSON, Commands, Program, option, switch
from npl_mcp.cli.terminal.display import Display, FailedCallError, run_command
from npl_mcp.cli.transports.connecting import ServerConnection, connect

NO_SESSION = 1
"""Exit code without a session, or if ``--data`` is not JSON."""

PAGE = 1_000
"""Entries of one call."""

_CURRENT = "session; by default the current one"
_SESSION = option("--session", "ID", _CURRENT, dest="session_id", type=lambda text: text or None)
_AGENT = option("--agent", "ID", dest="agent_id", required=True)


@contextmanager
def _on_session(given: Namespace, display: Display) -> Iterator[tuple[ServerConnection, Display]]:
    """Return a connection to the tools, and the display; :func:`_failed` reports failures.

    :raises SystemExit: a call failed; the user was told.
    """
    try:
        with connect(given, display.note) as connection:
            yield connection, display
    except FailedCallError as refused:
        raise SystemExit(_failed(refused.reply, given, display)) from None


def _failed(reply: Mapping[str, Any], given: Namespace, display: Display) -> int:
    """Report a failed tool call and return the exit code; missing sessions as in earlier versions."""
    if reply["error_code"] != "SESSION_NOT_FOUND":
        return display.failed(reply, given.parser)
    named = getattr(given, "session_id", None)
    display.say(f"Error: {reply['error']}" if named else "No active session")
    return NO_SESSION


COMMANDS = Commands(_on_session)


@COMMANDS.add("init", option("--id", "ID", dest="session_id"), option("--task", "TEXT"), tool="worklog_init")
def _init(given: Namespace, connection: ServerConnection, display: Display) -> None:
    """Start a session and print its id."""
    # As in earlier versions, an existing session is named, and does not become the current one.
    data: Mapping[str, Any] = {}
    if given.session_id:
        data = connection.call("worklog_status", session_id=given.session_id).get("data", {})
    if not data or "archived_as" in data:
        data = connection.ask("worklog_init", session_id=given.session_id, task=given.task)
    if not data.get("new"):
        display.say(f"Session already exists: {data['session_id']}")
    display.text(f"{data['session_id']}\n")


@COMMANDS.add("current")
def _current(_: Namespace, connection: ServerConnection, display: Display) -> None:
    """Print the id of the current session."""
    display.text(f"{connection.ask('worklog_status')['session_id']}\n")


@COMMANDS.add(
    "log",
    _AGENT,
    option("--action", "WORD", required=True),
    option("--summary", "TEXT", required=True),
    option("--type", "TYPE", dest="agent_type"),
    option("--data", "JSON"),
    option("--tags", "A,B"),
    _SESSION,
    tool="worklog_log",
)
def _log(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """Append an entry."""
    try:
        data = json.loads(given.data) if given.data else None
    except (ValueError, RecursionError) as error:
        display.say(f"Error: {error}")
        return NO_SESSION
    names = ("agent_id", "agent_type", "action", "summary", "session_id")
    values = {name: getattr(given, name) for name in names}
    tags = [tag.strip() for tag in given.tags.split(",")] if given.tags else None
    logged = connection.ask("worklog_log", **values, data=data, tags=tags)
    display.text(f"Logged entry #{logged['seq']} to session {logged['session_id']}\n")
    return 0


@COMMANDS.add(
    "read",
    _AGENT,
    switch("--peek"),
    option("--since", "N", type=int),
    option("--wait", "SECONDS", type=int),
    _SESSION,
    JSON,
    tool="worklog_read",
)
def _read_entries(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """Print the entries that an agent has not read yet."""
    # Each page is printed at once: the server has marked it as read, and the next page may fail.
    entries: list[dict[str, Any]] = []
    code = 0
    asked: dict[str, Any] = {"wait": given.wait, "since": given.since and max(given.since, 0)}
    reader = {"agent_id": given.agent_id, "peek": given.peek, "session_id": given.session_id}
    while True:
        reply = connection.call("worklog_read", **reader, limit=PAGE, **asked)
        if not reply["success"]:
            code = _failed(reply, given, display)
            break
        page = reply["data"]
        if given.json:
            entries += page["items"]
        else:
            display.text("".join(map(_entry_line, page["items"])))
        if not page["items"] or not page["remaining"]:
            break
        asked = {"since": page["items"][-1]["seq"]}  # without waiting: the remaining entries exist
    if given.json and (entries or not code):
        display.data([_former(entry, ENTRY) for entry in entries], "json", ascii_only=True)
    return code


ENTRY = ("seq", "ts", "agent_id", "agent_type", "action", "summary", "data", "tags", "refs")
SESSION = ("session_id", "status", "created", "task", "entry_count", "agents", "last_entry")
TITLES = ("Session", "Status", "Created", "Task", "Entries", "Agents", "Last activity")
TIMES = ("ts", "created", "last_entry")


def _entry_line(entry: Mapping[str, Any]) -> str:
    words = f"{entry['agent_id']}: {entry['action']} - {entry['summary']}"
    # Line breaks are escaped: a second line would be read as the next entry.
    return escaped(f"[{entry['seq']}] {_former(entry, TIMES)['ts']} {words}") + "\n"


def _former(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return fields in the form of earlier versions: ``None`` if they are absent, times with ``+00:00``."""
    values: dict[str, Any] = {name: row.get(name) for name in names}
    return values | {name: f"{values[name].removesuffix('Z')}+00:00" for name in TIMES if values.get(name)}


@COMMANDS.add("status", _SESSION, JSON)
def _status(given: Namespace, connection: ServerConnection, display: Display) -> None:
    """Describe a session."""
    session = _former(connection.ask("worklog_status", session_id=given.session_id), SESSION)
    if given.json:
        display.data(session, "json", ascii_only=True)
    else:
        values = {**session, "agents": ", ".join(session["agents"]) or "none"}.values()
        rows = zip(TITLES, values, strict=True)
        lines = (f"{title}: {escaped(str(value))}\n" for title, value in rows if value not in (None, ""))
        display.text("".join(lines))


@COMMANDS.add("list", switch("--all", help="also archived sessions, with their names for --session"), JSON)
def _list_sessions(given: Namespace, connection: ServerConnection, display: Display) -> None:
    """List the sessions, the newest first; * marks the current one."""
    sessions = connection.ask("worklog_sessions", archived=given.all)
    if given.json:
        rows = [_former(session, SESSION) for session in sessions]
        display.data(rows, "json", ascii_only=True)
        return
    for session in sessions:
        mark = "*" if session["current"] else " "
        counts = f"entries={session['entry_count']} agents={len(session['agents'])}"
        # The id of an archived session may be in use again.
        name = f"archive/{session['archived_as']}" if "archived_as" in session else session["session_id"]
        display.text(f"{mark} {name} [{session['status']}] {counts}\n")


@COMMANDS.add("close", switch("--archive", help="also move the session to the archive"), _SESSION)
def _close(given: Namespace, connection: ServerConnection, display: Display) -> None:
    """Close a session for good."""
    data = connection.ask("worklog_close", archive=given.archive, session_id=given.session_id)
    done = "archived" if given.archive else "closed"
    display.text(f"Session {data['session_id']} {done}\n")


PROGRAM = Program("npl-worklog", COMMANDS, CLIENT_FLAGS)

main = partial(run_command, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
