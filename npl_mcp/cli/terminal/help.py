"""Examples and exit codes, for the help of the command lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Examples = Mapping[str, Sequence[tuple[str, str]]]
"""By command: command lines with their meaning; those of ``""`` belong to the whole program."""

_LOAD: Examples = {
    "": (
        ('npl-load tailored "grade essays" --budget 900', "what a task needs, of the Markdown here"),
        ("npl-load search retry policy", "the best sections, one per line"),
        ('npl-load c "syntax,fences"', "two components, after a header of flags that says so"),
        ('npl-load c "syntax" m "persona.qa" s "house"', "several types, one header"),
    ),
    "c": (
        ('npl-load c "syntax,fences"', "names are separated by commas or blanks"),
        ('npl-load c "pumps.*"', "one folder; **.* is everything"),
        ('npl-load c "syntax,agent" --skip "syntax"', "leave out what is already loaded"),
        ('npl-load c "syntax" --skip "" m "persona.qa" --skip "x"', "every type has its own --skip"),
        ("npl-load c syntax --index", "the headings of a component"),
        ('npl-load c syntax --select "## Purpose" --depth 0', "one section without its subsections"),
        ('npl-load c syntax --filter "[has-table]"', "the sections with a table"),
        ('npl-load --quiet c "**.*"', "the flags alone"),
    ),
    "schema": (("npl-load schema nimps | sqlite3 new.db", "create the tables of a schema"),),
    "init": (("npl-load init", "the reference that describes everything else"),),
    "agent": (
        ("npl-load agent npl-grader", "one agent"),
        ("npl-load agent npl-grader --definition", "the agent, and the NPL that it relies on"),
        ("npl-load agent --list -v --search 'review|grade'", "agents whose file matches"),
        ("npl-load agent --list --filter-meta model:opus", "agents with this front matter"),
    ),
    "syntax": (
        ("npl-load syntax --file prompt.md --matches", "count the notations of a file, show some"),
        ("cat prompt.md | npl-load syntax -", "or those of standard input"),
    ),
    "init-claude": (
        ("npl-load init-claude", "append the usual prompts, or compare their versions"),
        ("npl-load init-claude --update-all --dry-run", "what would be updated"),
        ("npl-load init-claude --update npl-conventions", "update one section in place"),
    ),
    "tailored": (
        ('npl-load tailored "review NPL fences" --budget 800', "from the working directory"),
        ('npl-load tailored "deploy" --file docs --topic rollback > context.md', "from a folder"),
        ('npl-load tailored --kind component --item fences --select "## Purpose"', "by selector alone"),
    ),
    "search": (
        ("npl-load search fence label", "in the working directory"),
        ('npl-load search "retry policy" --file docs --limit 3', "in a folder"),
    ),
    "edit": (
        ('npl-load edit guide.md "## Setup" --operation replace < setup.md', "from standard input"),
        ('npl-load edit guide.md "## Log" --operation append --content "- done"', "add to a section"),
    ),
    "completion": (
        ("source <(npl-load completion bash)", "in ~/.bashrc"),
        ("npl-load completion zsh > ~/.zfunc/_npl-load", "in a folder of fpath"),
        ("npl-load completion fish > ~/.config/fish/completions/npl-load.fish", "for fish"),
    ),
}

_WORKLOG: Examples = {
    "": (
        ('npl-worklog init --task "Find calls without a retry"', "start a session for today"),
        ('npl-worklog log --agent scout-1 --action found --summary "3 of 14 calls"', "report"),
        ("npl-worklog read --agent main", "what main has not read yet; each entry is printed once"),
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
        ("npl-worklog read --agent main", "continue where main stopped"),
        ("npl-worklog read --agent main --peek", "read without marking it as read"),
        ("npl-worklog read --agent main --since 0 --json", "everything from the beginning"),
    ),
    "status": (("npl-worklog status --session retry-audit --json", "one session, for a program"),),
    "list": (("npl-worklog list --all", "also the archived ones"),),
    "close": (("npl-worklog close --archive", "close the current session and archive it"),),
    "export": (
        ("npl-worklog export", "the current session, to .npl/sessions"),
        ("npl-worklog export retry-audit reports/retry", "one session, in a folder below this one"),
    ),
    "import": (("npl-worklog import", "after .npl/sessions came from elsewhere or from an earlier version"),),
    "completion": (
        ("source <(npl-worklog completion bash)", "in ~/.bashrc"),
        ("npl-worklog completion zsh > ~/.zfunc/_npl-worklog", "in a folder of fpath"),
        ("npl-worklog completion fish > ~/.config/fish/completions/npl-worklog.fish", "for fish"),
    ),
}

_EXAMPLES: Mapping[str, Examples] = {"npl-load": _LOAD, "npl-worklog": _WORKLOG}

_EXITS = {
    "npl-load": """\
Exit codes: 0 also if an item is missing (it is reported on standard error), so that scripts written for the
predecessor keep working; 1 with --strict, or an agent without a name; 2 a command line, a name or a selector
that cannot be used; 65 to 77 as in sysexits.h; 130 interrupted; 141 nobody reads the output.
init-claude: 0 nothing to do, 1 file changed, 2 newer prompts available, 3 source not found.
""",
    "npl-worklog": """\
Exit codes: 0 done; 1 there is no such session, or --data is no JSON; 2 a command line or a value that cannot
be used; 65 the session is closed; 69 no server answers; 70 a bug; 73 the id differs from an existing one only
in case; 74 the database or a file cannot be used; 76 the server's reply was lost: check before you retry;
77 not allowed; 130 interrupted; 141 nobody reads the output.
""",
}

_SEVERAL_TYPES = """\
  NAME                  names of items, separated by commas or spaces
  --skip P [P ...]      names to leave out, * matches; up to the next option or type

Several types can follow each other. A word that is a type begins one if the type before it has a name already
and another word follows; with a comma it is always a name. --quiet goes before the command.
"""


def epilog(program: str, commands: Mapping[str, str], command: str | None) -> str:
    """Return the end of a help: the commands, or what argparse does not know of one; examples; exit codes.

    :param program: its name.
    :param commands: what each of its commands does.
    :param command: ``None`` for the help of the program.
    """
    parts = []
    examples = _EXAMPLES[program]
    if command is None:
        rows = "".join(f"  {name:<13} {text}\n" for name, text in commands.items())
        parts.append(f"Commands ({program} COMMAND --help has examples of each):\n{rows}")
    elif command == "c" or command not in examples:
        parts.append(_SEVERAL_TYPES)
        command = "c"
    lines = "".join(f"  {line}\n      {meaning}\n" for line, meaning in examples[command or ""])
    return "\n".join([*parts, f"Examples:\n{lines}", _EXITS[program]])
