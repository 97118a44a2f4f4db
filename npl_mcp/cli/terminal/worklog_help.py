"""The help of ``npl-worklog``, and the scripts that complete its command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npl_mcp import __version__
from npl_mcp.cli.terminal.arguments import Command, Given, Option, UsageError
from npl_mcp.cli.terminal.display import Display
from npl_mcp.cli.terminal.help import table, written

PROGRAM = "npl-worklog"

EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = {
    "": (
        ('npl-worklog init --task "Find calls without a retry"', "start a session for today"),
        ('npl-worklog log --agent scout-1 --action found --summary "3 of 14 calls"', "report"),
        ("npl-worklog read --agent main", "what main has not read yet, and only once"),
        ("npl-worklog status", "who reported, how much, when last"),
    ),
    "init": (
        ("npl-worklog init", "named by today's date"),
        ('npl-worklog init --id retry-audit --task "Find calls without a retry"', "with a name"),
    ),
    "current": (("npl-worklog current || npl-worklog init", "start a session if there is none"),),
    "log": (
        ('npl-worklog log --agent scout-1 --action done --summary "All read"', "to the current session"),
        (
            "npl-worklog log --agent scout-1 --type scout --action found --summary x --tags retry,pay"
            " --data '{\"calls\": 14}'",
            "with details",
        ),
    ),
    "read": (
        ("npl-worklog read --agent main", "go on where main stopped"),
        ("npl-worklog read --agent main --peek", "have a look, and get it again next time"),
        ("npl-worklog read --agent main --since 0 --json", "all from the beginning"),
    ),
    "status": (("npl-worklog status --session retry-audit --json", "one session, for a program"),),
    "list": (("npl-worklog list --all", "the archived ones too"),),
    "close": (("npl-worklog close --archive", "end the current session and put it away"),),
    "export": (
        ("npl-worklog export", "the current session, in .npl/sessions"),
        ("npl-worklog export retry-audit reports/retry", "one session, in a folder below this one"),
    ),
    "import": (("npl-worklog import", "after a copy of .npl/sessions came from elsewhere"),),
    "completion": (
        ("source <(npl-worklog completion bash)", "in ~/.bashrc"),
        ("npl-worklog completion zsh > ~/.zfunc/_npl-worklog", "in a folder of fpath"),
    ),
}

EXITS = """\
Exit codes: 0 done; 1 there is no such session, or --data is no JSON; 2 a command line or a value that cannot
be used; 65 the session is closed; 69 no server answers; 70 a defect; 73 the id is taken but for case; 74 the
database or a file cannot be used; 76 the server's answer was lost: look before you repeat; 77 not allowed;
130 interrupted; 141 nobody reads the output."""


def show(given: Given, commands: Mapping[str, Command], always: Sequence[Option], display: Display) -> int:
    """Print the version, a help text or a completion script.

    :raises UsageError: there is no script for the shell.
    """
    if given.has("version"):
        display.text(f"{PROGRAM} {__version__}\n")
    elif given.has("help"):
        pages = _of_command(given.command, commands, always) if given.command else _overview(commands, always)
        display.text("\n".join(pages))
    else:
        display.text(_script(given.words[0] if given.words else "", commands, always))
    return 0


def show_usage(error: UsageError, commands: Mapping[str, Command], display: Display) -> None:
    """Say what is wrong with a command line, and what it should be."""
    display.say(_usage(error.command, commands))
    display.say(f"Try {' '.join(filter(None, (PROGRAM, error.command, '--help')))}.")
    display.note(f"error: {error.problem}")


def _usage(name: str | None, commands: Mapping[str, Command]) -> str:
    if not name:
        return f"usage: {PROGRAM} [-h] [--via WAY] COMMAND ..."
    return f"usage: {PROGRAM} {name} [OPTION ...] {commands[name].words}".rstrip()


def _overview(commands: Mapping[str, Command], always: Sequence[Option]) -> list[str]:
    return [
        _usage(None, commands),
        "",
        "What agents on one project report to each other: numbered entries in sessions, and how far each",
        "agent has read. The working directory is the project; .npl/sessions there has a copy to look at.",
        "",
        *table(
            f"Commands ({PROGRAM} COMMAND --help has examples of each):",
            [(name, command.help) for name, command in commands.items()],
        ),
        *table("Options:", [(written(option), option.help) for option in always]),
        *_examples(""),
        EXITS,
        "",
    ]


def _of_command(name: str, commands: Mapping[str, Command], always: Sequence[Option]) -> list[str]:
    command = commands[name]
    options = (*command.options, *always)
    return [
        _usage(name, commands),
        "",
        f"{command.help[:1].upper()}{command.help[1:]}.",
        "",
        *table("Options:", [(written(option), option.help) for option in options]),
        *_examples(name),
        EXITS,
        "",
    ]


def _examples(name: str) -> list[str]:
    rows = [line for text, meaning in EXAMPLES[name] for line in (f"  {text}", f"      {meaning}")]
    return ["Examples:", *rows, ""]


BASH = r"""# Completion of npl-worklog. In ~/.bashrc: source <(npl-worklog completion bash)
_npl_worklog_sessions() {
    npl-worklog list --all 2>/dev/null | sed 's/^..//; s/ .*//'
}

_npl_worklog() {
    local word=${COMP_WORDS[COMP_CWORD]} command= at words=
    for ((at = 1; at < COMP_CWORD; at++)); do
        case ${COMP_WORDS[at]} in
        --via) ((at++)) ;;
        -*) ;;
        *) command=${COMP_WORDS[at]}; break ;;
        esac
    done
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    --session|export) words=$(_npl_worklog_sessions) ;;
    --via) words='auto http stdio direct' ;;
    *)
        case $command in
@CASES@        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _npl_worklog npl-worklog
"""

ZSH = r"""#compdef npl-worklog
# Completion of npl-worklog. In a folder of fpath, or: source <(npl-worklog completion zsh)
autoload -U +X bashcompinit && bashcompinit
"""


def _script(shell: str, commands: Mapping[str, Command], always: Sequence[Option]) -> str:
    if shell not in ("bash", "zsh"):
        problem = f"argument shell: invalid choice: {shell!r} (choose from 'bash', 'zsh')"
        raise UsageError(problem, "completion")
    cases = {"''": [*commands, *(option.name for option in always)]}
    for name, command in commands.items():
        options = [option.name for option in (*command.options, *always)]
        cases[name] = ["bash", "zsh", *options] if name == "completion" else options
    lines = [f"        {name}) words='{' '.join(words)}' ;;\n" for name, words in cases.items()]
    script = BASH.replace("@CASES@", "".join(lines))
    return script if shell == "bash" else ZSH + script
