"""The command lines of programs that have commands, read with argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from npl_mcp import __version__
from npl_mcp.config.completion import SHELLS, parsers_of, script
from npl_mcp.config.settings import SETTINGS
from npl_mcp.tools.domains import tool_named

Arguments = tuple["Argument", ...]


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


def switch(*names: str, help: str | None = None, **settings: Any) -> Argument:
    """Return an option without a value."""
    return Argument(names, {"action": "store_true", "help": help, **settings})


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
    """Reads the words in another way."""

    names: Mapping[str, str] = {}
    """Names of arguments that argparse does not read, by parameter."""

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
        self.epilog = f"Options of {self.prog.split()[0]}, such as --root DIR, may stand here as well."

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
        flag = {**names, **self.names}.get(name)
        if flag is None or parameter is None or not problem.startswith(parameter):
            return problem
        word = f" (word {int(index) + 1})" if index else ""
        return f"{flag}{word}{problem.removeprefix(parameter)}"


@dataclass(frozen=True)
class Command:
    """One command of a program.

    :param help: one line.
    :param arguments: of the command, besides the options of all commands.
    :param examples: command lines, with their meaning behind ``#``.
    :param tool: see :attr:`ProgramParser.tool`.
    :param usage: instead of the one that argparse writes.
    :param notes: lines of the help before the examples.
    :param reader: see :attr:`ProgramParser.reader`.
    """

    help: str
    arguments: Arguments = ()
    examples: tuple[str, ...] = ()
    tool: str = ""
    usage: str | None = None
    notes: str = ""
    reader: Callable[[ProgramParser, list[str], argparse.Namespace], None] | None = None


SHELL = Command(
    "print a completion script for a shell",
    (argument("shell", choices=SHELLS, metavar="|".join(SHELLS)),),
    ("source <(PROGRAM completion bash)  # in ~/.bashrc",),
)


@dataclass(frozen=True)
class Program:
    """A program whose commands call tools.

    :param name: name of the program.
    :param description: for its help.
    :param usage: the options that may stand before the command.
    :param commands: by name.
    :param first: options that stand before the command.
    :param common: options of every command, which may stand before it as well.
    :param examples: command lines, with their meaning behind ``#``.
    :param exits: exit codes, for its help.
    """

    name: str
    description: str
    usage: str
    commands: Mapping[str, Command]
    first: Arguments
    common: Arguments
    examples: tuple[str, ...]
    exits: str

    def parser(self) -> ProgramParser:
        """Return the parser of the program and all of its commands."""
        form = argparse.RawDescriptionHelpFormatter
        epilog = self._epilog("", self.examples)
        result = ProgramParser(self.name, self.usage, self.description, epilog, formatter_class=form)
        version = f"{self.name} {__version__}"
        result.add_argument("--version", action="version", version=version, help="print the version")
        add(result, *self.first, *self.common)
        title = f"commands ({self.name} COMMAND --help has examples)"
        commands = result.add_subparsers(
            title=title, dest="command", metavar="command", required=True, prog=self.name
        )
        for name, command in self.commands.items():
            inner = commands.add_parser(
                name,
                help=command.help,
                usage=command.usage,
                description=f"{command.help[:1].upper()}{command.help[1:]}.",
                epilog=self._epilog(command.notes, command.examples),
                formatter_class=form,
            )
            inner.tool, inner.reader = command.tool, command.reader
            add(inner, *command.arguments)
            add(inner, *self.common, default=argparse.SUPPRESS)
            inner.set_defaults(parser=inner)
        return result

    def _epilog(self, notes: str, examples: Iterable[str]) -> str:
        lines = "".join(f"  {line.replace('PROGRAM', self.name)}\n" for line in examples)
        return "\n".join(filter(None, (notes, f"Examples:\n{lines}", self.exits)))

    def completion(self, shell: str, names: str, named: Mapping[str, Collection[str]]) -> str:
        """Return the completion script; see :func:`~npl_mcp.config.completion.script`."""
        parser = self.parser()
        for inner in parsers_of(parser).values():
            if isinstance(inner, ProgramParser):
                inner.describe()
        return script(shell, parser, names, named)


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
