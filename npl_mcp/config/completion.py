"""Scripts for shells that complete the command lines, generated from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping

SHELLS = ("bash", "zsh", "fish")

_NAMES = {
    "bash": ("@F() {\n@NAMES\n}", '@F_@COMMAND() { compgen -W "$(@F @COMMAND)" -- "$1"; }'),
    "zsh": ("@F() {\n@NAMES\n}", '@F_@COMMAND() { compadd -- ${(f)"$(@F @COMMAND)"}; }'),
    "fish": ("function @F\nsh -c '@NAMES' sh $argv\nend", ""),
}
"""By shell: the function that prints the names after a command, and the one that offers them."""


def parsers_of(parser: argparse.ArgumentParser, command: str = "") -> dict[str, argparse.ArgumentParser]:
    """Return a parser and the parsers of its commands, by the words of the command."""
    found = {command: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found |= parsers_of(inner, f"{command} {name}".strip())
    return found


def script(
    shell: str, parser: argparse.ArgumentParser, names: str = ":", named: Mapping[str, Collection[str]] = {}
) -> str:
    """Return the completion script of a program.

    :param shell: one of :data:`SHELLS`.
    :param parser: parser of the program with its commands; this function changes it.
    :param names: ``sh`` commands without single quotes that print the names after the command ``$1``.
    :param named: options before such names, by command; an empty option stands for the command itself.
    """
    import shtab  # only this command needs it

    function = f"_{parser.prog.replace('-', '_')}_names"
    texts = {action.dest: action.help for action in parser._actions}
    whole, each = _NAMES[shell]
    lines = [whole.replace("@F", function).replace("@NAMES", names)]
    for command, inner in parsers_of(parser).items():
        own = set(named.get(command, ()))
        if own:
            lines.append(each.replace("@F", function).replace("@COMMAND", command))
        offered = f"({function} {command})" if shell == "fish" else f"{function}_{command}"
        for action in inner._actions:
            # Options that the help of a command hides are offered as well.
            if action.help is argparse.SUPPRESS:
                action.help = texts.get(action.dest)
            if action.nargs != 0 and not action.choices:
                is_name = own & {*(action.option_strings or ("",))}
                vars(action)["complete"] = {shell: offered} if is_name else shtab.FILE
    return shtab.complete(parser, shell, preamble="\n".join(lines))
