"""The command line of ``npl-load``.

Several types may stand on one line, ``c "syntax" --skip "" m "persona.qa"``, and ``--skip`` takes as many
words as follow it. argparse cannot read that: it reads the options, and :func:`_groups` the words between
them.

A word that is both a type and a name begins a type if the type before it has a name already and another word
follows, as in ``c syntax m persona``; otherwise it is a name, as in ``c m`` and ``c syntax m``. With a comma
it is always a name: ``c syntax m, persona``.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from itertools import pairwise

from npl_mcp.cli.terminal.arguments import (
    JSON,
    SHELL,
    VIA,
    Command,
    Parser,
    Program,
    argument,
    count,
    read_command,
    read_rest,
    switch,
    version,
    whole_number,
)

FORMATS = ("text", "yaml", "json")
SECTION_FORMATS = ("text", "markdown", "yaml", "json")
SECTION_COMMANDS = ("tailored", "search", "index")
OPERATIONS = ("replace", "append", "prepend", "delete", "create")

_FORMAT = argument(
    "--format", choices=FORMATS, default=FORMATS[0], metavar="F", help="text (default), yaml or json"
)
_AS_JSON = argument(
    "--json", action="store_const", const="json", dest="format", help="the same as --format json"
)
_SELECT = argument(
    "--select", action="append", metavar="SELECTOR", help="load only these sections (repeatable)"
)
_DEPTH = argument(
    "--depth",
    type=whole_number,
    metavar="N",
    help="levels of subsections: 0 for none, 1 for direct ones; -1, the default, for all",
)
_FILTER = argument(
    "--filter",
    action="append",
    metavar="'[P]'",
    help="only sections with e.g. [has-code] or [has-table] (repeatable; all must hold)",
)
_LOAD = (
    _SELECT,
    switch("--index", help="print the tree of headings instead of the text"),
    _FILTER,
    _DEPTH,
    _FORMAT,
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
    argument("--kind", metavar="TYPE", help="type of --item"),
    argument("--item", metavar="NAME", help="item or pattern of that type"),
    _ROOT,
)
_BUDGET = argument(
    "--budget", type=whole_number, metavar="N", help="maximum number of tokens; 0 for no limit"
)
_OUTPUT = (
    argument(
        "--format",
        choices=SECTION_FORMATS,
        metavar="F",
        help="text (default), markdown as agents get it, yaml or json",
    ),
    _AS_JSON,
    argument("-o", "--output", metavar="FILE", help="write to this file instead of standard output"),
)

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

_AGENT = (
    argument("name", nargs="?", metavar="NAME"),
    switch("--list", help="list agents"),
    switch("-v", "--verbose", help="with --list: version, description, model, location"),
    argument("--search", metavar="REGEX", help="with --list: agents whose file matches, ignoring case"),
    argument("--filter-meta", metavar="FIELD:VALUE", help="with --list: agents with this front matter"),
    argument("--category", metavar="C", help="with --list: agents of this category"),
    switch("--json", help="with --list: print JSON"),
    switch("--definition", help="append the NPL that the agent relies on"),
)
_INIT_CLAUDE = (
    argument("--target", metavar="FILE", default="./CLAUDE.md", help="the file (default ./CLAUDE.md)"),
    argument("--prompts", nargs="*", action="extend", metavar="NAME", help="prompts to append"),
    argument("--update", metavar="A,B", help="update or add these sections"),
    switch("--update-all", help="update or add all that are outdated or missing"),
    switch("--dry-run", help="print what would change, and change nothing"),
    switch("--json", help="print the versions as JSON"),
)
_TAILORED = (
    argument("words", nargs="*", metavar="CONTEXT"),
    argument("--topic", action="append", metavar="T", help="a concept (repeatable)"),
    _BUDGET,
    *_WHERE,
    _SELECT,
    _DEPTH,
    *_OUTPUT,
)
_SEARCH = (
    argument("words", nargs="+", metavar="WORD"),
    *_WHERE,
    argument("--limit", type=count, metavar="N", help="maximum number of hits (default 8)"),
    *_OUTPUT,
)
_INDEX = (
    argument("words", nargs="*", metavar="FILE"),
    _BUDGET,
    *_WHERE,
    _FILTER,
    _DEPTH,
    *_OUTPUT,
)
_MAP = (
    argument("words", nargs="*", metavar="DIR"),
    _ROOT,
    argument("--write", metavar="FILE", help="keep the map in a marked block of this file, e.g. AGENTS.md"),
    switch("--check", help="with --write: change nothing, exit with 1 if the block is old"),
)
_EDIT = (
    argument("file", metavar="FILE", help="one Markdown file"),
    argument(
        "selector",
        nargs="?",
        metavar="SELECTOR",
        help="one section, with its subsections; [depth=0] spares them; create takes none",
    ),
    argument("--operation", choices=OPERATIONS, required=True, metavar="OP", help=", ".join(OPERATIONS)),
    argument("--content", metavar="TEXT", help="the text; by default standard input"),
    argument("--expect", metavar="DIGEST", help="change only what index or edit gave this digest of"),
    _ROOT,
    JSON,
)

COMMANDS: dict[str, Command] = {
    "tailored": Command("load only the sections that a task needs, within a token budget", _TAILORED),
    "search": Command("list where words stand, one line a section", _SEARCH),
    "index": Command("list the sections of files, with their sizes", _INDEX),
    "map": Command("show folders, names of documents and rare words of their headings", _MAP),
    "edit": Command("change or delete a section of a Markdown file, or create one", _EDIT),
    "schema": Command("print the SQL of a schema", (argument("name", metavar="NAME"),)),
    "init": Command("print the core reference, npl.md"),
    "agent": Command("print an agent, or list agents", _AGENT),
    "syntax": Command(
        "count the NPL notations in a text",
        (
            argument("text", nargs="?", metavar="TEXT", help="the text, or - for standard input"),
            argument("--file", metavar="F", help="read the text from this file"),
            switch("--matches", help="show some of them"),
            JSON,
        ),
    ),
    "init-claude": Command("put versioned prompts into CLAUDE.md and keep them up to date", _INIT_CLAUDE),
    **{
        name: Command(f"load {what}", _LOAD, f"npl-load [--quiet] {name} [OPTION ...] [NAME ...]")
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
    (
        switch("--quiet", help="print the flags of what is loaded and not its text; goes before the command"),
        version("npl-load"),
    ),
    (switch("--strict", help="exit with 1 if an item is missing (default: report it, exit with 0)"), VIA),
)


# Plain: what makes dataclasses takes longer to import than a server takes to answer.
class Group:
    """What to load of one type.

    ``words`` are those that name items, ``skip`` those of the last ``--skip``.

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


def parse(words: Sequence[str] | None) -> Namespace:
    """Read a command line; see :func:`~npl_mcp.cli.terminal.arguments.read_command`.

    :returns: with ``groups``, a list of :class:`Group`, if the command is a type.
    :raises UsageError: it cannot be read.
    """
    given = read_command(PROGRAM, words)
    if given.command not in TYPES:
        return read_rest(given)
    given.groups = _groups(given, given.parser)
    return given


def _groups(given: Namespace, parser: Parser) -> list[Group]:
    """Read one type after the other, each with its names and its ``--skip``.

    argparse reads one option at a time, with the words up to the next one, and leaves those that are not the
    option's value.
    """
    groups = [Group(given.command)]
    words: list[str] = given.rest
    end = words.index("--") if "--" in words else len(words)
    starts = [0, *(at for at in range(end) if _is_option(words[at])), end]
    for start, stop in pairwise(starts):
        part = words[start:stop]
        if part and _is_skip(part[0]):
            left = _read_skip(part, groups[-1])
        else:
            _, left = parser.parse_known_args(part, given)
        if left and _is_option(left[0]):
            hint = f" (write {left[0]} before the command)" if left[0] in PROGRAM.options() else ""
            parser.error(f"unrecognized arguments: {left[0]}{hint}")
        for at, word in enumerate(left):
            if _begins_type(left, at, groups[-1]):
                groups.append(Group(word))
            else:
                groups[-1].words.append(word)
    groups[-1].words += words[end + 1 :]
    return groups


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
