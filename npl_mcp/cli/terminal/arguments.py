"""Programs with commands, based on argparse; their settings, and scripts for shells that complete them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from npl_index.errors import DocumentNotFoundError, NPLError
from npl_mcp import __version__
from npl_mcp.config.kinds import REMOVED_SETTINGS, warn
from npl_mcp.config.settings import COMMANDS, SERVERS, Settings, flags
from npl_mcp.config.sources import Origin
from npl_mcp.tools.domains import tool_named

SHELLS = ("bash", "zsh", "fish")

MAX_PROBLEM = 300
"""Maximum characters of a message about a command line; argparse repeats words of any length."""

EXAMPLES = Path(__file__).parents[2] / "data" / "command_lines.txt"
"""Command lines of all programs, for their help, each with its meaning after ``#``."""

HELP = EXAMPLES.with_name("programs.txt")
"""The help of all programs: usage, description and the last lines, which the help of each command has."""

Argument = tuple[tuple[str, ...], dict[str, Any]]
"""An option or a word of a command, and its settings; see :func:`argument`."""


def argument(*names: str, **settings: Any) -> Argument:
    """Return an argument.

    :param names: spellings of the option, or the name of the word.
    :param settings: keyword arguments of :meth:`argparse.ArgumentParser.add_argument`.
    """
    return names, settings


def option(name: str, metavar: str, help: str | None = None, **settings: Any) -> Argument:
    """Return an option with a value, or a word without one."""
    return argument(name, metavar=metavar, help=help, **settings)


def repeated(name: str, metavar: str, help: str | None = None, **settings: Any) -> Argument:
    """Return an option that may be given several times."""
    return option(name, metavar, help and f"{help} (repeatable)", action="append", **settings)


def switch(*names: str, help: str | None = None) -> Argument:
    """Return an option without a value."""
    return argument(*names, action="store_true", help=help)


def removed(name: str, advice: str) -> Argument:
    """Return an option of an earlier version: its value has no effect but a warning."""
    hidden = {"dest": "removed", "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    return argument(name, type=lambda _: warn(name, advice), **hidden)


def add(parser: argparse.ArgumentParser, *arguments: Argument) -> None:
    """Add arguments to a parser."""
    for names, settings in arguments:
        parser.add_argument(*names, **settings)


def server_flags(program: str) -> tuple[Argument, ...]:
    """Return the flags of a server.

    :param program: :data:`~npl_mcp.config.settings.HTTP` or :data:`~npl_mcp.config.settings.STDIO`.
    """
    # Clients still start servers with flags of earlier versions.
    former = (removed(f"--{name}", advice) for name, advice in REMOVED_SETTINGS.items())
    return (*flags(program), *flags(SERVERS), *former)


CLIENT_FLAGS: tuple[Argument, ...] = tuple(flags(COMMANDS))
"""Flags of the programs that call tools."""

JSON = switch("--json", help="print JSON")
SHELL = argument("shell", choices=SHELLS, metavar="|".join(SHELLS))


class UsageError(Exception):
    """A command line whose form is wrong; the text begins with the usage of the command."""


class ProgramParser(argparse.ArgumentParser):
    """Parser of a program or of one of its commands; each command has its own parser.

    The parser that reads an unknown word reports it. A command's words may stand between its options.
    """

    tool = ""
    """Name of the tool whose parameters the arguments are; each ``dest`` is the name of a parameter."""

    reader: Callable[[ProgramParser, list[str], argparse.Namespace], None] | None = None
    """Function that replaces the default parsing of the words."""

    _reading = False

    def error(self, message: str) -> NoReturn:
        """Raise a :class:`UsageError`, so that all problems are reported in one place."""
        problem = f"{self.prog.split()[0]}: error: {message[:MAX_PROBLEM]}"
        raise UsageError(f"{self.format_usage()}Try {self.prog} --help.\n{problem}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Read words; see :meth:`argparse.ArgumentParser.parse_known_args`.

        :returns: the values and an empty list: an unknown word is an error.
        """
        if self._reading:
            return super().parse_known_args(args, namespace)
        self._reading = True
        try:
            if self.reader is not None:
                given, left = super().parse_known_args([], namespace)
                self.reader(self, args, given)
            elif self._subparsers is not None:
                commands: Any = self._subparsers._group_actions[0].choices
                given, left = super().parse_known_args(self._separated(args, commands), namespace)
            else:
                given, left = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._reading = False
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return given, left

    def _separated(self, words: Sequence[str], commands: Collection[str]) -> list[str]:
        """Return words in which no command is the value of an option that needs none."""
        alone = {name: a.const for a in self._actions if a.nargs == "?" for name in a.option_strings}
        return [
            f"{word}={alone[word]}" if alone.get(word) and after in commands else word
            for word, after in zip(words, [*words[1:], ""], strict=False)
        ]

    def accept_also(self, options: Iterable[argparse.Action]) -> None:
        """Accept options of the whole program after the command as well, unless it has the same option.

        The later value wins. Help and usage of a command show only its own options.
        """
        for option in options:
            if not set(option.option_strings) & set(self._option_string_actions):
                again = copy(option)
                again.default = again.help = argparse.SUPPRESS
                self._add_action(again)

    def describe(self) -> None:
        """Set the help of each argument without one to the text of the tool's parameter."""
        meanings = tool_named(self.tool).meanings if self.tool else {}
        for action in self._actions:
            if action.help is None and (text := meanings.get(action.dest)):
                text = text.removesuffix(".").replace("`", "").replace("%", "%%")
                action.help = text[:1].lower() + text[1:]

    def format_help(self) -> str:
        """Return the help."""
        self.describe()
        return super().format_help()

    def with_flag(self, problem: str, parameter: str | None) -> str:
        """Return an error with the flag of this command line instead of the tool's parameter.

        :param problem: message of a tool, which may begin with the name of a parameter.
        :param parameter: name of the parameter, e.g. ``tags[0]``.
        """
        name, _, index = (parameter or "").rstrip("]").partition("[")
        for action in self._actions:
            if action.dest == name and parameter and problem.startswith(parameter):
                flag = [str(action.metavar or name), *action.option_strings][-1]
                word = f" (word {int(index) + 1})" if index else ""
                return f"{flag}{word}{problem.removeprefix(parameter)}"
        return problem


Run = Callable[[argparse.Namespace, Any], Any]
"""Runner of a command; it takes the arguments and the display."""

Context = Callable[[argparse.Namespace, Any], AbstractContextManager[tuple[Any, ...]]]
"""Function that returns what a command's function takes after the arguments, while it runs."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Command:
    """A command of a program.

    :param help: sentence without a full stop.
    :param run: function of the command.
    :param arguments: arguments of the command, besides the options of all commands.
    :param tool: value of :attr:`ProgramParser.tool`.
    :param usage: usage that replaces argparse's.
    :param notes: lines of the help before the examples.
    :param reader: value of :attr:`ProgramParser.reader`.
    """

    help: str
    run: Run
    arguments: tuple[Argument, ...]
    tool: str = ""
    usage: str | None = None
    notes: str = ""
    reader: Callable[[ProgramParser, list[str], argparse.Namespace], None] | None = None


class Commands(dict[str, Command]):
    """Commands by name. A command of a group has two words, the first of which is the group's name.

    :param context: context of all functions that :meth:`add` takes, e.g. with a connection to the tools; by
        default with the display alone.
    """

    def __init__(self, context: Context = lambda _, display: nullcontext((display,))) -> None:
        super().__init__()
        self._context = context

    def add(self, name: str, *arguments: Argument, **more: Any) -> Callable[[Function], Function]:
        """Return a decorator that makes a function a command; the docstring is its help.

        :param arguments: arguments of the command.
        :param more: further fields of :class:`Command`.
        """

        def register(function: Function) -> Function:
            def run(given: argparse.Namespace, display: Any) -> Any:
                with self._context(given, display) as further:
                    return function(given, *further)

            text = " ".join((function.__doc__ or "").split()).removesuffix(".")
            self[name] = Command(**{"help": text, "run": run, "arguments": arguments, **more})
            return function

        return register


@dataclass(frozen=True)
class Program:
    """A program with commands.

    :param name: name of the program.
    :param commands: commands of the program.
    :param common: options that may stand before and after the command.
    :param first: options that stand before the command.
    :param default: function that runs without a command; by default a command is required.
    :param groups: descriptions of the groups of commands.
    """

    name: str
    commands: Commands
    common: tuple[Argument, ...] = ()
    first: tuple[Argument, ...] = ()
    default: Run | None = None
    groups: Mapping[str, str] = field(default_factory=dict)

    def parser(self) -> ProgramParser:
        """Return the parser of the program and all of its commands."""
        form, lines = argparse.RawDescriptionHelpFormatter, EXAMPLES.read_text("utf-8").splitlines()
        examples = [line for line in lines if self.name in line.partition("#")[0].split()]
        texts = {text.split()[0]: text.split("\n\n") for text in HELP.read_text("utf-8").split("\n\n\n")}
        usage, description, end = texts[self.name]
        epilog, version = self._epilog(examples, end), f"{self.name} {__version__}"
        result = ProgramParser(self.name, usage, description, epilog, formatter_class=form)
        result.set_defaults(parser=result, run=self.default)
        add(result, *self.common)
        shared = result._actions[1:]  # without --help
        add(result, argument("--version", action="version", version=version, help="print the version"))
        add(result, *self.first)
        commands = result.add_subparsers(
            title="commands", dest="command", metavar="COMMAND", prog=self.name, required=not self.default
        )
        of_group: dict[str, Any] = {"": commands}
        for group, meaning in self.groups.items():
            inner = commands.add_parser(group, help=meaning, description=f"{meaning}.")
            steps = "|".join(name.split()[1] for name in self.commands if name.startswith(f"{group} "))
            of_group[group] = inner.add_subparsers(dest="step", metavar=steps, required=True)
            inner.accept_also(shared)
        shell = Command("Print a completion script for a shell", self._complete, (SHELL,))
        for name, command in {**self.commands, "completion": shell}.items():
            group, _, last = name.rpartition(" ")
            own = [line for line in examples if line.split()[1] == name]
            inner = of_group[group].add_parser(
                last,
                help=command.help[:1].lower() + command.help[1:],
                usage=command.usage,
                description=f"{command.help}.",
                epilog=command.notes + self._epilog(own, end),
                formatter_class=form,
            )
            inner.tool, inner.reader = command.tool, command.reader
            inner.set_defaults(parser=inner, run=command.run)
            add(inner, *command.arguments)
            inner.accept_also(shared)
        return result

    def _epilog(self, examples: Sequence[str], end: str) -> str:
        return "\n  ".join(["Examples:", *(examples or [f"{self.name} --help"])]) + f"\n\n{end}"

    def settings(self, words: Sequence[str], origin: Origin | None = None) -> Settings:
        """Return the settings of a server that has this command line.

        :param words: command line without the program's name.
        :param origin: the process with its environment and working directory; by default this one.
        :raises NPLError: the words are not those of a server, or a value is invalid.
        """
        try:
            given = self.parser().parse_args([*words])
        except (UsageError, SystemExit) as error:
            raise NPLError(str(error)) from None
        if given.command is not None:
            raise NPLError(f"{given.command} is a command")
        return settings_of(given, origin)

    def _complete(self, given: argparse.Namespace, display: Any) -> None:
        import shtab  # only this command needs it

        parser = self.parser()
        texts = {action.dest: action.help for action in parser._actions}
        for inner in parsers_of(parser).values():
            inner.describe()
            for action in inner._actions:
                # Options that the help of a command hides are offered as well.
                if action.help is argparse.SUPPRESS:
                    action.help = texts.get(action.dest, argparse.SUPPRESS)
                if action.nargs != 0 and not action.choices:
                    vars(action)["complete"] = shtab.FILE
        display.text(shtab.complete(parser, given.shell))


def parsers_of(parser: ProgramParser, command: str = "") -> dict[str, ProgramParser]:
    """Return a parser and the parsers of its commands, by the words of the command."""
    parsers = {command: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                parsers |= parsers_of(inner, f"{command} {name}".strip())
    return parsers


def settings_of(
    given: argparse.Namespace, origin: Origin | None = None, *, check_roots: bool = True
) -> Settings:
    """Return the settings of flags, environment and files.

    :param origin: the process with the environment and the working directory; by default this one.
    :param check_roots: whether the roots must exist.
    :raises InvalidRequestError: a value or a file is invalid.
    :raises DocumentNotFoundError: a root does not exist.
    """
    settings = Settings.from_env(flags=vars(given), origin=origin)
    for root in settings.roots if check_roots else ():
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises for too long names
            problem = f"{settings.sources['root'].label} {root} is not a folder"
            raise DocumentNotFoundError(problem, hint="give an existing folder")
    return settings
