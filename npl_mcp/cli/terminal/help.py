"""The help of ``npl-load``."""

from __future__ import annotations

from collections.abc import Sequence

from npl_mcp import __version__
from npl_mcp.cli.terminal.arguments import COMMANDS, COMMON, FIRST, TYPES, Given, Option, UsageError
from npl_mcp.cli.terminal.display import Display

WIDTH = 28

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ('npl-load c "syntax,fences"', "two components, with a header of flags that says so"),
        ('npl-load c "syntax" m "persona.qa" s "house"', "several types, one header"),
        ('npl-load tailored "grade essays" --budget 900', "what a task needs, within a budget"),
        ("npl-load agent --list", "the agents there are"),
    ),
    "c": (
        ('npl-load c "syntax,fences"', "names are separated by commas or blanks"),
        ('npl-load c "pumps.*"', "one folder; **.* is everything"),
        ('npl-load c "syntax,agent" --skip "syntax"', "what is loaded already is left out"),
        ('npl-load c "syntax" --skip "" m "persona.qa" --skip "x"', "every type has its own --skip"),
        ("npl-load c syntax --index", "the headings of a component"),
        ('npl-load c syntax --select "## Purpose" --depth 0', "one section without its subsections"),
        ('npl-load c syntax --filter "[has-table]"', "the sections that hold a table"),
        ('npl-load --quiet c "**.*"', "the flags alone"),
    ),
    "schema": (("npl-load schema nimps | sqlite3 new.db", "make the tables of a schema"),),
    "init": (("npl-load init", "the reference that describes all the rest"),),
    "agent": (
        ("npl-load agent npl-grader", "one agent"),
        ("npl-load agent npl-grader --definition", "the agent, and the NPL it relies on"),
        ("npl-load agent --list -v --search 'review|grade'", "agents whose text matches"),
        ("npl-load agent --list --filter-meta model:opus", "agents with this front matter"),
    ),
    "syntax": (
        ("npl-load syntax --file prompt.md --matches", "count the notations of a file, show some"),
        ("cat prompt.md | npl-load syntax -", "or of standard input"),
    ),
    "init-claude": (
        ("npl-load init-claude", "append the usual prompts, or compare their versions"),
        ("npl-load init-claude --update-all --dry-run", "what would be renewed"),
        ("npl-load init-claude --update npl-conventions", "renew one section, where it stands"),
    ),
    "tailored": (
        ('npl-load tailored "review NPL fences" --budget 800', "from the core reference"),
        ('npl-load tailored "deploy" --file docs --topic rollback > context.md', "from a folder"),
        ('npl-load tailored --kind component --item fences --select "## Purpose"', "by selector alone"),
    ),
    "search": (
        ("npl-load search fence label", "in all components"),
        ('npl-load search "retry policy" --file docs --limit 3', "in a folder"),
    ),
    "completion": (
        ("source <(npl-load completion bash)", "in ~/.bashrc"),
        ("npl-load completion zsh > ~/.zfunc/_npl-load", "in a folder of fpath"),
    ),
}

EXITS = """\
Exit codes: 0 also where an item is not there (it is reported on standard error), so that scripts written for
the predecessor go on working; 1 with --strict, or an agent without a name; 2 a command line, a name or a
selector that cannot be used; 65 to 77 as in sysexits.h; 130 interrupted; 141 nobody reads the output.
init-claude: 0 nothing to do, 1 the file was changed, 2 newer prompts are there, 3 a source is gone."""


def show(given: Given, display: Display) -> int:
    """Print the version or a help text."""
    if given.has("version"):
        display.text(f"npl-load {__version__}\n")
    elif not given.command:
        display.text(_overview())
    else:
        display.text(_of_command(given.command))
    return 0


def show_usage(error: UsageError, display: Display) -> None:
    """Say what is wrong with a command line, and what it should be."""
    display.say(_usage(error.command))
    display.note(f"error: {error.problem}")


def _usage(command: str | None) -> str:
    if command is None:
        return "usage: npl-load [-h] [--quiet] [--strict] [--via WAY] COMMAND ...\nTry npl-load --help."
    line = f"usage: npl-load [--quiet] {command} [OPTION ...] {COMMANDS[command].words}".rstrip()
    return f"{line}\nTry npl-load {command} --help."


def _overview() -> str:
    commands = [(name, command.help) for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: npl-load [-h] [--quiet] [--strict] [--via WAY] COMMAND ...",
            "",
            "Print NPL prompts: whole items with the flags that say what is loaded, or only the sections",
            "a task needs. Text goes to standard output, all that is said about it to standard error.",
            "",
            *table("Commands (npl-load COMMAND --help has examples of each):", commands),
            *table("Options:", [(written(option), option.help) for option in (*FIRST, *COMMON)]),
            *_examples(""),
            EXITS,
            "",
        ]
    )


def _of_command(name: str) -> str:
    command = COMMANDS[name]
    options: Sequence[Option] = (*command.options, *COMMON)
    lines = [
        f"usage: npl-load [--quiet] {name} [OPTION ...] {command.words}".rstrip(),
        "",
        f"{command.help[:1].upper()}{command.help[1:]}.",
    ]
    if name in TYPES:
        lines += [
            "",
            f"Several types may follow each other: {', '.join(TYPES)}. A word that is a type begins one when",
            "the type before has a name already and another word follows; with a comma it is always a name.",
            "--quiet stands before the command.",
        ]
    lines += ["", *table("Options:", [(written(option), option.help) for option in options])]
    return "\n".join([*lines, *_examples("c" if name in TYPES else name), EXITS, ""])


def written(option: Option) -> str:
    """Return an option as it is written, with its short form and its value."""
    names = f"{option.name}, {option.short}" if option.short else option.name
    return f"{names} {option.value}".rstrip()


def table(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of a table of two columns, and an empty one."""
    return [title, *(f"  {left:<{WIDTH}} {right}" for left, right in rows), ""]


def _examples(name: str) -> list[str]:
    rows = [line for text, meaning in EXAMPLES[name] for line in (f"  {text}", f"      {meaning}")]
    return ["Examples:", *rows, ""]
