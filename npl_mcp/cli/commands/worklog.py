"""``npl-worklog``: what agents on one project report to each other, from the command line."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

from npl_index.errors import escaped
from npl_mcp.cli.terminal.arguments import JSON, VIA, Commands, Program, Run, option, switch, whole_number
from npl_mcp.cli.terminal.display import Display, RefusedError, run_command
from npl_mcp.cli.transports.connecting import Connection, connected

NO_SESSION = 1
"""Exit code if there is no session, or ``--data`` is no JSON."""

PAGE = 1_000
"""Entries that are read at a time."""


_SESSION = option("--session", "ID", "the session; by default the current one", dest="session_id")
_AGENT = option("--agent", "ID", dest="agent_id", required=True)

COMMANDS = Commands()


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    :param words: the command line without the program's name, by default the process's.
    :returns: the exit code.
    """
    return run_command(PROGRAM, words)


def _on_session(run: Callable[[Namespace, Connection, Display], int | None]) -> Run:
    """Return the runner of a command; a missing session is reported in the words of earlier versions."""

    @connected
    @wraps(run)
    def command(given: Namespace, connection: Connection, display: Display) -> int | None:
        try:
            return run(given, connection, display)
        except RefusedError as refused:
            return _failed(refused.reply, given, display)

    return command


def _failed(reply: Mapping[str, Any], given: Namespace, display: Display) -> int:
    """Report a tool that failed; missing sessions in the words of earlier versions."""
    if reply["error_code"] != "SESSION_NOT_FOUND":
        return display.failed(reply, given.parser)
    display.say(f"Error: {reply['error']}" if given.session_id else "No active session")
    return NO_SESSION


@COMMANDS.add("init", option("--id", "ID", dest="session_id"), option("--task", "TEXT"), tool="worklog_open")
@_on_session
def _init(given: Namespace, connection: Connection, display: Display) -> None:
    """Start a session and print its id."""
    data = connection.ask("worklog_open", session_id=given.session_id, task=given.task)
    if not data["new"]:
        display.say(f"Session already exists: {data['session_id']}")
    display.text(f"{data['session_id']}\n")


@COMMANDS.add("current")
@_on_session
def _current(_: Namespace, connection: Connection, display: Display) -> int:
    """Print the id of the current session."""
    data = connection.ask("worklog_current")
    if "session_id" not in data:
        display.say("No active session")
        return NO_SESSION
    display.text(f"{data['session_id']}\n")
    return 0


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
@_on_session
def _log(given: Namespace, connection: Connection, display: Display) -> int:
    """Append an entry."""
    try:
        data = json.loads(given.data) if given.data else None
    except (ValueError, RecursionError) as error:
        display.say(f"Error: {error}")
        return NO_SESSION
    names = ("agent_id", "agent_type", "action", "summary")
    logged = connection.ask(
        "worklog_log",
        **{name: getattr(given, name) for name in names},
        data=data,
        tags=[tag.strip() for tag in given.tags.split(",")] if given.tags else None,
        session_id=given.session_id or None,
    )
    display.text(f"Logged entry #{logged['seq']} to session {logged['session_id']}\n")
    return 0


@COMMANDS.add(
    "read",
    _AGENT,
    switch("--peek"),
    option("--since", "N", type=whole_number),
    option("--wait", "SECONDS", type=whole_number),
    _SESSION,
    JSON,
    tool="worklog_read",
)
@_on_session
def _read(given: Namespace, connection: Connection, display: Display) -> int:
    """Print what an agent has not read yet."""
    # Print page after page: what the server marks as read has been printed, even if the next page fails.
    entries: list[dict[str, Any]] = []
    code = 0
    asked: dict[str, Any] = {"wait": given.wait, "since": given.since and max(given.since, 0)}
    session = given.session_id or None
    while True:
        reply = connection.call(
            "worklog_read", agent_id=given.agent_id, peek=given.peek, session_id=session, limit=PAGE, **asked
        )
        if not reply["success"]:
            code = _failed(reply, given, display)
            break
        page = reply["data"]
        if given.json:
            entries += page["items"]
        else:
            display.text("".join(map(_line, page["items"])))
        if not page["items"] or not page["remaining"]:
            break
        asked = {"since": page["items"][-1]["seq"]}  # the rest is there already
    if given.json and (entries or not code):
        _print([{name: _field(entry, name) for name in ENTRY} for entry in entries], display)
    return code


ENTRY = ("seq", "ts", "agent_id", "agent_type", "action", "summary", "data", "tags", "refs")
SESSION = ("session_id", "status", "created", "task", "entry_count", "agents", "last_entry")
TIMES = ("ts", "created", "last_entry")


def _line(entry: Mapping[str, Any]) -> str:
    words = f"{entry['agent_id']}: {entry['action']} - {entry['summary']}"
    # One line for each entry, whatever it holds: another would be read as the next entry.
    return escaped(f"[{entry['seq']}] {_field(entry, 'ts')} {words}") + "\n"


def _field(row: Mapping[str, Any], name: str) -> Any:
    """Return a field as earlier versions printed it: ``None`` if it is not set, times with ``+00:00``."""
    value = row.get(name)
    return value.removesuffix("Z") + "+00:00" if value is not None and name in TIMES else value


def _print(value: object, display: Display) -> None:
    """Print JSON as earlier versions did."""
    display.data(value, "json", ascii_only=True)


@COMMANDS.add("status", _SESSION, JSON)
@_on_session
def _status(given: Namespace, connection: Connection, display: Display) -> None:
    """Describe a session."""
    data = connection.ask("worklog_status", session_id=given.session_id or None)
    session = {name: _field(data, name) for name in SESSION}
    if given.json:
        _print(session, display)
    else:
        display.text("".join(_described(session)))


def _described(session: Mapping[str, Any]) -> Iterator[str]:
    yield f"Session: {session['session_id']}\n"
    yield f"Status: {session['status']}\n"
    yield f"Created: {session['created']}\n"
    if session["task"]:
        yield f"Task: {escaped(session['task'])}\n"
    yield f"Entries: {session['entry_count']}\n"
    yield f"Agents: {escaped(', '.join(session['agents'])) or 'none'}\n"
    if session["last_entry"]:
        yield f"Last activity: {session['last_entry']}\n"


@COMMANDS.add("list", switch("--all", help="also the archived ones, by names that --session takes"), JSON)
@_on_session
def _list(given: Namespace, connection: Connection, display: Display) -> None:
    """List the sessions, the newest first; * marks the current one."""
    sessions = connection.ask("worklog_sessions", archived=given.all)["sessions"]
    if given.json:
        _print([_row(session) for session in sessions], display)
        return
    for session in sessions:
        mark = "*" if session["current"] else " "
        counts = f"entries={session['entry_count']} agents={len(session['agents'])}"
        display.text(f"{mark} {_name(session)} [{session['status']}] {counts}\n")


def _row(session: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _field(session, name) for name in SESSION} | {"session_id": _name(session)}


def _name(session: Mapping[str, Any]) -> str:
    """Return the name that ``--session`` takes; an archived id may be in use again."""
    archived = session.get("archived_as")
    return session["session_id"] if archived is None else f"archive/{archived}"


@COMMANDS.add("close", switch("--archive", help="also move it to the archive"), _SESSION)
@_on_session
def _close(given: Namespace, connection: Connection, display: Display) -> None:
    """Close a session for good."""
    session = given.session_id or None
    data = connection.ask("worklog_close", archive=given.archive, session_id=session)
    done = "archived" if given.archive else "closed"
    display.text(f"Session {data['session_id']} {done}\n")


@COMMANDS.add(
    "export",
    option("session_id", "SESSION", nargs="?"),
    option("folder", "FOLDER", nargs="?"),
    tool="worklog_export",
)
@_on_session
def _export(given: Namespace, connection: Connection, display: Display) -> None:
    """Write the files of a session, to .npl/sessions or FOLDER."""
    data = connection.ask("worklog_export", session_id=given.session_id, folder=given.folder)
    display.text(f"written to {data['folder']}\n")


@COMMANDS.add("import")
@_on_session
def _import(_: Namespace, connection: Connection, display: Display) -> None:
    """Import the sessions of .npl/sessions that are not known yet."""
    data = connection.ask("worklog_import")
    display.text(f"{data['sessions']} sessions with {data['entries']} entries taken over\n")
    if data["skipped_lines"]:
        display.note(f"{data['skipped_lines']} lines are no entries")


_EXAMPLES = """\
npl-worklog init --task "Find calls without a retry"   # start a session for today
npl-worklog init --id retry-audit                      # with a name
npl-worklog current || npl-worklog init
npl-worklog log --agent scout-1 --action found --summary "3 of 14 calls" --tags retry,pay
npl-worklog log --agent scout-1 --action found --summary x --data '{"calls": 14}'
npl-worklog read --agent main                          # each entry is printed once
npl-worklog read --agent main --since 0 --json         # everything from the beginning
npl-worklog status --session retry-audit --json
npl-worklog list --all
npl-worklog close --archive
npl-worklog export retry-audit reports/retry
npl-worklog import
"""

_NAMES = 'npl-worklog list --all 2>/dev/null | sed "s/^..//; s/ .*//"'
"""Lists the sessions, for the completion in shells."""

PROGRAM = Program(
    "npl-worklog",
    "npl-worklog [-h] [--via TRANSPORT] COMMAND ...",
    "What agents on one project report to each other: numbered entries in sessions, and how far each\n"
    "agent has read. The working directory is the project, or the folder that NPL_PROJECT names.",
    COMMANDS,
    (VIA,),
    examples=_EXAMPLES,
    exits="""\
Exit codes: 0 done; 1 there is no such session, or --data is no JSON; 2 a command line or a value that cannot
be used; 65 the session is closed; 69 no server answers; 70 a bug; 73 the id differs from an existing one only
in case; 74 the database or a file cannot be used; 76 the server's reply was lost: check before you retry;
77 not allowed; 130 interrupted; 141 the output was closed.
""",
    completed=(_NAMES, dict.fromkeys(COMMANDS, ("--session",)) | {"export": ("",)}),
)


if __name__ == "__main__":
    sys.exit(main())
