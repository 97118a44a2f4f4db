"""``npl-mcp-server``: runs the HTTP server; starts, stops and shows the server of a data folder."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from npl_mcp.cli.terminal.arguments import JSON, Commands, Program, server_flags, settings_of, switch
from npl_mcp.cli.terminal.display import USAGE, CommandResult, Display, run_command
from npl_mcp.cli.transports.http import problem_of
from npl_mcp.config import sessions
from npl_mcp.config.child_processes import inherited_environment, keep_absolute_path
from npl_mcp.config.clients import http_snippets
from npl_mcp.config.programs import python
from npl_mcp.config.server_state import ServerState, is_locked, running_server
from npl_mcp.config.settings import HTTP, Settings
from npl_mcp.http import service
from npl_mcp.http.service import AlreadyRunningError
from npl_mcp.server.startup import lasting, prepare_process, set_up_log

NOT_RUNNING = 3

START_SECONDS = 60.0

_MAIN = "from npl_mcp.cli.commands.serving import main; sys.exit(main())"
_TOKENS = "npl-mcp token add NAME prints one that lasts; npl-mcp-server config --show-token, one for this run"
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_YES_OR_NO = {"True": "yes", "False": "no"}


@contextmanager
def _with_settings(given: argparse.Namespace, display: Display) -> Iterator[tuple[Settings, Display]]:
    """Return the settings and the display."""
    if given.token and given.no_token:
        given.parser.error("argument --no-token: not allowed with argument --token")
    settings = settings_of(given)
    if given.socket and not given.port:  # a flag beats the variable of a port
        settings = replace(settings, port=None)
    yield settings, display


COMMANDS = Commands(_with_settings)


@COMMANDS.add("run")
def _run(_: argparse.Namespace, settings: Settings, display: Display) -> CommandResult:
    """Serve until a signal comes (the default)."""
    service.check(settings)
    prepare_process()
    set_up_log(settings.log_level, settings.data_folder / service.LOG)
    with lasting():
        # Importing FastMCP takes most of a second; the other commands need none of it.
        from npl_mcp.http.listening import serve

    try:
        serve(settings, lambda state: display.text(f"{_shown('npl-mcp-server: listening on', state)}\n"))
    except AlreadyRunningError as error:
        return CommandResult(problems=[str(error)])
    return CommandResult()


def _place(state: ServerState) -> str:
    return " and ".join(place for place in (state.url and f"{state.url}/mcp", state.socket) if place)


def _shown(word: str, state: ServerState) -> str:
    head, pages = f"{word} {_place(state)} (process {state.pid})", state.pages and f"pages: {state.pages}/"
    tokens = f"callers of the port need a token: {_TOKENS}" if state.guarded else None
    return "\n".join(filter(None, (head, pages, state.serves, tokens)))


@COMMANDS.add("start")
def _start(_: argparse.Namespace, settings: Settings, display: Display) -> CommandResult:
    """Serve in the background; return once the server answers."""
    service.check(settings)
    folder = settings.data_folder
    log, child, before = folder / service.LOG, None, 0
    end = time.monotonic() + START_SECONDS
    while child is None or (time.monotonic() < end and (child.poll() is None or is_locked(folder))):
        state = running_server(folder)
        if state is not None and problem_of(state) is None:
            if child is not None and state.pid == child.pid:
                return CommandResult(_shown("running:", state))
            if child is not None:
                # Another server has the lock; the child would take it after that server's end.
                child.kill()
                child.wait()
            text = _shown("already running (npl-mcp-server stop ends it):", state)
            return CommandResult(text, problems=_differences(settings, state))
        if child is None:
            with service.writing_to(folder):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                before = log.stat().st_size if log.exists() else 0
                child = _spawn(settings)
        time.sleep(0.05)
    child.terminate()
    for line in log.read_bytes()[before:].decode("utf-8", "replace").splitlines()[-3:]:
        display.say(line)
    code = child.returncode if child.returncode in (1, USAGE) else 1
    return CommandResult(problems=[f"not started; the log is {log}"], code=code)


def _differences(settings: Settings, state: ServerState) -> list[str]:
    """Return the problem that a server was started without a flag of this start."""
    flags = [f"{given.source}=" for name, given in settings.sources.items() if given.source == f"--{name}"]
    lines = set(settings.given.split("\n")) - set(state.given.split("\n")) if state.given else ()
    others = ", ".join(flag[:-1] for flag in flags if any(line.startswith(flag) for line in lines))
    return [f"that server was started with other values of {others}: stop it first"] if others else []


@COMMANDS.add("open")
def _open(_: argparse.Namespace, settings: Settings, display: Display) -> CommandResult:
    """Open the pages of the running server in a browser."""
    state = running_server(settings.data_folder, only_own=True)
    if state is None:
        return CommandResult(problems=["not running; start it with npl-mcp-server start"], code=NOT_RUNNING)
    if state.pages is None or not state.pages.startswith(("http://", "https://")):
        return CommandResult(problems=["the server has no pages; start it on a port and without --web off"])
    if state.guarded:
        display.note("the page asks for a token; npl-mcp-server config --show-token prints one")
    keep_absolute_path()  # webbrowser searches it for a browser
    opened = webbrowser.open(f"{state.pages}/")
    problems = [] if opened else ["no browser could be started; open the address yourself"]
    return CommandResult(f"{state.pages}/", problems=problems)


def _spawn(settings: Settings) -> subprocess.Popen[bytes]:
    """Start a server that outlives this process; its token is hidden from other users."""
    command = [*python(_MAIN), "run", *settings.flags]
    environment = inherited_environment({"NPL_MCP_TOKEN": settings.token} if settings.token else {})
    with os.fdopen(os.open(settings.data_folder / service.LOG, _APPEND, 0o600), "ab") as log:
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


@COMMANDS.add("stop")
def _stop(_: argparse.Namespace, settings: Settings, __: Display) -> CommandResult:
    """End the server and the sessions of the data folder; the next message of a client begins them again."""
    try:
        state, ended = service.stop(settings.data_folder), service.stop_sessions(settings.data_folder)
    except (TimeoutError, OSError) as error:
        return CommandResult(problems=[str(error)])
    lines = [] if state is None else [f"stopped: {_place(state)} (process {state.pid})"]
    lines += [] if ended is None else [f"stopped: {ended['sessions']} sessions (process {ended['process']})"]
    return CommandResult("\n".join(lines) or "not running", code=0 if lines else NOT_RUNNING)


@COMMANDS.add("status", JSON)
def _status(_: argparse.Namespace, settings: Settings, __: Display) -> CommandResult:
    """Show the server and the sessions of the data folder; exit code 3 if none runs."""
    state, shared = running_server(settings.data_folder), sessions.ask(str(settings.data_folder))
    rows: dict[str, object] = {"state": "not running"}
    if state is not None:
        rows = {
            "state": problem_of(state) or "running",
            "address": state.url and f"{state.url}/mcp",
            "pages": state.pages and f"{state.pages}/",
            "socket": state.socket,
            "process": state.pid,
            "version": state.version,
            "documents": state.serves,
            "uptime_seconds": int(max(0.0, time.time() - state.since)),
            "token_needed": state.guarded,
        }
    if shared is not None:
        rows["sessions"] = "\n  ".join(shared["lines"])
    rows["data_folder"] = str(settings.data_folder)
    shown = {name.replace("_", " "): value for name, value in rows.items() if value is not None}
    text = "\n".join(f"{name}: {_YES_OR_NO.get(str(value), value)}" for name, value in shown.items())
    return CommandResult(text, rows, code=NOT_RUNNING if state is None and shared is None else 0)


@COMMANDS.add("config", switch("--show-token", help="print the token"))
def _config(given: argparse.Namespace, settings: Settings, display: Display) -> CommandResult:
    """Print the entries for clients."""
    state = running_server(settings.data_folder)
    if state is None:
        display.note("not running; this is for a server started with these options")
    base = state.url if state else settings.port and f"http://{settings.host}:{settings.port}"
    if not base:
        return CommandResult(problems=["MCP clients cannot use a Unix socket; start it with --port as well"])
    guarded = state.guarded if state else settings.token is not None or service.needs_token(settings)
    known = settings.token or (state.token if state else None)
    token = known if given.show_token and known else "YOUR_TOKEN"
    if guarded and token != known:
        later = "" if state else " once the server runs"
        display.note(f"replace YOUR_TOKEN with a token: --show-token shows the token{later}")
    return CommandResult(http_snippets(f"{base}/mcp", token if guarded else None).rstrip("\n"))


PROGRAM = Program("npl-mcp-server", COMMANDS, server_flags(HTTP), default=COMMANDS["run"].run)
parser = PROGRAM.parser
main = partial(run_command, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
