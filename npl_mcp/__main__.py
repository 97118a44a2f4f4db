"""``npl-mcp`` and ``python -m npl_mcp``: the server over standard streams, and commands for its data."""

import sys

from npl_mcp.config.programs import SERVER, python, search_path

if __name__ == "__main__":
    # "python -m" puts the working directory first. All that follows, even __future__, would come from there.
    sys.path[:] = search_path()

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from npl_index.errors import NPLError
from npl_mcp import __version__
from npl_mcp.cli.commands import stores as of_stores
from npl_mcp.cli.commands.config import add_config, run_config
from npl_mcp.cli.commands.doctor import PROBLEM, Finding, add_doctor, examine, report
from npl_mcp.cli.commands.kept import add_kept, run_cache, run_index
from npl_mcp.cli.commands.library import add_library, run_library
from npl_mcp.cli.commands.token import add_token_command, run_token_command
from npl_mcp.cli.terminal.arguments import JSON, SHELL, ProgramParser, add, with_flags
from npl_mcp.cli.terminal.display import USAGE, Display, run_program
from npl_mcp.cli.terminal.outcome import PROBLEMS, Outcome
from npl_mcp.cli.terminal.progress import Progress
from npl_mcp.config.arguments import path
from npl_mcp.config.clients import HERE, READING, stdio_snippets
from npl_mcp.config.completion import parsers_of, script
from npl_mcp.config.settings import Settings, find_program
from npl_mcp.projects.directive import scaffold
from npl_mcp.server.logs import set_up_log
from npl_mcp.server.options import add_options, settings_of, unchecked_settings_of
from npl_mcp.server.startup import lasting
from npl_mcp.stores.data_folder import Stores

NAME = "npl-mcp"

FLAGS = {"message": "--message", "created_by": "--by", "session_id": "session"}
"""What errors call parameters, as this command line names them."""

_FOLDERS = ("--root", "--data-dir", "--project")
"""Options that name folders."""


def parser() -> ProgramParser:
    """Describe the command line."""
    result = ProgramParser(
        prog=NAME,
        usage=f"{NAME} [OPTION ...] [COMMAND ...]",
        description="Serves Markdown documents by section to MCP clients over standard streams.",
        epilog="Each option can be set in the environment or in npl.toml as well; see README.md.",
    )
    add_options(result)
    result.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    options = [option for option in result._actions if option.dest != "help"]
    commands = result.add_subparsers(
        dest="command", metavar="COMMAND", prog=NAME, help="without one the server runs"
    )
    of_stores.add_stores(commands)
    add_kept(commands)
    add_doctor(commands)
    add(commands.add_parser("completion", help=SHELL.help), *SHELL.arguments)
    add_token_command(commands)
    add_library(commands)
    add_config(commands)
    directive = commands.add_parser("directive", help="set up directive/ with templates")
    steps = directive.add_subparsers(dest="step", metavar="init", required=True)
    init = steps.add_parser("init", help="create what is missing in directive/; nothing is overwritten")
    init.add_argument("folder", nargs="?", type=path, default=Path(), help="by default the working directory")
    add(init, JSON)
    for words, inner in parsers_of(result).items():
        if words and isinstance(inner, ProgramParser):
            inner.share(options)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until its input ends, or a command.

    :returns: the exit code: 0; 1 if a check found a problem; 2 if something cannot be used; 130 if it was
        interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    return run_program(NAME, lambda display: _main(words, display))


def _main(words: Sequence[str], display: Display) -> int:
    given = parser().parse_args(words)
    if given.command == "completion":
        display.text(script(given.shell, parser()))
        return 0
    if given.command == "doctor":
        return _doctor(given, display)
    settings = settings_of(given)
    set_up_log(settings.log_level)
    if given.command is not None:
        return _run(given, settings, display)
    if sys.stdin is not None and sys.stdin.isatty():
        # It goes on: clients that start it in a container may give it a terminal.
        root = () if settings.roots else ("--root", HERE)
        # As the documents say.
        few = () if settings.domains or settings.small_list else READING
        form = () if given.format else ("--format", "markdown")
        sys.stderr.write(_introduction((*root, *words, *few, *form)))
        sys.stderr.flush()
    with lasting():
        # Importing FastMCP takes most of a second; --help and the commands need none of it.
        from npl_mcp.server.server import serve_stdio

    serve_stdio(settings)
    return 0


def _doctor(given: argparse.Namespace, display: Display) -> int:
    try:
        findings = examine(unchecked_settings_of(given))
    except NPLError as error:
        findings = iter([Finding("settings", PROBLEM, str(error))])
    sound, done = report(findings)
    done.write(display, as_json=given.json)
    return 0 if sound else PROBLEMS


def _introduction(words: Sequence[str]) -> str:
    """Return what somebody needs to know who started the server at a terminal.

    :param words: the options it was started with.
    """
    return (
        f"npl-mcp {__version__} serves Markdown, section by section, to an MCP client, which starts it.\n"
        "To connect one:\n\n"
        f"{stdio_snippets([*_program(), *_anywhere(words)])}\n"
        "--domains says which tools are listed; all are without it, and some clients take 40 at most.\n"
        "It now waits for a client's messages; Ctrl-D ends it. npl-mcp --help shows options and commands.\n"
    )


def _program() -> Sequence[str]:
    """Return how to start this program with any search path, in any folder."""
    found = find_program(NAME) or find_program(NAME, str(Path(sys.executable).parent))
    return [found] if found else python(SERVER, kept=True)


def _anywhere(words: Sequence[str]) -> Iterator[str]:
    """Return options that mean the same in any working directory."""
    before = ""
    for word in words:
        name, equals, value = word.partition("=")
        if name in _FOLDERS and equals:
            yield f"{name}={Path(value).absolute()}"
        else:
            yield str(Path(word).absolute()) if before in _FOLDERS else word
        before = word


def _run(given: argparse.Namespace, settings: Settings, display: Display) -> int:
    what = " ".join(filter(None, (given.command, vars(given).get("step"))))
    try:
        # A malformed address of the database is known here.
        with closing(of_stores.stores_of(settings)) as stores, Progress(what):
            done = _done(given, stores, settings)
    except NPLError as error:
        problem = with_flags(str(error), getattr(error, "parameter", None), FLAGS)
        display.note(problem.replace("worklog_init, or give session_id", "npl-worklog init, or name one"))
        return USAGE
    except OSError as error:
        display.note(f"{error.filename or given.command}: {error.strerror or error}")
        return USAGE
    return done.write(display, as_json=getattr(given, "json", False))


def _done(given: argparse.Namespace, stores: Stores, settings: Settings) -> Outcome:
    """Run a command on the stores and return what it did."""
    run = {
        "backup": lambda: of_stores.run_backup(given, stores),
        "check": lambda: of_stores.run_check(stores),
        "migrate": lambda: of_stores.run_migrate(stores),
        "copy": lambda: of_stores.run_copy(given, settings),
        "worklog": lambda: of_stores.run_worklog(given, stores, settings.worklog_project),
        "index": lambda: run_index(given, settings),
        "cache": lambda: run_cache(given, settings),
        "token": lambda: run_token_command(given, stores.access),
        "library": lambda: run_library(given, stores.library, settings.limits),
        "config": lambda: run_config(given, settings),
        "directive": lambda: _directive(given.folder),
    }
    return run[given.command]()


def _directive(folder: Path) -> Outcome:
    done = scaffold(folder)
    lines = [*(f"written: {path}" for path in done.made), *(f"kept:    {path}" for path in done.kept)]
    lines.append(f"{len(done.made)} files written, {len(done.kept)} were there")
    return Outcome("\n".join(lines), {"written": done.made, "kept": done.kept})


if __name__ == "__main__":
    sys.exit(main())
