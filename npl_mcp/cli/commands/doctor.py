"""``npl-mcp doctor``: whether everything is in order on this machine, and what to do where it is not."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple

from npl_index.errors import DocumentTooLargeError, NPLError
from npl_index.index.driver import FTS5_REMEDY, driver, missing_search
from npl_index.library.catalog import Root
from npl_index.library.references import MARKDOWN_SUFFIXES
from npl_index.library.roots import Roots
from npl_index.tokens.counting import base_vocabulary
from npl_index.tokens.exact import best_counter, vocabulary_files
from npl_mcp import __version__
from npl_mcp.cli.terminal.arguments import JSON, Commands
from npl_mcp.cli.terminal.display import PROBLEMS, Display, Outcome
from npl_mcp.cli.terminal.options import settings_of
from npl_mcp.cli.transports.addresses import parse_address
from npl_mcp.cli.transports.base import TransportError
from npl_mcp.cli.transports.http import greeted
from npl_mcp.config.child_processes import find_program
from npl_mcp.config.clients import READING, Configuration, configurations
from npl_mcp.config.programs import python
from npl_mcp.config.server_state import is_held, running_server
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base.database import HEAD
from npl_mcp.stores.base.errors import RESTORE
from npl_mcp.stores.base.extras import EXTRAS, is_installed
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.base.sqlite import REMEDY, weakness

OK, WARNING, PROBLEM = "ok", "warning", "problem"

MOST_ENTRIES = 20_000
"""Entries of a root that are looked at: a fraction of a second."""


class Finding(NamedTuple):
    """What was found about one thing.

    :param name: of the thing.
    :param state: :data:`OK`, :data:`WARNING` or :data:`PROBLEM`.
    :param text: what was found.
    :param fix: what to do about it.
    """

    name: str
    state: str
    text: str
    fix: str | None = None


COMMANDS = Commands()


@COMMANDS.add("doctor", JSON)
def _doctor(given: argparse.Namespace, display: Display) -> int:
    """Look whether everything is in order, and say what to do."""
    try:
        found = list(examine(settings_of(given, check_roots=False)))
    except NPLError as error:
        found = [Finding("settings", PROBLEM, str(error))]
    states = [one.state for one in found]
    sound = PROBLEM not in states
    data = {"ok": sound, "version": __version__, "findings": [one._asdict() for one in found]}
    width = max(len(one.name) for one in found)
    lines = []
    for one in found:
        lines.append(f"{one.state:<8} {one.name:<{width}}  {one.text}")
        if one.fix:
            lines.append(f"{'':<{width + 11}}{one.fix}")
    lines.append(f"problems: {states.count(PROBLEM)}, warnings: {states.count(WARNING)}")
    display.outcome(Outcome("\n".join(lines), data), as_json=given.json)
    return 0 if sound else PROBLEMS


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything a server depends on; nothing is changed."""
    yield Finding("Python", OK, f"{platform.python_version()}, npl-mcp {__version__}")
    yield _sqlite()
    if not settings.roots:
        yield _root("working directory", settings.cwd, settings)
    for root in settings.roots:
        yield _root("root", root, settings)
    if settings.write:
        yield _writing(settings)
    yield _vocabulary(settings)
    yield _data_folder(settings.data_folder)
    yield _database(settings)
    yield _server(settings.data_folder)
    for extra, (_, purpose) in EXTRAS.items():
        there = is_installed(extra)
        fix = None if there else f"if you need it: {_adding(extra)}"
        yield Finding(f"extra {extra}", OK, f"{purpose}: {'installed' if there else 'not installed'}", fix)
    yield from _clients(configurations(settings.home, settings.cwd), settings)


def _sqlite() -> Finding:
    if (problem := missing_search()) is not None:
        return Finding("SQLite", PROBLEM, problem, FTS5_REMEDY)
    if (problem := weakness()) is not None:
        return Finding("SQLite", WARNING, problem, REMEDY)
    return Finding("SQLite", OK, f"{driver().sqlite_version}, driver {driver().__name__.partition('.')[0]}")


def _writing(settings: Settings) -> Finding:
    problem = settings.unwritable
    if problem is None:
        return Finding("write", OK, "sections of files below the roots may be changed")
    fix = "give one by --root, NPL_ROOTS, or root in your own npl.toml"
    return Finding("write", WARNING, f"{problem}, so no file may be changed", fix)


def _root(name: str, folder: Path, settings: Settings) -> Finding:
    if not folder.is_dir():
        return Finding(name, PROBLEM, f"{folder} is not a folder", "make it, or correct --root or NPL_ROOTS")
    if not os.access(folder, os.R_OK | os.X_OK):
        return Finding(name, PROBLEM, f"{folder} cannot be read", "let this user read it")
    count, bound = 0, ""
    try:
        real = os.path.realpath(folder)
        roots = Roots([Root(real, str(folder))], settings.limits)
        for _ in roots.walk(real, None, MARKDOWN_SUFFIXES, MOST_ENTRIES):
            count += 1
    except DocumentTooLargeError:
        bound = " or more"
    if count or bound:
        return Finding(name, OK, f"{folder}: {count:,}{bound} Markdown files")
    given = "name another with --root" if settings.roots else "name a folder with --root"
    return Finding(name, WARNING, f"{folder} holds no Markdown", given)


def _vocabulary(settings: Settings) -> Finding:
    counter = best_counter(settings.vocabulary, settings.vocabularies)
    if counter.exact:
        return Finding("vocabulary", OK, f"{counter.name}: tokens are counted exactly")
    text, file = f"{counter.name}: tokens are estimated", f"{base_vocabulary(settings.vocabulary)}.tiktoken"
    fix = f"for exact counts: {_adding('exact')}; offline: put {file} into {settings.vocabularies[0]}"
    for path, _ in vocabulary_files(settings.vocabulary, settings.vocabularies):
        return Finding("vocabulary", WARNING, f"{text}: {path} is not as published", fix)
    return Finding("vocabulary", OK, text, fix)


def _adding(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where that came.

    It takes no code and no settings from the folder that it is run in.
    """
    # PEP 610: where from, unless it was a package index.
    told = json.loads(distribution("npl-mcp").read_text("direct_url.json") or "{}")
    kind = told.get("vcs_info", {}).get("vcs")
    origin = f" @ {kind + '+' if kind else ''}{told['url']}" if told else ""
    pip = [*python('import runpy; runpy.run_module("pip", run_name="__main__")', kept=True), "install"]
    if not importlib.util.find_spec("pip"):  # in an environment that uv made
        pip = ["uv", "pip", "install", "--directory", Path.home().anchor, "--python", sys.executable]
    return shlex.join([*pip, f"npl-mcp[{extra}]{origin}"])


def _data_folder(folder: Path) -> Finding:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        problem = f"{folder}: nothing can be written to {there}"
        return Finding("data folder", PROBLEM, problem, "choose another with --data-dir or NPL_MCP_DATA_DIR")
    later = "" if there == folder.absolute() else " (made when it is first needed)"
    return Finding("data folder", OK, f"{folder}{later}")


def _database(settings: Settings) -> Finding:
    kind = "SQLite" if settings.database_url is None else "PostgreSQL"
    try:
        database = database_of(settings.data_folder, settings.database_url)
        if not database.is_made():
            return Finding("database", OK, f"{kind}: made when it is first needed")
        schema = database.schema()
    except NPLError as error:
        return Finding("database", PROBLEM, f"{kind}: {error}", None if error.hint else RESTORE)
    if schema is None or schema >= HEAD:
        return Finding("database", OK, f"{kind}: schema {schema or 'made when it is first needed'}")
    fix = "servers migrate it when they open it, or: npl-mcp migrate"
    return Finding("database", WARNING, f"{kind}: schema {schema}, this version has {HEAD}", fix)


def _server(folder: Path) -> Finding:
    state = running_server(folder, only_own=True)
    if state is None:
        if is_held(folder):
            text = "one holds the data folder, but its state cannot be read"
            return Finding("server", WARNING, text, "end it and start it again: npl-mcp-server start")
        return Finding("server", OK, "none runs", "if you want one: npl-mcp-server start")
    place = f"unix:{state.socket}" if state.socket else str(state.url)
    restart = "npl-mcp-server stop, then npl-mcp-server start"
    address = parse_address(place)
    try:
        if address is None:
            raise TransportError("has no usable address")
        greeted(address).close()
    except TransportError as error:
        return Finding("server", PROBLEM, f"{place} {error.problem}", restart)
    if state.version != __version__:
        return Finding("server", WARNING, f"{place} has version {state.version}", restart)
    return Finding("server", OK, f"{place} answers, process {state.pid}")


def _clients(found: list[Configuration], settings: Settings) -> Iterator[Finding]:
    for one in found:
        yield _client(one, settings)
    if not any(one.npl() for one in found):
        fix = "npl-mcp, started at a terminal, shows what to write where"
        yield Finding("clients", WARNING, "no client that was found names npl", fix)


def _client(one: Configuration, settings: Settings) -> Finding:
    if one.problem is not None:
        text = f"{one.path} cannot be read: {one.problem}"
        return Finding(one.client, WARNING, text, "correct it, or look yourself whether it names npl")
    servers = one.npl()
    if not servers:
        return Finding(one.client, OK, f"{one.path} does not name npl")
    for server in servers:
        command = server.get("command")
        # Clients put values in the place of ${…}.
        if isinstance(command, str) and "$" not in command and shutil.which(command) is None:
            fix = f"write {find_program('npl-mcp') or 'the full path of npl-mcp'} as its command"
            return Finding(one.client, PROBLEM, f"{one.path} names npl, but there is no {command!r}", fix)
    shown = ", ".join(str(server.get("command") or server.get("url") or "no command") for server in servers)
    every = not (settings.domains or settings.small_list) and any(map(_lists_all, servers))
    hint = f"it lists all tools; to list those for reading: {' '.join(READING)}" if every else None
    return Finding(one.client, OK, f"{one.path} names npl: {shown}", hint)


def _lists_all(server: Mapping[str, Any]) -> bool:
    """Return whether a client starts a server without a choice of tools."""
    chosen = re.search("--domains|--small-list|NPL_DOMAINS|NPL_SMALL_LIST", str(server))
    return "command" in server and chosen is None
