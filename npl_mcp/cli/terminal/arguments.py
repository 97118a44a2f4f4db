"""The command line of ``npl-load`` as a value.

Several types may stand on one line, ``c "syntax" --skip "" m "persona.qa"``, and ``--skip`` takes as many
words as follow it; no general parser reads that, so this one is made for it.

How a word is read that is both a type and a name: it begins a type when the type before it has a name
already and another word follows, as in ``c syntax m persona``; otherwise it is a name, as in ``c m`` and
``c syntax m``. With a comma it is always a name: ``c syntax m, persona``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Option(NamedTuple):
    """One option of a command.

    :param name: its long form.
    :param value: what follows it, for help; ``""`` for a switch.
    :param help: one line.
    :param many: it may be given several times, and all count.
    :param short: its short form.
    :param choices: the values it takes, if not all.
    """

    name: str
    value: str = ""
    help: str = ""
    many: bool = False
    short: str = ""
    choices: tuple[str, ...] = ()


class Command(NamedTuple):
    """One command.

    :param words: what it takes beside options, for help.
    :param most: how many words it takes; ``None`` for any number.
    :param help: one line.
    :param options: its options; those of all commands are in :data:`COMMON`.
    """

    words: str
    most: int | None
    help: str
    options: tuple[Option, ...] = ()


# Plain classes: what makes dataclasses takes longer to import than a server takes to answer.
class Group:
    """What to load of one type.

    ``items`` are the words that name items, ``skip`` those of its last ``--skip``.

    :param kind: the type as written.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.items: list[str] = []
        self.skip: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The names, split at commas, each once."""
        parts = (part.strip() for word in self.items for part in word.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))


class Given:
    """A command line that has been read.

    ``words`` is what is no option, for commands that load no types; ``groups`` what to load, for others.

    :param command: the command, for a line of several types the first.
    :param options: values by long name without dashes.
    """

    def __init__(self, command: str, options: dict[str, list[str]]) -> None:
        self.command = command
        self.options = options
        self.words: list[str] = []
        self.groups: list[Group] = []

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name in self.options

    def last(self, name: str) -> str | None:
        """Return the value an option was given last."""
        return self.options[name][-1] if name in self.options else None

    def all(self, name: str) -> list[str]:
        """Return all values of an option."""
        return self.options.get(name, [])

    def number(self, name: str) -> int | None:
        """Return the value of an option as a whole number.

        :raises UsageError: it is none.
        """
        text = self.last(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"argument --{name}: {text!r} is not a whole number", self.command) from None


class UsageError(Exception):
    """A command line that cannot be read.

    :param command: the command it is about, ``None`` if there is none.
    """

    def __init__(self, problem: str, command: str | None = None) -> None:
        self.problem, self.command = problem, command
        super().__init__(problem)


WAYS = ("auto", "http", "stdio", "direct")
FORMATS = ("text", "yaml", "json")

FIRST = (
    Option("--quiet", help="print the flags of what is loaded, and not its text; stands before the command"),
    Option("--version", help="print the version"),
)
"""Options that stand before the command."""

COMMON = (
    Option("--strict", help="exit with 1 if anything asked for is not there (default: report it, exit 0)"),
    Option("--via", "WAY", "ask a server or do it here: auto, http, stdio, direct", choices=WAYS),
    Option("--help", help="show this help", short="-h"),
)
"""Options of every command, which may stand before it as well."""

_FORMAT = Option("--format", "F", "text (default), yaml or json", choices=FORMATS)
_SELECT = Option("--select", "SELECTOR", "only these sections (repeatable)", many=True)
_DEPTH = Option("--depth", "N", "levels of subsections: 0 none, 1 direct ones; -1 or left out for all")
_LOAD = (
    Option("--skip", "P", "names to leave out, * matches; up to the next option or type"),
    _SELECT,
    Option("--index", help="the tree of headings instead of the text"),
    Option("--filter", "'[P]'", "sections that have-code, -tables, … (repeatable; all must hold)", many=True),
    _DEPTH,
    _FORMAT,
    Option("--verbose", help="accepted and without effect"),
)
_WHERE = (
    Option("--file", "F", "Markdown file, folder, glob or item name"),
    Option("--kind", "TYPE", "type of --item"),
    Option("--item", "NAME", "item or pattern of that type"),
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
"""The types that can stand several on one line."""

COMMANDS: dict[str, Command] = {
    **{name: Command("[NAME ...]", None, f"load {what}", _LOAD) for name, what in TYPES.items()},
    "schema": Command("NAME", 1, "print the SQL of a schema"),
    "init": Command("", 0, "print the core reference, npl.md"),
    "agent": Command(
        "[NAME]",
        1,
        "print an agent, or list agents",
        (
            Option("--list", help="list agents"),
            Option("--verbose", help="with --list: version, description, model, place", short="-v"),
            Option("--search", "REGEX", "with --list: agents whose file matches, whatever the case"),
            Option("--filter-meta", "FIELD:VALUE", "with --list: agents with this front matter"),
            Option("--category", "C", "with --list: agents of this category"),
            Option("--definition", help="append the NPL the agent relies on"),
        ),
    ),
    "syntax": Command(
        "[TEXT | -]",
        1,
        "count the notations of NPL in a text",
        (Option("--file", "F", "the text is in this file"), Option("--matches", help="show some of them")),
    ),
    "init-claude": Command(
        "",
        0,
        "put versioned prompts into CLAUDE.md and keep them current",
        (
            Option("--target", "FILE", "the file (default ./CLAUDE.md)"),
            Option("--prompts", "NAME", "prompts to append, up to the next option"),
            Option("--update", "A,B", "renew or add these sections"),
            Option("--update-all", help="renew or add all that are outdated or missing"),
            Option("--dry-run", help="say what would change, and change nothing"),
            Option("--json", help="print the versions as JSON"),
        ),
    ),
    "tailored": Command(
        "[CONTEXT ...]",
        None,
        "load only the sections a task needs, within a token budget",
        (
            Option("--topic", "T", "a concept (repeatable)", many=True),
            Option("--budget", "N", "most tokens"),
            *_WHERE,
            _SELECT,
            _DEPTH,
            _FORMAT,
        ),
    ),
    "search": Command(
        "WORD ...",
        None,
        "list the sections that fit best, one per line",
        (*_WHERE, Option("--limit", "N", "most lines (default 10)"), _FORMAT),
    ),
    "completion": Command("bash|zsh", 1, "print a script that completes this command line"),
}

_GREEDY = ("--skip", "--prompts")


def parse(words: Sequence[str]) -> Given:
    """Read a command line.

    :param words: without the program's name.
    :raises UsageError: it cannot be read.
    """
    options: dict[str, list[str]] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at = read_option(words, at, (*FIRST, *COMMON), None, options)
    if at == len(words):
        if "help" in options or "version" in options:
            return Given("", options)
        raise UsageError("the following arguments are required: command")
    name = words[at]
    if name not in COMMANDS:
        choices = ", ".join(map(repr, COMMANDS))
        raise UsageError(f"argument command: invalid choice: {name!r} (choose from {choices})")
    given = Given(name, options)
    if name in TYPES:
        _read_types(words, at, given)
    else:
        _read_words(words, at + 1, given, COMMANDS[name], COMMON)
    return given


def read_command(
    words: Sequence[str], commands: Mapping[str, Command], first: Sequence[Option], always: Sequence[Option]
) -> Given:
    """Read the command line of another program, each of whose commands takes words and options.

    :param words: without the program's name.
    :param commands: its commands, by name.
    :param first: options that stand before the command.
    :param always: options of every command, which may stand before it as well.
    :raises UsageError: it cannot be read.
    """
    options: dict[str, list[str]] = {}
    at = 0
    while at < len(words) and is_option(words[at]):
        at = read_option(words, at, (*first, *always), None, options)
    if at == len(words):
        if "help" in options or "version" in options:
            return Given("", options)
        raise UsageError("the following arguments are required: command")
    name = words[at]
    if name not in commands:
        choices = ", ".join(map(repr, commands))
        raise UsageError(f"argument command: invalid choice: {name!r} (choose from {choices})")
    given = Given(name, options)
    _read_words(words, at + 1, given, commands[name], always)
    return given


def _read_words(
    words: Sequence[str], at: int, given: Given, command: Command, always: Sequence[Option]
) -> None:
    """Read the words and options of a command that loads no types."""
    only_words = False
    while at < len(words):
        if words[at] == "--" and not only_words:
            only_words, at = True, at + 1
        elif is_option(words[at]) and not only_words:
            at = read_option(words, at, (*command.options, *always), given.command, given.options)
        else:
            given.words.append(words[at])
            at += 1
    if command.most is not None and len(given.words) > command.most:
        raise UsageError(f"unrecognized arguments: {' '.join(given.words[command.most :])}", given.command)


def _read_types(words: Sequence[str], at: int, given: Given) -> None:
    """Read one type after the other, each with its names and what to skip of it."""
    known = (*_LOAD, *COMMON)
    group = Group(words[at])
    given.groups.append(group)
    at += 1
    only_words = False
    while at < len(words):
        word = words[at]
        if word == "--" and not only_words:
            only_words, at = True, at + 1
        elif is_option(word) and not only_words:
            if _match(word.partition("=")[0], known, given.command).name == "--skip":
                group.skip, at = _skipped(words, at, group)
            else:
                at = read_option(words, at, known, given.command, given.options)
        elif not only_words and _begins_type(words, at, group):
            group = Group(word)
            given.groups.append(group)
            at += 1
        else:
            group.items.append(word)
            at += 1


def _skipped(words: Sequence[str], at: int, group: Group) -> tuple[list[str], int]:
    """Return the words of a ``--skip`` and the place behind them; one word while nothing is named yet."""
    _, equals, value = words[at].partition("=")
    at += 1
    if equals:
        return [value], at
    skip: list[str] = []
    while at < len(words) and not is_option(words[at]) and not _begins_type(words, at, group):
        if skip and not group.items:
            break
        skip.append(words[at])
        at += 1
    return skip, at


def _begins_type(words: Sequence[str], at: int, group: Group) -> bool:
    more = at + 1 < len(words) and not is_option(words[at + 1])
    return words[at] in TYPES and bool(group.items) and more


def is_option(word: str) -> bool:
    """Return whether a word is an option; ``-`` alone is none."""
    return len(word) > 1 and word.startswith("-")


def read_option(
    words: Sequence[str], at: int, known: Sequence[Option], command: str | None, options: dict[str, list[str]]
) -> int:
    """Read the option at a place, with its value; give the place behind it."""
    written, equals, value = words[at].partition("=")
    option = _match(written, known, command)
    at += 1
    values = options.setdefault(option.name[2:], [])
    if not option.value:
        if equals:
            raise UsageError(f"argument {option.name}: ignored explicit argument {value!r}", command)
        values.append("")
        return at
    if option.name in _GREEDY and not equals:
        while at < len(words) and not is_option(words[at]):
            values.append(words[at])
            at += 1
        return at
    if not equals:
        # What has a blank in it is text, e.g. a summary that begins with the name of an option.
        if at == len(words) or (words[at].startswith("--") and " " not in words[at]):
            raise UsageError(f"argument {option.name}: expected one argument", command)
        value, at = words[at], at + 1
    if option.choices and value not in option.choices:
        choices = ", ".join(map(repr, option.choices))
        raise UsageError(
            f"argument {option.name}: invalid choice: {value!r} (choose from {choices})", command
        )
    values.append(value)
    return at


def _match(written: str, known: Sequence[Option], command: str | None) -> Option:
    """Return the option that is written in full, short, or by the beginning of its name alone."""
    exact = [option for option in known if written in (option.name, option.short)]
    begun = [option for option in known if option.name.startswith(written)] if len(written) > 2 else []
    found = exact or begun
    if len(found) > 1:
        names = ", ".join(option.name for option in found)
        raise UsageError(f"ambiguous option: {written} could match {names}", command)
    if not found:
        before = command is not None and written in [option.name for option in FIRST]
        hint = f" (write {written} before the command)" if before else ""
        raise UsageError(f"unrecognized arguments: {written}{hint}", command)
    return found[0]
