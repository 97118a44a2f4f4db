"""The command lines of programs that have commands, read with argparse.

Only the parser of the command that is called is built: those of all commands would take longer than a server
takes to answer.
"""

# Not "from __future__ import annotations": a NamedTuple compiles annotations that are texts, and the first
# compilation costs a command two milliseconds.

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple, NoReturn

from npl_mcp import __version__
from npl_mcp.config.completion import SHELLS
from npl_mcp.config.settings import SETTINGS


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


def switch(*names: str, help: str) -> Argument:
    """Return an option without a value."""
    return Argument(names, {"action": "store_true", "help": help})


class Command(NamedTuple):
    """One command.

    :param help: one line.
    :param arguments: what it takes, beside the options of all commands.
    :param usage: in place of the one that argparse writes.
    """

    help: str
    arguments: tuple[Argument, ...] = ()
    usage: str | None = None


class Program(NamedTuple):
    """A program with commands.

    :param name: as it is called.
    :param description: for its help.
    :param usage: what may stand before the command.
    :param commands: by name.
    :param first: options that stand before the command.
    :param common: options of every command, which may stand before it as well.
    """

    name: str
    description: str
    usage: str
    commands: Mapping[str, Command]
    first: tuple[Argument, ...]
    common: tuple[Argument, ...]

    def options(self, command: str | None = None) -> list[str]:
        """Return the long options of a command, or those that may stand before one."""
        own = self.first if command is None else self.commands[command].arguments
        names = [name for one in (*own, *self.common) for name in one.names]
        return [*(name for name in names if name.startswith("--")), "--help"]


VIA = argument(
    "--via",
    choices=SETTINGS["via"].kind.option["choices"],
    metavar="TRANSPORT",
    help="call a server or run here: auto (default), http, stdio, direct",
)
JSON = switch("--json", help="print JSON")
SHELL = Command(
    "print a completion script for a shell",
    (argument("shell", choices=SHELLS, metavar="|".join(SHELLS)),),
)


def add(parser: argparse.ArgumentParser, *arguments: Argument) -> None:
    """Add arguments to a parser."""
    for one in arguments:
        parser.add_argument(*one.names, **one.settings)


class UsageError(Exception):
    """A command line that cannot be read.

    :param problem: what is wrong with it.
    :param usage: what it should look like, if the problem is one of its form.
    """

    def __init__(self, problem: str, usage: str = "") -> None:
        self.problem, self.usage = problem, usage
        super().__init__(problem)


class ReportingParser(argparse.ArgumentParser):
    """Reports what is wrong with a command line as :class:`UsageError`."""

    def error(self, message: str) -> NoReturn:
        """Report a problem where all others are reported."""
        raise UsageError(message, f"{self.format_usage()}Try {self.prog} --help.")


class ProgramParser(ReportingParser):
    """Reads the words of a program whose commands are parsers of their own.

    Whichever of them meets a word that it does not know reports it.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Read words; see :meth:`argparse.ArgumentParser.parse_known_args`.

        :returns: the values, and no words.
        """
        given, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)[:200]}")
        return given, left

    def share(self, options: Iterable[argparse.Action]) -> None:
        """Take options of the whole program behind the command, too, where it has none of the same name.

        One that is given counts in the place of what stood before the command; help and usage of a command
        show its own options alone.
        """
        for option in options:
            if not set(option.option_strings) & set(self._option_string_actions):
                again = copy(option)
                again.default = again.help = argparse.SUPPRESS
                self._add_action(again)
        self.epilog = f"Options of {self.prog.split()[0]}, such as --root DIR, may stand here as well."


_WORD = re.compile(r"'?\b(\w+)(?:\[(\d+)\])?'?")


def with_flags(problem: str, parameter: str | None, flags: Mapping[str, str]) -> str:
    """Return a message in the words of a command line.

    :param problem: e.g. ``tags[0] is empty``.
    :param parameter: that it is about; others stand in quotes.
    :param flags: what is written on the command line, by parameter.
    """
    name = (parameter or "").partition("[")[0]
    if name not in flags:
        return problem

    found = next((one for one in _WORD.finditer(problem) if one[1] == name), None)
    if found is not None:
        place = f" (word {int(found[2]) + 1})" if found[2] else ""
        problem = problem[: found.start()] + flags[name] + place + problem[found.end() :]
    return re.sub(r"'(\w+)'", lambda found: flags.get(found[1], found[0]), problem)


class Parser(ReportingParser):
    """Reads the words of one command, or those before it.

    :param program: for its help.
    :param command: ``None`` for what stands before a command.
    """

    def __init__(self, program: Program, command: str | None = None) -> None:
        self._program, self._command = program, command
        about = program.commands[command] if command else None
        text = f"{about.help[:1].upper()}{about.help[1:]}." if about else program.description
        super().__init__(
            prog=f"{program.name} {command}" if command else program.name,
            usage=about.usage if about else program.usage,
            description=text,
            # Without a width argparse imports shutil, with all its compression modules, at every argument.
            formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=110),
        )
        add(self, *(about.arguments if about else program.first), *program.common)

    def format_help(self) -> str:
        """Return the help, with examples and exit codes at its end."""
        from npl_mcp.cli.terminal.help import epilog

        commands = {name: command.help for name, command in self._program.commands.items()}
        self.epilog = epilog(self._program.name, commands, self._command)
        return super().format_help()


def read_command(program: Program, words: Sequence[str] | None) -> argparse.Namespace:
    """Read what stands before a command, and its name.

    :param words: without the program's name, by default the process's.
    :returns: the options; ``command``; ``rest``, the words behind it; and ``parser``, which reads them, and
        whose :meth:`Parser.error` reports what is wrong with their values.
    :raises UsageError: it cannot be read.
    """
    parser = Parser(program)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if not given.rest:
        parser.error("the following arguments are required: command")
    if given.rest[0] not in program.commands:
        choices = ", ".join(map(repr, program.commands))
        parser.error(f"argument command: invalid choice: {given.rest[0]!r} (choose from {choices})")
    given.command, *given.rest = given.rest
    given.parser = Parser(program, given.command)
    return given


def read_rest(given: argparse.Namespace) -> argparse.Namespace:
    """Read the words behind a command.

    :param given: what :func:`read_command` returned; the values are added to it.
    :raises UsageError: they cannot be read.
    """
    parser: Parser = given.parser
    parser.parse_intermixed_args(given.rest, given)  # words may stand between options
    return given


def parser_of(program: Program) -> argparse.ArgumentParser:
    """Return one parser for a program and all of its commands."""
    parser = Parser(program)
    commands = parser.add_subparsers(parser_class=ReportingParser)
    for name, command in program.commands.items():
        add(commands.add_parser(name, help=command.help), *command.arguments, *program.common)
    return parser


def version(program: str) -> Argument:
    """Return the option that prints the version."""
    return argument(
        "--version", action="version", version=f"{program} {__version__}", help="print the version"
    )


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
