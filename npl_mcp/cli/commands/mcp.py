"""``npl-mcp`` and ``python -m npl_mcp``: the server over standard streams, and the commands for its data."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from npl_mcp import __version__
from npl_mcp.cli.commands import installation, stores
from npl_mcp.cli.terminal.arguments import JSON, Commands, Program, argument, server_flags, settings_of
from npl_mcp.cli.terminal.display import CommandResult, Display, run_command
from npl_mcp.config.child_processes import find_program, use_one_thread_for_numpy
from npl_mcp.config.clients import READING, stdio_snippets
from npl_mcp.config.kinds import path
from npl_mcp.config.programs import SERVER, python
from npl_mcp.config.sessions import LOG, SOCKET
from npl_mcp.config.settings import STDIO
from npl_mcp.http.service import bind_path
from npl_mcp.projects.directive import scaffold
from npl_mcp.server.startup import allow_files, lasting, prepare_process, set_up_log

NAME = "npl-mcp"

MAX_FILES = 4_096
"""Wanted limit on open files of the server of sessions; each session has three."""

COMMANDS = Commands()
for _module in (stores, installation):
    COMMANDS.update(_module.COMMANDS)


def _serve(given: argparse.Namespace, _: Display) -> None:
    settings = settings_of(given)
    prepare_process()
    set_up_log(settings.log_level)
    if sys.stdin is not None and sys.stdin.isatty():
        # The server starts nevertheless: in a container, a client may give it a terminal.
        root = () if settings.roots else (f"--root={Path.cwd()}",)
        # The flags of README.md.
        few = () if settings.domains or settings.small_list else READING
        form = () if given.format else ("--format", "markdown")
        sys.stderr.write(_introduction((*root, *settings.flags, *few, *form)))
        sys.stderr.flush()
    with lasting():
        # Importing FastMCP takes most of a second; --help and the commands need none of it.
        from npl_mcp.server.server import serve_stdio

    serve_stdio(settings)


def _introduction(words: Sequence[str]) -> str:
    """Return the introduction for a user who started the server at a terminal.

    :param words: options of the server.
    """
    return (
        f"npl-mcp {__version__} serves Markdown, section by section, to an MCP client, which starts it.\n"
        "To connect one:\n\n"
        f"{stdio_snippets([*_program(), *words])}\n"
        "--domains chooses the listed tools; without it all are listed, and some clients take 40 at most.\n"
        "It now waits for a client's messages; Ctrl-D ends it. npl-mcp --help shows options and commands.\n"
    )


def _program() -> Sequence[str]:
    """Return the command that starts this program with any search path, in any folder."""
    program = find_program(NAME) or find_program(NAME, str(Path(sys.executable).parent))
    return [program] if program else python(SERVER, kept=True)


@COMMANDS.add(
    "directive init",
    argument(
        "folder", nargs="?", type=path, default=Path(), help="project; by default the working directory"
    ),
    JSON,
)
def _directive(given: argparse.Namespace, _: Display) -> CommandResult:
    """Create the missing files of directive/; existing files stay unchanged."""
    written, kept = scaffold(given.folder)
    lines = [*(f"written: {path}" for path in written), *(f"kept:    {path}" for path in kept)]
    lines.append(f"{len(written)} files written, {len(kept)} kept")
    return CommandResult("\n".join(lines), {"written": written, "kept": kept})


PROGRAM = Program(
    NAME,
    COMMANDS,
    server_flags(STDIO),
    default=_serve,
    groups={
        "worklog": "import .npl/sessions of this folder",
        "token": "manage the tokens and permissions of a shared server's callers",
        "library": "export the libraries of earlier versions",
        "config": "show the settings and their sources",
        "directive": "set up directive/ with templates",
    },
)
parser = PROGRAM.parser
main = partial(run_command, PROGRAM)


def serve_sessions(**how: float) -> None:
    """Run the server of sessions of a data folder, whose lock this process has, with the words of a session.

    :param how: further arguments of :class:`~npl_mcp.server.sessions.Sessions`.
    """
    use_one_thread_for_numpy()
    settings = PROGRAM.settings(sys.argv[1:])
    os.chdir(settings.data_folder)  # no session's folder stays in use
    prepare_process()
    allow_files(MAX_FILES)
    set_up_log(settings.log_level, Path(LOG))
    listener = bind_path(Path(SOCKET))
    with lasting():
        from npl_mcp.server.sessions import Sessions

    Sessions(settings, PROGRAM.settings, **how).run(listener)
