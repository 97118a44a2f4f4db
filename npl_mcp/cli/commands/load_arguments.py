"""The command line of ``npl-load``.

Several types may stand on one line, ``c "syntax" --skip "" m "persona.qa"``, and ``--skip`` takes as many
words as follow it. argparse cannot read that: it reads the options, and :func:`read_groups` the words between
them.

A word that is both a type and a name begins a type if the type before it has a name already and another word
follows, as in ``c syntax m persona``; otherwise it is a name, as in ``c m`` and ``c syntax m``. With a comma
it is always a name: ``c syntax m, persona``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from itertools import pairwise

from npl_mcp.cli.terminal.arguments import (
    JSON,
    SHELL,
    VIA,
    Command,
    Program,
    ProgramParser,
    argument,
    count,
    switch,
    whole_number,
)

FORMATS = ("text", "yaml", "json")
OPERATIONS = ("replace", "append", "prepend", "delete", "create")

TYPES: dict[str, str] = {
    "c": "components",
    "m": "metadata",
    "s": "style guides",
    "spec": "specifications",
    "persona": "agent personas",
    "user-persona": "user personas",
    "prd": "product requirements",
    "story": "user stories",
    "prompt": "prompts",
    "workflow": "workflows",
}
"""The types, of which several can stand on one line."""

_AS_JSON = argument(
    "--json", action="store_const", const="json", dest="format", help="the same as --format json"
)
_SELECT = argument(
    "--select",
    dest="selectors",
    action="append",
    metavar="SELECTOR",
    help="load only these sections (repeatable)",
)
_DEPTH = argument("--depth", type=whole_number, metavar="N")
_FILTER = argument(
    "--filter",
    action="append",
    metavar="'[P]'",
    help="only sections with e.g. [has-code] or [has-table] (repeatable; all must hold)",
)
_ITEMS = (
    _SELECT,
    switch("--index", help="print the tree of headings instead of the text"),
    _FILTER,
    _DEPTH,
    argument("--format", choices=FORMATS, default="text", metavar="F", help="text (default), yaml or json"),
    _AS_JSON,
    switch("--verbose", help="accepted for compatibility, no effect"),
)
_ROOT = argument("--root", action="append", metavar="DIR", help="search this folder (repeatable; first wins)")
_WHERE = (
    argument(
        "--file",
        action="append",
        metavar="F",
        help="Markdown file, folder, glob or item name, - for standard input (repeatable)",
    ),
    argument("--kind", dest="resource_type", metavar="TYPE"),
    argument("--item", metavar="NAME"),
    _ROOT,
)
_BUDGET = argument("--budget", dest="token_budget", type=whole_number, metavar="N")
_OUTPUT = (
    argument(
        "--format",
        choices=("text", "markdown", "yaml", "json"),
        metavar="F",
        help="text (default), markdown as agents get it, yaml or json",
    ),
    _AS_JSON,
    argument("-o", "--output", metavar="FILE", help="write to this file instead of standard output"),
)
_SEVERAL_TYPES = """\
  NAME                  names of items, separated by commas or spaces
  --skip P [P ...]      names to leave out, * matches; up to the next option or type

Several types can follow each other. A word that is a type begins one if the type before it has a name already
and another word follows; with a comma it is always a name. --quiet goes before the command.
"""
_TYPE_EXAMPLES = (
    'npl-load c "syntax,fences"                      # names are separated by commas or blanks',
    'npl-load c "pumps.*"                            # one folder; **.* is everything',
    'npl-load c "syntax" --skip "" m "persona.qa" --skip "x"  # every type has its own --skip',
    "npl-load c syntax --index                       # the headings of a component",
    'npl-load c syntax --select "## Purpose" --depth 0  # one section without its subsections',
    'npl-load c syntax --filter "[has-table]"        # the sections with a table',
    'npl-load --quiet c "**.*"                       # the flags alone',
)
_EXITS = """\
Exit codes: 0 also if an item is missing (it is reported on standard error), so that scripts written for the
predecessor keep working; 1 with --strict, or an agent without a name; 2 a command line, a name or a selector
that cannot be used; 65 to 77 as in sysexits.h; 130 interrupted; 141 nobody reads the output.
init-claude: 0 nothing to do, 1 file changed, 2 newer prompts available, 3 source not found.
"""


class Group:
    """The items to load of one type.

    ``words`` name items, ``skip`` are those of the last ``--skip``.

    :param kind: the type as written.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.words: list[str] = []
        self.skip: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The names, split at commas, each once."""
        parts = (part.strip() for word in self.words for part in word.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))


def read_groups(parser: ProgramParser, words: Sequence[str], given: argparse.Namespace) -> None:
    """Read one type after the other, each with its names and its ``--skip``.

    argparse reads one option at a time, with the words up to the next one, and leaves those that are not the
    option's value.

    :param parser: of the first type.
    :param words: behind it.
    :param given: gets the options, and ``groups``, a list of :class:`Group`.
    """
    parser.names = {"item": "NAME"}
    given.groups = groups = [Group(parser.prog.split()[-1])]
    end = words.index("--") if "--" in words else len(words)
    starts = [0, *(at for at in range(end) if _is_option(words[at])), end]
    for start, stop in pairwise(starts):
        part = words[start:stop]
        if part and _is_skip(part[0]):
            left = _read_skip(part, groups[-1])
        else:
            _, left = parser.parse_known_args(part, given)
        if left and _is_option(left[0]):
            hint = f" (write {left[0]} before the command)" if left[0] == "--quiet" else ""
            parser.error(f"unrecognized arguments: {left[0]}{hint}")
        for at, word in enumerate(left):
            if _begins_type(left, at, groups[-1]):
                groups.append(Group(word))
            else:
                groups[-1].words.append(word)
    groups[-1].words += words[end + 1 :]


def _read_skip(part: Sequence[str], group: Group) -> list[str]:
    """Read a ``--skip`` and return the words behind it. It takes one word while nothing is named yet."""
    _, equals, value = part[0].partition("=")
    if equals:
        group.skip = [value]
        return [*part[1:]]
    stop = 1
    while stop < len(part) and (group.words or stop == 1) and not _begins_type(part, stop, group):
        stop += 1
    group.skip = [*part[1:stop]]
    return [*part[stop:]]


def _begins_type(words: Sequence[str], at: int, group: Group) -> bool:
    return words[at] in TYPES and bool(group.words) and at + 1 < len(words)


def _is_option(word: str) -> bool:
    """Return whether argparse takes a word for an option: no negative number, and no text with a space."""
    return re.match(r"-[^\d\s=][^\s=]*(=|\Z)", word) is not None


def _is_skip(word: str) -> bool:
    name = word.partition("=")[0]
    return len(name) > 3 and "--skip".startswith(name)


COMMANDS: dict[str, Command] = {
    "tailored": Command(
        "load only the sections that a task needs, within a token budget",
        (
            argument("words", nargs="*", metavar="CONTEXT", help="the task or question"),
            argument("--topic", dest="topics", action="append", metavar="T"),
            _BUDGET,
            *_WHERE,
            _SELECT,
            _DEPTH,
            *_OUTPUT,
        ),
        (
            'npl-load tailored "review NPL fences" --budget 800      # from the working directory',
            'npl-load tailored "deploy" --file docs --topic rollback > context.md  # from a folder',
            'npl-load tailored --kind component --item fences --select "## Purpose"  # by selector alone',
        ),
        tool="content_tailored",
    ),
    "search": Command(
        "list where words stand, one line a section",
        (
            argument("words", nargs="+", metavar="WORD", help="the query"),
            *_WHERE,
            argument("--limit", type=count, metavar="N"),
            *_OUTPUT,
        ),
        (
            "npl-load search fence label                            # in the working directory",
            'npl-load search "retry policy" --file docs --limit 3   # in a folder',
        ),
        tool="search",
    ),
    "index": Command(
        "list the sections of files, with their sizes",
        (
            argument("words", nargs="*", metavar="FILE", help="the same as --file"),
            _BUDGET,
            *_WHERE,
            _FILTER,
            _DEPTH,
            *_OUTPUT,
        ),
        ("npl-load index docs/guide.md",),
        tool="npl_section_index",
    ),
    "map": Command(
        "show folders, names of documents and rare words of their headings",
        (
            argument("words", nargs="*", metavar="DIR", help="folders and files of the map"),
            _ROOT,
            argument(
                "--write", metavar="FILE", help="keep the map in a marked block of this file, e.g. AGENTS.md"
            ),
            switch("--check", help="with --write: change nothing, exit with 1 if the block is old"),
        ),
        ("npl-load map --write AGENTS.md",),
    ),
    "edit": Command(
        "change or delete a section of a Markdown file, or create one",
        (
            argument("file", metavar="FILE"),
            argument("selector", nargs="?", metavar="SELECTOR"),
            argument("--operation", choices=OPERATIONS, required=True, metavar="OP"),
            argument("--content", metavar="TEXT", help="the text; by default standard input"),
            argument("--expect", metavar="DIGEST"),
            _ROOT,
            JSON,
        ),
        (
            'npl-load edit guide.md "## Setup" --operation replace < setup.md    # from standard input',
            'npl-load edit guide.md "## Log" --operation append --content "- done"  # add to a section',
        ),
        tool="npl_update_section",
    ),
    "schema": Command(
        "print the SQL of a schema",
        (argument("item", metavar="NAME"),),
        ("npl-load schema nimps | sqlite3 new.db  # create the tables of a schema",),
    ),
    "init": Command("print the core reference, npl.md", examples=("npl-load init",)),
    "agent": Command(
        "print an agent, or list agents",
        (
            argument("item", nargs="?", metavar="NAME"),
            switch("--list", help="list agents"),
            switch("-v", "--verbose", help="with --list: version, description, model, location"),
            argument(
                "--search", metavar="REGEX", help="with --list: agents whose file matches, ignoring case"
            ),
            argument(
                "--filter-meta", metavar="FIELD:VALUE", help="with --list: agents with this front matter"
            ),
            argument("--category", metavar="C", help="with --list: agents of this category"),
            switch("--json", help="with --list: print JSON"),
            switch("--definition", help="append the NPL that the agent relies on"),
        ),
        (
            "npl-load agent npl-grader --definition             # the agent, and the NPL that it relies on",
            "npl-load agent --list -v --search 'review|grade'   # agents whose file matches",
            "npl-load agent --list --filter-meta model:opus     # agents with this front matter",
        ),
    ),
    "syntax": Command(
        "count the NPL notations in a text",
        (
            argument("text", nargs="?", metavar="TEXT", help="the text, or - for standard input"),
            argument("--file", metavar="F", help="read the text from this file"),
            switch("--matches", help="show some of them"),
            JSON,
        ),
        ("npl-load syntax --file prompt.md --matches",),
    ),
    "init-claude": Command(
        "put versioned prompts into CLAUDE.md and keep them up to date",
        (
            argument(
                "--target", metavar="FILE", default="./CLAUDE.md", help="the file (default ./CLAUDE.md)"
            ),
            argument("--prompts", nargs="*", action="extend", metavar="NAME", help="prompts to append"),
            argument("--update", metavar="A,B", help="update or add these sections"),
            switch("--update-all", help="update or add all that are outdated or missing"),
            switch("--dry-run", help="print what would change, and change nothing"),
            switch("--json", help="print the versions as JSON"),
        ),
        (
            "npl-load init-claude                          # append the usual prompts, or compare versions",
            "npl-load init-claude --update-all --dry-run   # what would be updated",
        ),
    ),
    **{
        name: Command(
            f"load {what}",
            _ITEMS,
            _TYPE_EXAMPLES,
            "content_tailored",
            f"npl-load [--quiet] {name} [OPTION ...] [NAME ...]",
            _SEVERAL_TYPES,
            read_groups,
        )
        for name, what in TYPES.items()
    },
    "completion": SHELL,
}

PROGRAM = Program(
    "npl-load",
    "Load the sections of Markdown that a task needs, search it, or print NPL items whole, with the flags\n"
    "that say what is loaded. The text goes to standard output, messages about it to standard error.",
    "npl-load [-h] [--quiet] [--strict] [--via TRANSPORT] COMMAND ...",
    COMMANDS,
    (switch("--quiet", help="print the flags of what is loaded and not its text; goes before the command"),),
    (switch("--strict", help="exit with 1 if an item is missing (default: report it, exit with 0)"), VIA),
    (
        'npl-load tailored "grade essays" --budget 900   # what a task needs, of the Markdown here',
        "npl-load search retry policy                    # the best sections, one per line",
        'npl-load c "syntax" m "persona.qa" s "house"    # several types, one header of flags',
    ),
    _EXITS,
)
