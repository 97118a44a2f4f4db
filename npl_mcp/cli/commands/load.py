"""``npl-load``: Markdown and prompts on the command line, whole or by section."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from npl_mcp.cli.commands import claude_file, edit, raw_files, section_commands, test
from npl_mcp.cli.commands.groups import TYPES, read_groups
from npl_mcp.cli.commands.targets import AS_JSON, DEPTH, FILTER, FORMAT, SELECT
from npl_mcp.cli.terminal.arguments import VIA, Command, Commands, Program, option, switch
from npl_mcp.cli.terminal.display import NOT_THERE, Display, run_command
from npl_mcp.cli.transports.connecting import ServerConnection, connected


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code.

    :param words: command line without the program's name; by default that of the process.
    """
    return run_command(PROGRAM, words)


@connected
def _load_items(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """Print items by section, or whole with one header for all.

    :returns: the exit code: 0, or with ``--strict`` 1 if an item is missing.
    """
    if given.selectors or given.index or given.filter:
        return section_commands.run_items(given, connection, display)
    if given.depth is not None:
        given.parser.error("argument --depth: needs --select, --filter or --index")
    groups = [
        {"kind": group.kind, "items": ",".join(group.names), "skip": " ".join(group.skip)}
        for group in given.groups
        if group.names
    ]
    if not groups:
        return 0
    data = connection.ask("items_load", groups=groups)
    if given.format != "text":
        display.data(data, given.format)
    else:
        display.text(data["header"] if given.quiet else data["header"] + data["content"])
    problems = list(data.get("problems", ()))
    for missing in data.get("missing", ()):
        near = f"; near: {', '.join(missing['near'])}" if missing["near"] else ""
        problems.append(f"there is no {missing['kind']} {missing['name']!r}{near}")
    for problem in problems:
        display.note(problem)
    return NOT_THERE if problems and given.strict else 0


_NOTES = """\
  --skip P [P ...]      names to leave out, with * as wildcard; ends at the next option or type

A line may have several types. A word that is a type begins a new one if the type before it already has a name
and another word follows; with a comma it is always a name. --quiet goes before the command.

"""
_EXAMPLES = """\
npl-load tailored "grade essays" --budget 900   # the sections a task needs, of the Markdown here
npl-load tailored "deploy" --file docs --topic rollback > context.md    # from a folder
npl-load tailored --kind component --item fences --select "## Purpose"  # by selector alone
npl-load search "retry policy" --file docs --limit 3
npl-load index docs/guide.md
npl-load map --write AGENTS.md
npl-load edit guide.md "## Setup" --operation replace < setup.md
npl-load edit guide.md "## Log" --operation append --content "- done"
npl-load test docs                              # ask the questions of docs/questions.md
npl-load test docs --against origin/main --junit report.xml
npl-load c "syntax,fences"                      # names are separated by commas or blanks
npl-load c "pumps.*"                            # one folder; **.* is everything
npl-load c syntax --select "## Purpose" --depth 0         # one section without its subsections
npl-load c syntax --filter "[has-table]"        # the sections with a table
npl-load c syntax --skip "" m "persona.qa" --skip "x"     # several types, each with its own --skip
npl-load schema nimps | sqlite3 new.db          # create the tables of a schema
npl-load agent npl-grader --definition          # the agent, and the NPL that it needs
npl-load agent --list -v --search 'review|grade'          # agents whose file matches
npl-load agent --list --filter-meta model:opus  # agents with this front matter
npl-load syntax --file prompt.md --matches
npl-load init-claude                            # append the usual prompts, or compare their versions
npl-load init-claude --update-all --dry-run     # the updates, without writing them
"""
_OPTIONS = (
    option("item", "NAME", "names of items, separated by commas or spaces", nargs="*"),
    SELECT,
    switch("--index", help="print the tree of headings instead of the text"),
    FILTER,
    DEPTH,
    FORMAT,
    AS_JSON,
    switch("--verbose", help="accepted for compatibility, no effect"),
)
COMMANDS = Commands()
for _module in (section_commands, edit, test, raw_files, claude_file):
    COMMANDS.update(_module.COMMANDS)
for _name, _what in TYPES.items():
    _usage = f"npl-load [--quiet] {_name} [OPTION ...] [NAME ...]"
    COMMANDS[_name] = Command(
        f"Load {_what}", _load_items, _OPTIONS, "content_tailored", _usage, _NOTES, read_groups
    )
_NAMES = r"""case $1 in
    agent) npl-load agent --list 2>/dev/null ;;
    *) npl-load --quiet "$1" "**.*" 2>/dev/null | sed -n "s/^@.*+=\"\(.*\)\"\$/\1/p" | tr , "\n" ;;
    esac"""
"""Shell command that lists the names after a command, for completion."""

PROGRAM = Program(
    "npl-load",
    "npl-load [-h] [--quiet] [--strict] [--via TRANSPORT] COMMAND ...",
    "Load the sections of Markdown that a task needs, search Markdown, or print NPL items whole, with flags\n"
    "that name the loaded items. Texts go to standard output, messages to standard error.",
    COMMANDS,
    (switch("--strict", help="exit with 1 if an item is missing (default: report it, exit with 0)"), VIA),
    (switch("--quiet", help="print the flags of the items without their text; goes before the command"),),
    groups={"skill": "Check skills"},
    examples=_EXAMPLES,
    exits="""\
Exit codes: 0 success, also if an item is missing (standard error names it), so that scripts for the
predecessor still work; 1 missing item with --strict, or agent without a name; 2 invalid command line, name or
selector; 65 to 77 as in sysexits.h; 130 interrupted; 141 the output was closed.
init-claude: 0 nothing to do, 1 file changed, 2 newer prompts available, 3 source not found.
""",
    completed=(_NAMES, dict.fromkeys((*TYPES, "agent"), ("",))),
)


if __name__ == "__main__":
    sys.exit(main())
