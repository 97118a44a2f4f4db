"""``npl-worklog``: what agents on one project report to each other, from the command line."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from npl_mcp.cli.terminal.arguments import COMMON, Command, Given, Option, UsageError, read_command
from npl_mcp.cli.terminal.display import USAGE, Display, run_quietly
from npl_mcp.cli.transports.connecting import Way, connect

PROGRAM = "npl-worklog"

NO_SESSION = 1
"""Exit code where there is no session, or what was given for ``--data`` is no JSON."""

PAGE = 1_000
"""Entries that are asked for at a time."""

_SESSION = Option("--session", "ID", "the session (default: the current one)")
_JSON = Option("--json", help="print JSON")

COMMANDS: dict[str, Command] = {
    "init": Command(
        "",
        0,
        "start a session and print its id",
        (
            Option("--id", "ID", "its id (default: today's date, UTC)"),
            Option("--task", "TEXT", "what it is about"),
        ),
    ),
    "current": Command("", 0, "print the id of the current session"),
    "log": Command(
        "",
        0,
        "append an entry",
        (
            Option("--agent", "ID", "who reports (required)"),
            Option("--action", "WORD", "what kind of event it is, e.g. found, decided, done (required)"),
            Option("--summary", "TEXT", "the event in words (required)"),
            Option("--type", "TYPE", "kind of agent (default: unknown)"),
            Option("--data", "JSON", "details"),
            Option("--tags", "A,B", "words to filter by"),
            _SESSION,
        ),
    ),
    "read": Command(
        "",
        0,
        "print what an agent has not read yet",
        (
            Option("--agent", "ID", "who reads (required)"),
            Option("--peek", help="do not count it as read"),
            Option("--since", "N", "print what comes after entry N instead"),
            _SESSION,
            _JSON,
        ),
    ),
    "status": Command("", 0, "describe a session", (_SESSION, _JSON)),
    "list": Command(
        "",
        0,
        "list the sessions, the newest first; * marks the current one",
        (Option("--all", help="the archived ones too, by names that --session takes"), _JSON),
    ),
    "close": Command(
        "", 0, "close a session for good", (Option("--archive", help="move it to the archive too"), _SESSION)
    ),
    "export": Command(
        "[SESSION [FOLDER]]", 2, "write the files of a session anew, in .npl/sessions or FOLDER"
    ),
    "import": Command("", 0, "take in sessions of .npl/sessions that are not known yet"),
    "completion": Command("bash|zsh", 1, "print a script that completes this command line"),
}

FIRST = (Option("--version", help="print the version"),)
"""Options that stand before the command."""

ALWAYS = tuple(option for option in COMMON if option.name != "--strict")
"""Options of every command."""

REQUIRED: Mapping[str, Sequence[str]] = {"log": ("agent", "action", "summary"), "read": ("agent",)}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    :param words: the command line without the program's name, by default the process's.
    :returns: the exit code.
    """
    return run_quietly(_run, sys.argv[1:] if words is None else words, PROGRAM)


def _run(words: Sequence[str], display: Display) -> int:
    try:
        given = read_command(words, COMMANDS, FIRST, ALWAYS)
        if given.has("help") or given.has("version") or given.command == "completion":
            return int(_help().show(given, COMMANDS, ALWAYS, display))
        absent = [f"--{name}" for name in REQUIRED.get(given.command, ()) if not given.has(name)]
        if absent:
            raise UsageError(f"the following arguments are required: {', '.join(absent)}", given.command)
        way = connect(given.last("via"), display.note)
        try:
            return RUN[given.command](given, way, display)
        finally:
            way.close()
    except UsageError as error:
        _help().show_usage(error, COMMANDS, display)
        return USAGE


def _help() -> Any:
    """Import what only those who need help wait for."""
    return importlib.import_module("npl_mcp.cli.terminal.worklog_help")


def _init(given: Given, way: Way, display: Display) -> int:
    reply = way.call("worklog_open", session_id=given.last("id"), task=given.last("task"))
    if not reply["success"]:
        return _failed(reply, display, session="--id")
    opened = reply["data"]
    if not opened["new"]:
        display.say(f"Session already exists: {opened['session_id']}")
    display.text(f"{opened['session_id']}\n")
    return _kept(opened, display)


def _current(_: Given, way: Way, display: Display) -> int:
    reply = way.call("worklog_current")
    if not reply["success"]:
        return _failed(reply, display)
    if "session_id" not in reply["data"]:
        display.say("No active session")
        return NO_SESSION
    display.text(f"{reply['data']['session_id']}\n")
    return 0


def _log(given: Given, way: Way, display: Display) -> int:
    tags, data = given.last("tags"), given.last("data")
    try:
        value = json.loads(data) if data else None
    except (ValueError, RecursionError) as error:
        display.say(f"Error: {error}")
        return NO_SESSION
    reply = way.call(
        "worklog_log",
        agent_id=given.last("agent"),
        agent_type=given.last("type"),
        action=given.last("action"),
        summary=given.last("summary"),
        data=value,
        tags=[tag.strip() for tag in tags.split(",")] if tags else None,
        session_id=given.last("session") or None,
    )
    if not reply["success"]:
        return _failed(reply, display)
    logged = reply["data"]
    display.text(f"Logged entry #{logged['seq']} to session {logged['session_id']}\n")
    return _kept(logged, display)


def _read(given: Given, way: Way, display: Display) -> int:
    """Print page after page, so that what was counted as read was printed, whatever happens then."""
    since = given.number("since")
    position = None if since is None else max(since, 0)
    entries: list[dict[str, Any]] = []
    code = 0
    while True:
        reply = way.call(
            "worklog_read",
            agent_id=given.last("agent"),
            peek=given.has("peek"),
            since=position,
            session_id=given.last("session") or None,
            limit=PAGE,
        )
        if not reply["success"]:
            code = _failed(reply, display)
            break
        page = reply["data"]
        if given.has("json"):
            entries += page["entries"]
        else:
            display.text("".join(map(_line, page["entries"])))
        if not page["entries"] or not page["remaining"]:
            break
        position = page["entries"][-1]["seq"]
    if given.has("json") and (entries or not code):
        display.text(_json([{name: _field(entry, name) for name in ENTRY} for entry in entries]))
    return code


ENTRY = ("seq", "ts", "agent_id", "agent_type", "action", "summary", "data", "tags", "refs")
SESSION = ("session_id", "status", "created", "task", "entry_count", "agents", "last_entry")
TIMES = ("ts", "created", "last_entry")


def _line(entry: Mapping[str, Any]) -> str:
    words = f"{entry['agent_id']}: {entry['action']} - {entry['summary']}"
    return f"[{entry['seq']}] {_field(entry, 'ts')} {words}\n"


def _field(row: Mapping[str, Any], name: str) -> Any:
    """Return a field as it was always printed: ``null`` where it is not set, times with ``+00:00``."""
    value = row.get(name)
    return value.removesuffix("Z") + "+00:00" if value is not None and name in TIMES else value


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _status(given: Given, way: Way, display: Display) -> int:
    reply = way.call("worklog_status", session_id=given.last("session") or None)
    if not reply["success"]:
        return _failed(reply, display)
    session = {name: _field(reply["data"], name) for name in SESSION}
    display.text(_json(session) if given.has("json") else "".join(_described(session)))
    return 0


def _described(session: Mapping[str, Any]) -> Iterator[str]:
    yield f"Session: {session['session_id']}\n"
    yield f"Status: {session['status']}\n"
    yield f"Created: {session['created']}\n"
    if session["task"]:
        yield f"Task: {session['task']}\n"
    yield f"Entries: {session['entry_count']}\n"
    yield f"Agents: {', '.join(session['agents']) or 'none'}\n"
    if session["last_entry"]:
        yield f"Last activity: {session['last_entry']}\n"


def _list(given: Given, way: Way, display: Display) -> int:
    reply = way.call("worklog_sessions", archived=given.has("all"))
    if not reply["success"]:
        return _failed(reply, display)
    sessions = reply["data"]["sessions"]
    if given.has("json"):
        display.text(_json([_row(session) for session in sessions]))
        return 0
    for session in sessions:
        mark = "*" if session["current"] else " "
        counts = f"entries={session['entry_count']} agents={len(session['agents'])}"
        display.text(f"{mark} {_name(session)} [{session['status']}] {counts}\n")
    return 0


def _row(session: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _field(session, name) for name in SESSION} | {"session_id": _name(session)}


def _name(session: Mapping[str, Any]) -> str:
    """Return the name by which ``--session`` finds it: an archived id may be used again."""
    archived = session.get("archived_as")
    return session["session_id"] if archived is None else f"archive/{archived}"


def _close(given: Given, way: Way, display: Display) -> int:
    session = given.last("session") or None
    reply = way.call("worklog_close", archive=given.has("archive"), session_id=session)
    if not reply["success"]:
        return _failed(reply, display)
    done = "archived" if given.has("archive") else "closed"
    display.text(f"Session {reply['data']['session_id']} {done}\n")
    return _kept(reply["data"], display)


def _export(given: Given, way: Way, display: Display) -> int:
    session, folder = (*given.words, None, None)[:2]
    reply = way.call("worklog_export", session_id=session, folder=folder)
    if not reply["success"]:
        return _failed(reply, display, session="SESSION")
    display.text(f"written to {reply['data']['folder']}\n")
    return 0


def _import(_: Given, way: Way, display: Display) -> int:
    reply = way.call("worklog_import")
    if not reply["success"]:
        return _failed(reply, display)
    done = reply["data"]
    display.text(f"{done['sessions']} sessions with {done['entries']} entries taken over\n")
    if done["skipped_lines"]:
        display.note(f"{done['skipped_lines']} lines are no entries")
    return 0


RUN: Mapping[str, Callable[[Given, Way, Display], int]] = {
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


def _kept(data: Mapping[str, Any], display: Display) -> int:
    """Say so where the database has it and the project's folder has not."""
    if data.get("exported") is False:
        display.note("kept, but .npl/sessions could not be written")
    return 0


FLAGS: Mapping[str, str] = {
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
    """Report a tool that failed; sessions that are not there as they were always reported.

    :param session: how the command names its session.
    """
    problem = str(reply["error"])
    if reply["error_code"] == "NOT_FOUND":
        first, _, near = problem.partition("; ")
        display.say(first if first == "No active session" else f"Error: {first}")
        if near.startswith("near: "):
            display.say(near)
        return NO_SESSION
    first, *more = problem.split(" ", 1)
    name = session if first == "session_id" else FLAGS.get(first, first)
    problem = " ".join([name, *more]).replace("worklog_init", f"{PROGRAM} init --id ID")
    return display.failed({**reply, "error": problem})


if __name__ == "__main__":
    sys.exit(main())
