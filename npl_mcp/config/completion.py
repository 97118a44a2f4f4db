"""Scripts that complete the command lines in a shell, made from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

SHELLS = ("bash", "zsh", "fish")

Parsers = Mapping[str, argparse.ArgumentParser]
"""The parsers of a program by the words of their commands; that of ``""`` reads what stands before one."""

# Where no word fits, the shell completes files ("default").
_BASH = r"""# Completion of @NAME@. In ~/.bashrc: source <(@NAME@ completion bash)
@FUNCTION@_names() {
@NAMES@
}

@FUNCTION@() {
    local word=${COMP_WORDS[COMP_CWORD]} command= at words=
    for ((at = 1; at < COMP_CWORD; at++)); do
        case "$command ${COMP_WORDS[at]}" in
        @COMMANDS@) command+=" ${COMP_WORDS[at]}" ;;
        esac
    done
    case "$command ${COMP_WORDS[COMP_CWORD - 1]}" in
@VALUES@    *)
        case $command in
@CASES@        esac
        [[ -z $command || $word != -* ]] || words+=' @EVERYWHERE@' ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F @FUNCTION@ @NAME@
"""

_ZSH = r"""#compdef @NAME@
# Completion of @NAME@. In a folder of fpath, or: source <(@NAME@ completion zsh)
autoload -U +X bashcompinit && bashcompinit
"""

_FISH = r"""# Completion of @NAME@. In ~/.config/fish/completions/@NAME@.fish
function @FUNCTION@_names
    sh -c @NAMES@ sh $argv
end
complete -c @NAME@ -f
"""


def parsers_of(parser: argparse.ArgumentParser, command: str = "") -> dict[str, argparse.ArgumentParser]:
    """Return a parser and those of its commands."""
    found = {command: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found |= parsers_of(inner, f"{command} {name}".strip())
    return found


def script(
    shell: str, program: str, parsers: Parsers, names: str = ":", named: Mapping[str, tuple[str, ...]] = {}
) -> str:
    """Return the script for a program.

    :param shell: one of :data:`SHELLS`.
    :param program: its name.
    :param names: lines for ``sh`` that print the names that can follow the command ``$1``.
    :param named: commands with the options that are followed by such names; an empty text stands for the
        command itself.
    """
    # The last ones, since the others hold them.
    last = {"NAME": program, "FUNCTION": f"_{program.replace('-', '_')}"}
    if shell == "fish":
        text = _FISH + "".join(f"{line}\n" for line in _fish_lines(program, parsers, named))
        parts = {"NAMES": _fish_quoted(names)}
    else:
        text = _BASH if shell == "bash" else _ZSH + _BASH
        parts = {
            "NAMES": f"    {names}",
            "COMMANDS": "|".join(f"' {command}'" for command in parsers if command) or "''",
            "VALUES": "".join(_bash_values(parsers, named)),
            "CASES": "".join(_bash_cases(parsers, named)),
            "EVERYWHERE": " ".join(sorted(_everywhere(parsers))),
        }
    for mark, part in (parts | last).items():
        text = text.replace(f"@{mark}@", part)
    return text


def _below(parsers: Parsers, command: str) -> list[str]:
    """Return the commands that can follow one."""
    start = f"{command} " if command else ""
    rest = (name.removeprefix(start) for name in parsers if name.startswith(start) and name != command)
    return [name for name in rest if " " not in name]


def _first_words(parsers: Parsers, command: str) -> list[str]:
    """Return what a word behind a command can be, but for options."""
    listed = (
        action.choices
        for action in parsers[command]._actions
        if not (action.option_strings or isinstance(action, argparse._SubParsersAction)) and action.choices
    )
    words = (str(word) for choices in listed for word in choices)
    return list(dict.fromkeys((*_below(parsers, command), *words)))


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Return the options that its help shows."""
    return (one for one in parser._actions if one.option_strings and one.help is not argparse.SUPPRESS)


def _everywhere(parsers: Parsers) -> set[str]:
    """Return the options of the program that commands take without showing them in their help."""
    hidden = (
        name
        for parser in parsers.values()
        for one in parser._actions
        for name in one.option_strings
        if one.help is argparse.SUPPRESS
    )
    shown = {name for one in _options(parsers[""]) for name in one.option_strings}
    return shown & set(hidden)


def _is_name(word: argparse.Action) -> bool:
    """Return whether a word behind a command can be anything, such as a file."""
    return not (word.option_strings or word.choices or word.help is argparse.SUPPRESS)


def _values(option: argparse.Action) -> str:
    return " ".join(map(str, option.choices or ()))


def _bash_values(parsers: Parsers, named: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Return the cases for the values of options."""
    everywhere = _everywhere(parsers)
    # A command's own option comes before one of the program that has its name.
    for command, parser in sorted(parsers.items(), key=lambda one: not one[0]):
        start = f" {command}" if command else ""
        for option in _options(parser):
            if option.nargs == 0:
                continue
            before = "*" if not command and everywhere & set(option.option_strings) else ""
            patterns = "|".join(f"{before}'{start} {name}'" for name in option.option_strings)
            words = f"'{_values(option)}'"
            if set(option.option_strings) & set(named.get(command, ())):
                words = f"$(@FUNCTION@_names {command})"
            yield f"    {patterns}) words={words} ;;\n"


def _bash_cases(parsers: Parsers, named: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Return the cases for words and options behind a command."""
    for command, parser in parsers.items():
        options = [name for one in _options(parser) for name in one.option_strings if name.startswith("--")]
        words = f"words='{' '.join([*_first_words(parsers, command), *options])}'"
        if "" in named.get(command, ()):
            words += f"; [[ $word == -* ]] || words=$(@FUNCTION@_names {command})"
        pattern = f"' {command}'" if command else "''"
        yield f"        {pattern}) {words} ;;\n"


def _fish_lines(program: str, parsers: Parsers, named: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    everywhere = _everywhere(parsers)
    for command, parser in parsers.items():
        seen = [f"__fish_seen_subcommand_from {word}" for word in command.split()]
        inner = _below(parsers, command)
        if inner:
            seen.append(f"not __fish_seen_subcommand_from {' '.join(inner)}")
        when = f"complete -c {program} -n {_fish_quoted('; and '.join(seen) or 'true')}"
        own = named.get(command, ())
        call = f"-a '(_{program.replace('-', '_')}_names {command})'"
        for word in _first_words(parsers, command):
            about = parsers.get(f"{command} {word}".strip())
            yield f"{when} -a {word}{_fish_about(about.description if about else None)}"
        if "" in own:
            yield f"{when} {call}"
        elif any(_is_name(one) for one in parser._actions):
            yield f"{when} -F"
        for option in _options(parser):
            shared = not command and everywhere & set(option.option_strings)
            line = f"complete -c {program} -n 'true'" if shared else when
            for name in option.option_strings:
                line += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
            if set(option.option_strings) & set(own):
                line += f" -x {call}"
            elif option.nargs != 0:
                line += f" -x -a '{_values(option)}'" if option.choices else " -r -F"
            yield line + _fish_about(option.help)


def _fish_about(text: str | None) -> str:
    return f" -d {_fish_quoted(text)}" if text else ""


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
