"""Scripts that complete the command lines in a shell, made from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping

SHELLS = ("bash", "zsh", "fish")

_NAMES = {
    "bash": ("@F() {\n@NAMES\n}", '@F_@COMMAND() { compgen -W "$(@F @COMMAND)" -- "$1"; }'),
    "zsh": ("@F() {\n@NAMES\n}", '@F_@COMMAND() { compadd -- ${(f)"$(@F @COMMAND)"}; }'),
    "fish": ("function @F\nsh -c '@NAMES' sh $argv\nend", ""),
}
"""By shell: the function that prints the names behind a command, and one that offers those of a command."""


def parsers_of(parser: argparse.ArgumentParser, command: str = "") -> dict[str, argparse.ArgumentParser]:
    """Return a parser and those of its commands, by the words of the commands."""
    found = {command: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found |= parsers_of(inner, f"{command} {name}".strip())
    return found


def script(
    shell: str,
    parser: argparse.ArgumentParser,
    names: str = ":",
    named: Mapping[str, Collection[str]] = {},
) -> str:
    """Return the script for a program.

    :param shell: one of :data:`SHELLS`.
    :param parser: of the program, with those of its commands; it is of no other use afterwards.
    :param names: lines for ``sh``, without single quotes, that print what can follow the command ``$1``.
    :param named: commands with the options that are followed by such names; an empty text stands for the
        command itself.
    """
    import shtab  # other commands do not wait for it

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
            # What commands take without showing it in their help is offered as well.
            if action.help is argparse.SUPPRESS:
                action.help = texts.get(action.dest)
            if action.nargs != 0 and not action.choices:
                is_name = own & {*(action.option_strings or ("",))}
                vars(action)["complete"] = {shell: offered} if is_name else shtab.FILE
    return shtab.complete(parser, shell, preamble="\n".join(lines))
