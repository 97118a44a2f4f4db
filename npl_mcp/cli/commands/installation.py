"""``npl-mcp doctor`` and ``config show``: checks of this installation with remedies, and its settings."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from npl_index.choices import Weights
from npl_index.errors import DocumentTooLargeError, NPLError, escaped
from npl_index.index.driver import FTS5_REMEDY, driver, missing_search
from npl_index.library.catalog import Root
from npl_index.library.files import read_path
from npl_index.library.ignoring import MAX_BYTES
from npl_index.library.roots import Roots, skipped_text
from npl_index.library.walking import Walk
from npl_index.tokens.counting import base_vocabulary
from npl_index.tokens.exact import best_counter, vocabulary_files
from npl_mcp import __version__
from npl_mcp.cli.terminal.arguments import JSON, Commands, settings_of
from npl_mcp.cli.terminal.display import PROBLEMS, CommandResult, Display, table
from npl_mcp.cli.transports.http import problem_of
from npl_mcp.config import sessions
from npl_mcp.config.child_processes import find_program
from npl_mcp.config.clients import READING, Entry, npl_entries
from npl_mcp.config.kinds import DATABASE_SERVERS
from npl_mcp.config.server_state import is_locked, running_server
from npl_mcp.config.settings import SETTINGS, Settings
from npl_mcp.stores.base.database import HEAD
from npl_mcp.stores.base.errors import RESTORE
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.base.sqlite import REMEDY, weakness

OK, WARNING, PROBLEM = "ok", "warning", "problem"

_FEWER_TOOLS = re.compile("--domains|--small-list|NPL_DOMAINS|NPL_SMALL_LIST")
_LATER = "created when it is first needed"

MAX_ENTRIES = 20_000
"""Entries of a root that are counted, in a fraction of a second."""


class Finding(NamedTuple):
    """The result of one check.

    :param name: name of the checked thing.
    :param state: :data:`OK`, :data:`WARNING` or :data:`PROBLEM`.
    :param text: description of the state.
    :param fix: remedy, if there is one.
    """

    name: str
    state: str
    text: str
    fix: str | None = None


COMMANDS = Commands()


@COMMANDS.add("doctor", JSON)
def _doctor(given: argparse.Namespace, _: Display) -> CommandResult:
    """Check this installation and suggest remedies."""
    try:
        findings = list(examine(settings_of(given, check_roots=False)))
    except NPLError as error:
        findings = [Finding("settings", PROBLEM, str(error))]
    states = [finding.state for finding in findings]
    sound = PROBLEM not in states
    data = {"ok": sound, "version": __version__, "findings": [finding._asdict() for finding in findings]}
    lines = (((state, name, text), ("", "", fix or "")) for name, state, text, fix in findings)
    rows = table([row for pair in lines for row in pair if row[2]])
    text = f"{rows}\nproblems: {states.count(PROBLEM)}, warnings: {states.count(WARNING)}"
    return CommandResult(text, data, code=0 if sound else PROBLEMS)


def examine(settings: Settings) -> Iterator[Finding]:
    """Check everything that a server depends on, without changing anything."""
    yield Finding("Python", OK, f"{platform.python_version()}, npl-mcp {__version__}")
    yield _sqlite()
    for root in settings.roots or (settings.cwd,):
        yield _root("root" if settings.roots else "working directory", root, settings)
    if settings.write:
        yield _writing(settings)
    yield _vocabulary(settings)
    yield _data_folder(settings.data_folder)
    yield _database(settings)
    yield _server(settings.data_folder)
    yield from _sessions(settings)
    yield from _clients(settings)


def _sqlite() -> Finding:
    if (problem := missing_search()) is not None:
        return Finding("SQLite", PROBLEM, problem, FTS5_REMEDY)
    if (problem := weakness()) is not None:
        return Finding("SQLite", WARNING, problem, REMEDY)
    return Finding("SQLite", OK, f"{driver().sqlite_version}, driver {driver().__name__.partition('.')[0]}")


def _writing(settings: Settings) -> Finding:
    problem = settings.unwritable
    if problem is None:
        places = f", in {', '.join(settings.write)}" if isinstance(settings.write, tuple) else ""
        return Finding("write", OK, f"tools may change sections of files below the roots{places}")
    fix = "set a root by --root, NPL_ROOTS, or root in your own npl.toml"
    return Finding("write", WARNING, f"{problem}, so tools may not change files", fix)


def _root(name: str, folder: Path, settings: Settings) -> Finding:
    if not folder.is_dir():
        fix = "create it, or correct --root or NPL_ROOTS"
        return Finding(name, PROBLEM, f"{folder} is not a folder", fix)
    if not os.access(folder, os.R_OK | os.X_OK):
        return Finding(name, PROBLEM, f"{folder} cannot be read", "allow this user to read it")
    count, bound, real = 0, "", os.path.realpath(folder)
    roots = Roots([Root(real, str(folder))], settings.limits, settings.ignoring)
    walk = Walk(roots, most=MAX_ENTRIES, counted=True)
    try:
        for count, _ in enumerate(walk.files(real), 1):  # noqa: B007
            pass
    except DocumentTooLargeError:
        bound = " or more"
    others = f"; not served: {skipped_text(walk.skipped)}" if walk.skipped else ""
    with suppress(OSError):
        lines = read_path(folder / ".git/info/exclude", MAX_BYTES)[0].splitlines()
        others += "; .git/info/exclude is not obeyed" if any(line[:1] not in b"#" for line in lines) else ""
    if count or bound:
        return Finding(name, OK, f"{folder}: {count:,}{bound} Markdown files{others}")
    fix = f"name {'another' if settings.roots else 'a folder'} with --root"
    return Finding(name, WARNING, f"{folder} has no Markdown{others}", fix)


def _vocabulary(settings: Settings) -> Finding:
    counter = best_counter(settings.vocabulary, settings.vocabularies)
    if not counter.margin:
        return Finding("vocabulary", OK, f"{counter.name}: tokens are counted exactly")
    text, file = f"{counter.name}: tokens are estimated", f"{base_vocabulary(settings.vocabulary)}.tiktoken"
    fix = f"for exact counts: install npl-mcp[exact]; offline: put {file} into {settings.vocabularies[0]}"
    for path, _ in vocabulary_files(settings.vocabulary, settings.vocabularies):
        return Finding("vocabulary", WARNING, f"{text}: {path} differs from the published file", fix)
    return Finding("vocabulary", OK, text, fix)


def _data_folder(folder: Path) -> Finding:
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        problem = f"{folder}: {existing} is not a writable folder"
        return Finding("data folder", PROBLEM, problem, "choose another with --data-dir or NPL_MCP_DATA_DIR")
    return Finding("data folder", OK, str(folder) if folder.exists() else f"{folder} ({_LATER})")


def _database(settings: Settings) -> Finding:
    kind = DATABASE_SERVERS.get((settings.database_url or "").partition(":")[0], "SQLite")
    try:
        database = database_of(settings.data_folder, settings.database_url)
        if not database.is_made():
            return Finding("database", OK, f"{kind}: {_LATER}")
        schema = database.schema()
    except NPLError as error:
        return Finding("database", PROBLEM, f"{kind}: {error}", None if error.hint else RESTORE)
    if schema is None or schema >= HEAD:
        return Finding("database", OK, f"{kind}: schema {schema or _LATER}")
    fix = "servers migrate it when they open it; or: npl-mcp migrate"
    return Finding("database", WARNING, f"{kind}: schema {schema}, this version has {HEAD}", fix)


def _server(folder: Path) -> Finding:
    state = running_server(folder, only_own=True)
    if state is None:
        if is_locked(folder):
            text = "a server has locked the data folder, but its state cannot be read"
            return Finding("server", WARNING, text, "end it and start it again: npl-mcp-server start")
        return Finding("server", OK, "not running", "if you want one: npl-mcp-server start")
    if (problem := problem_of(state)) is not None:
        fix = "npl-mcp-server stop, then npl-mcp-server start"
        return Finding("server", PROBLEM, f"{state.place} {problem}", fix)
    return Finding("server", OK, f"{state.place} answers, process {state.pid}")


def _sessions(settings: Settings) -> Iterator[Finding]:
    if (problem := sessions.problem(str(settings.data_folder))) and (settings.shared or sessions.POSSIBLE):
        yield Finding("sessions", WARNING, f"each has a process of its own: {problem}")
    if (server := sessions.ask(str(settings.data_folder))) is not None:
        yield from (Finding("sessions", OK, line) for line in server["lines"])


def _clients(settings: Settings) -> Iterator[Finding]:
    files = list(npl_entries(settings.home, settings.cwd))
    for file in files:
        yield _client(*file, settings)
    if not any(isinstance(servers, list) and servers for _, _, servers in files):
        fix = "npl-mcp, started at a terminal, shows the entry for each client"
        yield Finding("clients", WARNING, "no client on this machine has an entry for npl", fix)


def _client(client: str, path: Path, servers: Sequence[Entry] | str, settings: Settings) -> Finding:
    if isinstance(servers, str):
        fix = "correct it, or check yourself that it has an entry for npl"
        return Finding(client, WARNING, f"{path} cannot be read: {servers}", fix)
    if not servers:
        return Finding(client, OK, f"{path} has no entry for npl")
    for server in servers:
        command = server.get("command")
        # Clients replace ${…} by a value.
        if isinstance(command, str) and "$" not in command and shutil.which(command) is None:
            fix = f"write {find_program('npl-mcp') or 'the full path of npl-mcp'} as its command"
            text = f"{path} names npl, but {command!r} does not exist"
            return Finding(client, PROBLEM, text, fix)
    shown = ", ".join(str(server.get("command") or server.get("url") or "no command") for server in servers)
    lists_all = not (settings.domains or settings.small_list) and any(
        "command" in server and not _FEWER_TOOLS.search(str(server)) for server in servers
    )
    hint = f"it lists all tools; to list only those for reading: {' '.join(READING)}" if lists_all else None
    return Finding(client, OK, f"{path} names npl: {shown}", hint)


@COMMANDS.add("config show", JSON)
def _show(given: argparse.Namespace, _: Display) -> CommandResult:
    """Show every setting with its source: flag, variable, npl.toml or default."""
    settings = settings_of(given)
    sources = settings.sources
    rows: list[dict[str, Any]] = []
    for name, setting in SETTINGS.items():
        value = attrgetter(setting.shown or setting.attribute)(settings)
        value = astuple(value) if isinstance(value, Weights) else value
        value = "(not shown)" if setting.secret and value is not None else value
        source = sources[name].source if name in sources else "default"
        rows.append({"name": name, "value": value, "source": source})
    shown = [(row["name"], row["source"], _cell(row["value"])) for row in rows]
    return CommandResult(table(shown), rows)


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_cell, value)) or "-"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "-" if value is None else escaped(str(value))
