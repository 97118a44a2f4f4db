"""The command lines of programs that have commands, read with argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from npl_mcp import __version__
from npl_mcp.config.completion import SHELLS, parsers_of, script
from npl_mcp.config.settings import SETTINGS
from npl_mcp.tools.domains import tool_named


class Argument(NamedTuple):
    """One option or word of a command.

    :param names: its spellings, or the name of a word.
    :param settings: of :meth:`argparse.ArgumentParser.add_argument`.
    """

    names: tuple[str, ...]
    settings: dict[str, Any]


def argument(*names: str, **settings: Any) -> Argument:
    """Return an argument; see :class:`Argument`."""
    return Argument(names, settings)


def option(name: str, metavar: str, help: str | None = None, **settings: Any) -> Argument:
    """Return an option with a value, or a word."""
    return Argument((name,), {"metavar": metavar, "help": help, **settings})


def repeated(name: str, metavar: str, help: str | None = None, **settings: Any) -> Argument:
    """Return an option that may be given several times."""
    return option(name, metavar, help and f"{help} (repeatable)", action="append", **settings)


def switch(*names: str, help: str | None = None) -> Argument:
    """Return an option without a value."""
    return Argument(names, {"action": "store_true", "help": help})


def add(parser: argparse.ArgumentParser, *arguments: Argument, **settings: Any) -> None:
    """Add arguments to a parser.

    :param settings: that replace those of each argument.
    """
    for one in arguments:
        parser.add_argument(*one.names, **{**one.settings, **settings})


VIA = argument(
    "--via",
    choices=SETTINGS["via"].kind.option["choices"],
    metavar="TRANSPORT",
    help="call a server or run here: auto (default), http, stdio, direct",
)
JSON = switch("--json", help="print JSON")
SHELL = argument("shell", choices=SHELLS, metavar="|".join(SHELLS))


class UsageError(Exception):
    """A command line that cannot be read.

    :param problem: what is wrong with it.
    :param usage: what it should look like, if the problem is one of its form.
    """

    def __init__(self, problem: str, usage: str = "") -> None:
        self.problem, self.usage = problem, usage
        super().__init__(problem)


class ProgramParser(argparse.ArgumentParser):
    """Reads the words of a program or of one of its commands, which are parsers of their own.

    The parser that meets a word it does not know reports it. A command's words may stand between its options.
    """

    tool = ""
    """Tool whose parameters the arguments are, by ``dest``."""

    reader: Callable[[ProgramParser, list[str], argparse.Namespace], None] | None = None
    """Replaces the default parsing of the words."""

    _reading = False

    def error(self, message: str) -> NoReturn:
        """Report a problem where all others are reported."""
        raise UsageError(message, f"{self.format_usage()}Try {self.prog} --help.")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Read words; see :meth:`argparse.ArgumentParser.parse_known_args`.

        :returns: the values, and no words.
        """
        if self._reading:
            return super().parse_known_args(args, namespace)
        self._reading = True
        try:
            if self.reader is not None:
                given, left = super().parse_known_args([], namespace)
                self.reader(self, args, given)
            elif self._subparsers is not None:
                given, left = super().parse_known_args(args, namespace)
            else:
                given, left = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._reading = False
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)[:200]}")
        return given, left

    def share(self, options: Iterable[argparse.Action]) -> None:
        """Take options of the whole program behind the command, too, where it has none of the same name.

        One that is given replaces the value from before the command; help and usage of a command show its own
        options alone.
        """
        for option in options:
            if not set(option.option_strings) & set(self._option_string_actions):
                again = copy(option)
                again.default = again.help = argparse.SUPPRESS
                self._add_action(again)

    def describe(self) -> None:
        """Give each argument without a text the meaning of the tool's parameter."""
        meanings = tool_named(self.tool).meanings if self.tool else {}
        for action in self._actions:
            if action.help is None and (text := meanings.get(action.dest)):
                text = text.removesuffix(".").replace("`", "").replace("%", "%%")
                action.help = text[:1].lower() + text[1:]

    def format_help(self) -> str:
        """Return the help."""
        self.describe()
        return super().format_help()

    def told(self, problem: str, parameter: str | None) -> str:
        """Return an error in the words of this command line.

        :param problem: of a tool; begins with the name of the parameter it is about.
        :param parameter: e.g. ``tags[0]``.
        """
        name, _, index = (parameter or "").rstrip("]").partition("[")
        names = {
            one.dest: (one.option_strings or [str(one.metavar or one.dest)])[-1] for one in self._actions
        }
        flag = names.get(name)
        if flag is None or parameter is None or not problem.startswith(parameter):
            return problem
        word = f" (word {int(index) + 1})" if index else ""
        return f"{flag}{word}{problem.removeprefix(parameter)}"


Run = Callable[[argparse.Namespace, Any], Any]
"""Runs a command, given its arguments, and the display or the settings."""


@dataclass(frozen=True)
class Command:
    """One command of a program.

    :param help: a sentence without a full stop.
    :param run: runs it.
    :param arguments: of the command, besides the options of all commands.
    :param tool: see :attr:`ProgramParser.tool`.
    :param usage: instead of the one that argparse writes.
    :param notes: lines of the help before the examples.
    :param reader: see :attr:`ProgramParser.reader`.
    """

    help: str
    run: Run
    arguments: tuple[Argument, ...]
    tool: str = ""
    usage: str | None = None
    notes: str = ""
    reader: Callable[[ProgramParser, list[str], argparse.Namespace], None] | None = None


class Commands(dict[str, Command]):
    """Commands by name. The name of a command of a group begins with that of the group."""

    def add(self, name: str, *arguments: Argument, **more: Any) -> Callable[[Run], Run]:
        """Make a function a command, whose help is the docstring; see :class:`Command`."""

        def register(run: Run) -> Run:
            text = " ".join((run.__doc__ or "").split()).removesuffix(".")
            self[name] = Command(text, run, arguments, **more)
            return run

        return register


@dataclass(frozen=True)
class Program:
    """A program with commands.

    :param name: name of the program.
    :param usage: the options that may stand before the command.
    :param description: for its help.
    :param commands: of the program.
    :param common: options of every command, which may stand before it as well.
    :param first: options that stand before the command.
    :param settings: adds the flags of settings, which may stand anywhere, to a parser; with them the command
        may be missing.
    :param groups: meanings of the groups of commands.
    :param examples: command lines, with their meaning behind ``#``.
    :param exits: the end of each help.
    :param completed: lines for ``sh`` that list the names behind a command, and the options and commands
        before such names; see :func:`~npl_mcp.config.completion.script`.
    """

    name: str
    usage: str
    description: str
    commands: Commands
    common: tuple[Argument, ...] = ()
    first: tuple[Argument, ...] = ()
    settings: Callable[[argparse.ArgumentParser], None] | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    examples: str = ""
    exits: str = ""
    completed: tuple[str, Mapping[str, Collection[str]]] = (":", {})

    def parser(self) -> ProgramParser:
        """Return the parser of the program and all of its commands."""
        form, examples = argparse.RawDescriptionHelpFormatter, self.examples.splitlines()
        epilog = self._epilog(examples)
        result = ProgramParser(self.name, self.usage, self.description, epilog, formatter_class=form)
        if self.settings:
            self.settings(result)
        version = f"{self.name} {__version__}"
        result.add_argument("--version", action="version", version=version, help="print the version")
        shared = [one for one in result._actions if one.dest != "help"] if self.settings else []
        add(result, *self.first, *self.common)
        of_group: dict[str, Any] = {
            "": result.add_subparsers(
                title="commands",
                dest="command",
                metavar="COMMAND",
                prog=self.name,
                required=self.settings is None,
            )
        }
        for group, meaning in self.groups.items():
            inner = of_group[""].add_parser(group, help=meaning, description=f"{meaning}.")
            steps = [name.split()[1] for name in self.commands if name.startswith(f"{group} ")]
            of_group[group] = inner.add_subparsers(dest="step", metavar="|".join(steps), required=True)
            inner.share(shared)
        shell = Command("Print a completion script for a shell", self._complete, (SHELL,))
        for name, one in {**self.commands, "completion": shell}.items():
            group, _, last = name.rpartition(" ")
            inner = of_group[group].add_parser(
                last,
                help=one.help[:1].lower() + one.help[1:],
                usage=one.usage,
                description=f"{one.help}.",
                epilog=one.notes + self._epilog([line for line in examples if line.split()[1] == name]),
                formatter_class=form,
            )
            inner.tool, inner.reader = one.tool, one.reader
            inner.set_defaults(parser=inner, run=one.run)
            add(inner, *one.arguments)
            add(inner, *self.common, default=argparse.SUPPRESS)
            inner.share(shared)
        return result

    def _epilog(self, examples: Sequence[str]) -> str:
        lines = examples or [f"{self.name} --help"]
        return "\n  ".join(["Examples:", *lines]) + f"\n\n{self.exits}"

    def _complete(self, given: argparse.Namespace, display: Any) -> None:
        parser = self.parser()
        for inner in parsers_of(parser).values():
            if isinstance(inner, ProgramParser):
                inner.describe()
        display.text(script(given.shell, parser, *self.completed))


def whole_number(text: str) -> int:
    """Read a whole number.

    :raises ArgumentTypeError: it is none.
    """
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a whole number") from None


def count(text: str) -> int:
    """Read how many of something are wanted.

    :raises ArgumentTypeError: it is no whole number from 1 to a billion.
    """
    number = whole_number(text)
    if not 1 <= number <= 1_000_000_000:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is out of range; write 1 to 1000000000")
    return number
