"""``npl-worklog``: what agents on one project report to each other, from the command line."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from npl_index.errors import escaped
from npl_mcp.cli.terminal.arguments import (
    JSON,
    SHELL,
    VIA,
    Command,
    Program,
    argument,
    parser_of,
    read_command,
    read_rest,
    switch,
    version,
    whole_number,
)
from npl_mcp.cli.terminal.display import Display, run_program
from npl_mcp.cli.transports.connecting import Connection, connect
from npl_mcp.config.completion import script

NO_SESSION = 1
"""Exit code if there is no session, or ``--data`` is no JSON."""

PAGE = 1_000
"""Entries that are read at a time."""

_SESSION = argument("--session", metavar="ID", help="the session (default: the current one)")

COMMANDS: dict[str, Command] = {
    "init": Command(
        "start a session and print its id",
        (
            argument("--id", metavar="ID", help="its id (default: today's date, UTC)"),
            argument("--task", metavar="TEXT", help="what it is about"),
        ),
    ),
    "current": Command("print the id of the current session"),
    "log": Command(
        "append an entry",
        (
            argument("--agent", required=True, metavar="ID", help="who reports"),
            argument(
                "--action", required=True, metavar="WORD", help="kind of event, e.g. found, decided, done"
            ),
            argument("--summary", required=True, metavar="TEXT", help="the event in words"),
            argument("--type", metavar="TYPE", help="kind of agent (default: unknown)"),
            argument("--data", metavar="JSON", help="details"),
            argument("--tags", metavar="A,B", help="words to filter by"),
            _SESSION,
        ),
    ),
    "read": Command(
        "print what an agent has not read yet",
        (
            argument("--agent", required=True, metavar="ID", help="who reads"),
            switch("--peek", help="do not mark it as read"),
            argument("--since", type=whole_number, metavar="N", help="print what follows entry N instead"),
            argument(
                "--wait",
                type=whole_number,
                metavar="SECONDS",
                help="wait for an entry, if there is no new one",
            ),
            _SESSION,
            JSON,
        ),
    ),
    "status": Command("describe a session", (_SESSION, JSON)),
    "list": Command(
        "list the sessions, the newest first; * marks the current one",
        (switch("--all", help="also the archived ones, by names that --session takes"), JSON),
    ),
    "close": Command(
        "close a session for good", (switch("--archive", help="also move it to the archive"), _SESSION)
    ),
    "export": Command(
        "write the files of a session, to .npl/sessions or FOLDER",
        (
            argument("session", nargs="?", metavar="SESSION"),
            argument("folder", nargs="?", metavar="FOLDER"),
        ),
    ),
    "import": Command("import the sessions of .npl/sessions that are not known yet"),
    "completion": SHELL,
}

PROGRAM = Program(
    "npl-worklog",
    "What agents on one project report to each other: numbered entries in sessions, and how far each\n"
    "agent has read. The working directory is the project, or the folder that NPL_PROJECT names.",
    "npl-worklog [-h] [--via TRANSPORT] COMMAND ...",
    COMMANDS,
    (version("npl-worklog"),),
    (VIA,),
)

_NAMES = 'npl-worklog list --all 2>/dev/null | sed "s/^..//; s/ .*//"'
"""Lists the sessions, for the completion in shells."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    :param words: the command line without the program's name, by default the process's.
    :returns: the exit code.
    """
    return run_program(PROGRAM.name, lambda display: _run(read_rest(read_command(PROGRAM, words)), display))


def _run(given: Namespace, display: Display) -> int:
    if given.command == "completion":
        named = dict.fromkeys(COMMANDS, ("--session",)) | {"export": ("",)}
        display.text(script(given.shell, parser_of(PROGRAM), _NAMES, named))
        return 0
    connection = connect(given.via, display.note)
    try:
        return RUN[given.command](given, connection, display) or 0
    except _RefusedError as refused:
        return _failed(refused.args[0], display, _SESSION_NAMES.get(given.command, "--session"))
    finally:
        connection.close()


class _RefusedError(Exception):
    """A tool has failed; the argument is its reply."""


def _call(connection: Connection, tool: str, **arguments: Any) -> Any:
    """Return what a tool answers.

    :raises _RefusedError: it failed.
    """
    reply = connection.call(tool, **arguments)
    if not reply["success"]:
        raise _RefusedError(reply)
    return reply["data"]


def _init(given: Namespace, connection: Connection, display: Display) -> None:
    data = _call(connection, "worklog_open", session_id=given.id, task=given.task)
    if not data["new"]:
        display.say(f"Session already exists: {data['session_id']}")
    display.text(f"{data['session_id']}\n")


def _current(_: Namespace, connection: Connection, display: Display) -> int:
    data = _call(connection, "worklog_current")
    if "session_id" not in data:
        display.say("No active session")
        return NO_SESSION
    display.text(f"{data['session_id']}\n")
    return 0


def _log(given: Namespace, connection: Connection, display: Display) -> int:
    try:
        data = json.loads(given.data) if given.data else None
    except (ValueError, RecursionError) as error:
        display.say(f"Error: {error}")
        return NO_SESSION
    logged = _call(
        connection,
        "worklog_log",
        agent_id=given.agent,
        agent_type=given.type,
        action=given.action,
        summary=given.summary,
        data=data,
        tags=[tag.strip() for tag in given.tags.split(",")] if given.tags else None,
        session_id=given.session or None,
    )
    display.text(f"Logged entry #{logged['seq']} to session {logged['session_id']}\n")
    return 0


def _read(given: Namespace, connection: Connection, display: Display) -> int:
    """Print page after page: what the server marks as read has been printed, even if the next page fails."""
    position = None if given.since is None else max(given.since, 0)
    entries: list[dict[str, Any]] = []
    code = 0
    waiting = {} if given.wait is None else {"wait": given.wait}
    while True:
        reply = connection.call(
            "worklog_read",
            agent_id=given.agent,
            peek=given.peek,
            since=position,
            session_id=given.session or None,
            limit=PAGE,
            **waiting,
        )
        waiting = {}  # what follows is there already
        if not reply["success"]:
            code = _failed(reply, display)
            break
        page = reply["data"]
        if given.json:
            entries += page["items"]
        else:
            display.text("".join(map(_line, page["items"])))
        if not page["items"] or not page["remaining"]:
            break
        position = page["items"][-1]["seq"]
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


def _status(given: Namespace, connection: Connection, display: Display) -> None:
    data = _call(connection, "worklog_status", session_id=given.session or None)
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


def _list(given: Namespace, connection: Connection, display: Display) -> None:
    sessions = _call(connection, "worklog_sessions", archived=given.all)["sessions"]
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


def _close(given: Namespace, connection: Connection, display: Display) -> None:
    session = given.session or None
    data = _call(connection, "worklog_close", archive=given.archive, session_id=session)
    done = "archived" if given.archive else "closed"
    display.text(f"Session {data['session_id']} {done}\n")


def _export(given: Namespace, connection: Connection, display: Display) -> None:
    data = _call(connection, "worklog_export", session_id=given.session, folder=given.folder)
    display.text(f"written to {data['folder']}\n")


def _import(_: Namespace, connection: Connection, display: Display) -> None:
    data = _call(connection, "worklog_import")
    display.text(f"{data['sessions']} sessions with {data['entries']} entries taken over\n")
    if data["skipped_lines"]:
        display.note(f"{data['skipped_lines']} lines are no entries")


RUN: Mapping[str, Callable[[Namespace, Connection, Display], int | None]] = {
    "init": _init,
    "current": _current,
    "log": _log,
    "read": _read,
    "status": _status,
    "list": _list,
    "close": _close,
    "export": _export,
    "import": _import,
}

_SESSION_NAMES = {"init": "--id", "export": "SESSION"}
"""How commands name their session that have no ``--session``."""

FLAGS: Mapping[str, str] = {
    "since": "--since",
    "wait": "--wait",
    "agent_id": "--agent",
    "agent_type": "--type",
    "action": "--action",
    "summary": "--summary",
    "tags": "--tags",
    "data": "--data",
    "task": "--task",
    "folder": "FOLDER",
}
"""Parameters of the tools as this command line names them."""


def _failed(reply: Mapping[str, Any], display: Display, session: str = "--session") -> int:
    """Report a tool that failed; missing sessions in the words of earlier versions.

    :param session: how the command names its session.
    """
    problem = str(reply["error"])
    if reply["error_code"] in ("SESSION_NOT_FOUND", "NOT_FOUND"):  # earlier servers say NOT_FOUND
        first, _, near = problem.partition("; ")
        display.say(first if first == "No active session" else f"Error: {first}")
        if near.startswith("near: "):
            display.say(near)
        return NO_SESSION
    problem = problem.replace("worklog_init, without session_id", f"{PROGRAM.name} init")
    return display.failed({**reply, "error": problem}, {**FLAGS, "session_id": session})


if __name__ == "__main__":
    sys.exit(main())
