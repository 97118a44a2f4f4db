"""``npl-mcp`` and ``python -m npl_mcp``: the server over standard streams, and the commands for its data."""

import sys

from npl_mcp.config.programs import SERVER, python, search_path

if __name__ == "__main__":
    # "python -m" puts the working directory first: all further imports, even __future__, would come from it.
    sys.path[:] = search_path()

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from npl_index.errors import NPLError
from npl_mcp import __version__
from npl_mcp.cli.commands import installation, stores, token
from npl_mcp.cli.terminal.arguments import JSON, Commands, Program, add_options, argument, settings_of
from npl_mcp.cli.terminal.display import USAGE, CommandResult, Display, progress, run_program
from npl_mcp.config.child_processes import find_program
from npl_mcp.config.clients import HERE, READING, stdio_snippets
from npl_mcp.config.kinds import path
from npl_mcp.config.settings import Settings
from npl_mcp.projects.directive import scaffold
from npl_mcp.server.logs import set_up_log
from npl_mcp.server.startup import lasting

NAME = "npl-mcp"

COMMANDS = Commands()
for _module in (stores, installation, token):
    COMMANDS.update(_module.COMMANDS)

_FOLDERS = ("--root", "--data-dir", "--project")
"""Options that name folders."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until its input ends, or a command.

    :returns: the exit code: 0 success; 1 a check found a problem; 2 an argument, a setting or a file is
        invalid; 130 interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    return run_program(NAME, lambda display: _serve_or_run(words, display))


def _serve_or_run(words: Sequence[str], display: Display) -> int:
    given = parser().parse_args(words)
    if given.command in ("completion", "doctor"):  # they work without settings and with invalid ones
        code: int = given.run(given, display) or 0
        return code
    settings = settings_of(given)
    set_up_log(settings.log_level)
    if given.command is not None:
        return _run_command(given, settings, display)
    if sys.stdin is not None and sys.stdin.isatty():
        # The server starts nevertheless: in a container, a client may give it a terminal.
        root = () if settings.roots else ("--root", HERE)
        # The flags of README.md.
        few = () if settings.domains or settings.small_list else READING
        form = () if given.format else ("--format", "markdown")
        sys.stderr.write(_introduction((*root, *words, *few, *form)))
        sys.stderr.flush()
    with lasting():
        # Importing FastMCP takes most of a second; --help and the commands need none of it.
        from npl_mcp.server.server import serve_stdio

    try:
        serve_stdio(settings)
    except NPLError as error:
        display.note(str(error))
        return USAGE
    return 0


def _introduction(words: Sequence[str]) -> str:
    """Return the introduction for a user who started the server at a terminal.

    :param words: options of the server.
    """
    return (
        f"npl-mcp {__version__} serves Markdown, section by section, to an MCP client, which starts it.\n"
        "To connect one:\n\n"
        f"{stdio_snippets([*_program(), *_anywhere(words)])}\n"
        "--domains chooses the listed tools; without it all are listed, and some clients take 40 at most.\n"
        "It now waits for a client's messages; Ctrl-D ends it. npl-mcp --help shows options and commands.\n"
    )


def _program() -> Sequence[str]:
    """Return the command that starts this program with any search path, in any folder."""
    found = find_program(NAME) or find_program(NAME, str(Path(sys.executable).parent))
    return [found] if found else python(SERVER, kept=True)


def _anywhere(words: Sequence[str]) -> Iterator[str]:
    """Yield the options with absolute paths, so that they have one meaning in any working directory."""
    before = ""
    for word in words:
        name, equals, value = word.partition("=")
        if name in _FOLDERS and equals:
            yield f"{name}={Path(value).absolute()}"
        else:
            yield str(Path(word).absolute()) if before in _FOLDERS else word
        before = word


def _run_command(given: argparse.Namespace, settings: Settings, display: Display) -> int:
    try:
        with progress(given.parser.prog.removeprefix(f"{NAME} ")):
            done: CommandResult = given.run(given, settings)
    except NPLError as error:
        display.note(given.parser.told(str(error), getattr(error, "parameter", None)))
        return USAGE
    except OSError as error:
        display.note(f"{error.filename or given.command}: {error.strerror or error}")
        return USAGE
    return display.outcome(done, as_json=getattr(given, "json", False))


@COMMANDS.add(
    "directive init",
    argument(
        "folder", nargs="?", type=path, default=Path(), help="project; by default the working directory"
    ),
    JSON,
)
def _directive(given: argparse.Namespace, _: Settings) -> CommandResult:
    """Create the missing files of directive/; existing files stay unchanged."""
    done = scaffold(given.folder)
    lines = [*(f"written: {path}" for path in done.made), *(f"kept:    {path}" for path in done.kept)]
    lines.append(f"{len(done.made)} files written, {len(done.kept)} kept")
    return CommandResult("\n".join(lines), {"written": done.made, "kept": done.kept})


PROGRAM = Program(
    NAME,
    f"{NAME} [OPTION ...] [COMMAND ...]",
    "Serves Markdown documents by section to MCP clients over standard streams, or runs a command.",
    COMMANDS,
    settings=add_options,
    groups={
        "worklog": "import or export .npl/sessions of this folder",
        "token": "manage the tokens and permissions of a shared server's callers",
        "library": "export the libraries of earlier versions",
        "config": "show the settings and their sources",
        "directive": "set up directive/ with templates",
    },
    exits="Each option, such as --root DIR, may also stand after a command, and has a variable of the\n"
    "environment and a key in npl.toml; see SETTINGS.md.\n",
)
parser = PROGRAM.parser


if __name__ == "__main__":
    sys.exit(main())
