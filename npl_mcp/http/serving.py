"""``npl-mcp-server``: runs the HTTP server; starts, stops and shows the server of a data folder."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from npl_mcp.cli.terminal.arguments import (
    JSON,
    Commands,
    Program,
    add_options,
    settings_of,
    switch,
)
from npl_mcp.cli.terminal.display import USAGE, CommandResult, Display, run_program
from npl_mcp.config.child_processes import inherited_environment, keep_absolute_path
from npl_mcp.config.clients import http_snippets
from npl_mcp.config.programs import python
from npl_mcp.config.server_state import ServerState, is_held, running_server
from npl_mcp.config.settings import DEFAULT_PORT, HTTP, SETTINGS, Settings, add_flags
from npl_mcp.http import service
from npl_mcp.http.service import AlreadyRunningError
from npl_mcp.server.logs import set_up_log
from npl_mcp.server.startup import lasting

NAME = "npl-mcp-server"
NOT_RUNNING = 3

START_SECONDS = 60.0

_FOREGROUND = "--foreground"
_MAIN = "from npl_mcp.http.serving import main; sys.exit(main())"
_TOKENS = "npl-mcp token add NAME prints one that lasts; npl-mcp-server config --show-token, one for this run"
_NEW_TOKEN = "npl-mcp token add NAME prints a new one"
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND

FORMER = {"web": "run", "unified": "run", "launcher": "start"}
"""Programs of earlier versions, such as ``npl-mcp-web``, each with its equivalent command."""

_EXAMPLES = """\
npl-mcp-server start                         # in the background, at http://127.0.0.1:8765/mcp
npl-mcp-server open                          # its pages, in a browser
npl-mcp-server status
npl-mcp-server config                        # for Claude Code, Cursor and others
npl-mcp-server stop
npl-mcp-server --socket ~/.npl.sock          # for this user alone
NPL_MCP_TOKEN=... npl-mcp-server --host 0.0.0.0 --allow-host tools.example
"""

_NOTES = """\
Each option, such as --root DIR, may also stand after a command, and has a variable of the environment; see
SETTINGS.md. A token that is set there does not show in the list of processes.

Former names: npl-mcp-web and npl-mcp-unified are run, npl-mcp-launcher is start; web, unified and launcher
are taken as commands, too.
"""

COMMANDS = Commands()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    :returns: the exit code: 0; 1 after a failure; 2 for invalid arguments or settings; 3 without a server.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    return run_program(NAME, lambda display: _main(words, display))


def _main(words: Sequence[str], display: Display) -> int:
    reader = parser()
    given = reader.parse_args(words)
    command, name = given.command, given.flag or given.command or "run"
    if command == "completion":
        given.run(given, display)
        return 0
    if command not in (None, name, *FORMER):
        reader.error(f"--{name} and {command} are two commands: write one")
    if given.token and given.no_token:
        reader.error("argument --no-token: not allowed with argument --token")
    if command in FORMER and not given.foreground:
        display.note(f"{command} is a former name; write {NAME} {FORMER[command]}")
    given.words, given.settings = words, _settings(given)
    try:
        code: int = COMMANDS[name].run(given, display)
    except AlreadyRunningError as error:
        display.note(str(error))
        return 1
    return code


def _settings(options: argparse.Namespace) -> Settings:
    settings = settings_of(options)
    listening = settings.listening
    if options.port is not None:
        return settings
    if options.socket is not None:
        listening = replace(listening, port=None if options.host is None else DEFAULT_PORT)
    elif options.host is not None and listening.port is None:
        listening = replace(listening, port=DEFAULT_PORT)
    return replace(settings, listening=listening)


def _flags(given: argparse.Namespace) -> str:
    """Return the flags of a server, with absolute paths and without the token."""
    names = (name.replace("-", "_") for name in SETTINGS if name != "data-dir")
    flags = {name: value for name in names if (value := getattr(given, name, None))}
    flags |= {"token": True} if given.token else {}
    return json.dumps(flags, default=lambda place: str(place.absolute()))


@COMMANDS.add("run")
def _run(given: argparse.Namespace, display: Display) -> int:
    """Serve until a signal comes (the default)."""
    service.check(given.settings)
    set_up_log(given.settings.log_level)
    with lasting():
        # Importing FastMCP takes most of a second; the other commands need none of it.
        from npl_mcp.http.listening import serve

    serve(given.settings, partial(_show_running, display, "npl-mcp-server: listening on"), _flags(given))
    return 0


def _place(state: ServerState) -> str:
    return " and ".join(place for place in (state.url and f"{state.url}/mcp", state.socket) if place)


@COMMANDS.add("start")
def _start(given: argparse.Namespace, display: Display) -> int:
    """Serve in the background; return once the server answers."""
    if given.foreground:
        return _run(given, display)
    settings, flags = given.settings, _flags(given)
    service.check(settings)
    folder = settings.data_folder
    state = running_server(folder)
    if state is not None and service.answers(state):
        return _already(state, flags, display)
    log = folder / service.LOG
    with service.writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = log.stat().st_size if log.exists() else 0
        child = _spawn(settings, given.words)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        state = running_server(folder)
        if state is not None and service.answers(state):
            if state.pid == child.pid:
                _show_running(display, "running:", state)
                return 0
            # Another server has the lock; the child would take it after that server's end.
            child.kill()
            child.wait()
            return _already(state, flags, display)
        if child.poll() is not None and not is_held(folder):
            break
        time.sleep(0.05)
    child.terminate()
    lines = log.read_bytes()[before:].decode("utf-8", "replace").splitlines()[-3:]
    for line in lines:
        display.say(line)
    display.note(f"not started; the log is {log}")
    return child.returncode if child.returncode in (1, USAGE) else 1


def _already(state: ServerState, flags: str, display: Display) -> int:
    """Print the running server, and fail if its flags differ."""
    _show_running(display, "already running:", state)
    theirs = json.loads(state.flags)
    others = [name for name, value in json.loads(flags).items() if theirs.get(name) != value]
    if others:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in others)
        display.note(f"ignored: {names}; to apply them: npl-mcp-server stop, then start")
    return 1 if others else 0


def _show_running(display: Display, word: str, state: ServerState) -> None:
    display.text(f"{word} {_place(state)} (process {state.pid})\n")
    if state.pages is not None:
        display.text(f"pages: {state.pages}/\n")
    display.text(f"{state.serves}\n")
    if state.guarded:
        display.text(f"callers of the port need a token: {_TOKENS}\n")


@COMMANDS.add("open")
def _open(given: argparse.Namespace, display: Display) -> int:
    """Open the pages of the running server in a browser."""
    state = running_server(given.settings.data_folder, only_own=True)
    if state is None:
        display.note("not running; start it with npl-mcp-server start")
        return NOT_RUNNING
    if state.pages is None or not state.pages.startswith(("http://", "https://")):
        display.note("the server has no pages; start it on a port and without --web off")
        return 1
    display.text(f"{state.pages}/\n")
    if state.guarded:
        display.note("the page asks for a token; npl-mcp-server config --show-token prints one")
    keep_absolute_path()  # webbrowser searches it for a browser
    if not webbrowser.open(f"{state.pages}/"):
        display.note("no browser could be started; open the address yourself")
        return 1
    return 0


def _spawn(settings: Settings, given: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a server that outlives this process; its token is hidden from other users."""
    token = settings.listening.token
    with os.fdopen(os.open(settings.data_folder / service.LOG, _APPEND, 0o600), "ab") as log:
        return subprocess.Popen(
            [*python(_MAIN), *_without_token(given), _FOREGROUND],
            env=inherited_environment({"NPL_MCP_TOKEN": token} if token else {}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _without_token(given: Sequence[str]) -> list[str]:
    """Return the arguments without the token, which would be public in the list of processes."""
    return [
        one
        for before, one in zip(("", *given), given, strict=False)
        if "--token" not in (one, before) and not one.startswith("--token=")
    ]


@COMMANDS.add("stop")
def _stop(given: argparse.Namespace, display: Display) -> int:
    """End the server of the data folder."""
    try:
        state = service.stop(given.settings.data_folder)
    except (TimeoutError, PermissionError) as error:
        display.note(str(error))
        return 1
    if state is None:
        display.text("not running\n")
        return NOT_RUNNING
    display.text(f"stopped: {_place(state)} (process {state.pid})\n")
    return 0


@COMMANDS.add("status", JSON)
def _status(given: argparse.Namespace, display: Display) -> int:
    """Show the server of the data folder; exit code 3 if none runs."""
    settings, as_json = given.settings, getattr(given, "json", False)
    state = running_server(settings.data_folder)
    if state is None:
        none = {"state": "not running", "data_folder": str(settings.data_folder)}
        display.outcome(
            CommandResult(f"not running\ndata folder: {settings.data_folder}", none), as_json=as_json
        )
        return NOT_RUNNING
    uptime = int(max(0.0, time.time() - state.since))
    rows: dict[str, object] = {
        "state": "running" if service.answers(state) else "does not answer",
        "address": state.url and f"{state.url}/mcp",
        "pages": state.pages and f"{state.pages}/",
        "socket": state.socket,
        "process": state.pid,
        "version": state.version,
        "documents": state.serves,
        "data_folder": str(settings.data_folder),
    }
    token = "needed" if state.guarded else "not needed"
    told = {**rows, "uptime": _duration(uptime), "token": token}
    text = "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in told.items() if value)
    data = {**rows, "uptime_seconds": uptime, "token_needed": state.guarded}
    return display.outcome(CommandResult(text, data), as_json=as_json)


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


@COMMANDS.add("config", switch("--show-token", help="print the token"))
def _config(given: argparse.Namespace, display: Display) -> int:
    """Print the entries for clients."""
    settings, show_token = given.settings, getattr(given, "show_token", False)
    state = running_server(settings.data_folder)
    listening = settings.listening
    if state is None:
        display.note("not running; this is for a server started with these options")
    base = state.url if state else listening.port and f"http://{listening.host}:{listening.port}"
    if not base:
        display.note("MCP clients cannot use a Unix socket; start the server with --port as well")
        return 1
    guarded = state.guarded if state else listening.token is not None or service.needs_token(listening)
    known = listening.token or (state.token if state else None)
    token = known if show_token and known else "YOUR_TOKEN"
    if guarded and token != known:
        shows = "--show-token shows the token" + (" once the server runs" if state is None else "")
        way = shows if known or state is None else _NEW_TOKEN
        display.note(f"replace YOUR_TOKEN with a token: {way}")
    display.text(http_snippets(f"{base}/mcp", token if guarded else None))
    return 0


def _options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands."""
    flags = parser.add_mutually_exclusive_group()
    for name in ("config", "status", "stop"):
        flags.add_argument(
            f"--{name}", dest="flag", action="store_const", const=name, help=f"the same as {name}"
        )
    parser.add_argument(_FOREGROUND, action="store_true", help=argparse.SUPPRESS)
    add_flags(parser, HTTP)
    add_options(parser)


for _name, _new in FORMER.items():
    COMMANDS[_name] = replace(COMMANDS[_new], help=f"A former name of {_new}")
PROGRAM = Program(
    NAME,
    f"{NAME} [OPTION ...] [COMMAND]",
    "Serves Markdown documents by section, over HTTP, to MCP clients and to npl-load.",
    COMMANDS,
    settings=_options,
    examples=_EXAMPLES,
    exits=_NOTES,
)
parser = PROGRAM.parser


if __name__ == "__main__":
    sys.exit(main())
