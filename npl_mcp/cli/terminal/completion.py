"""Scripts that complete the command lines in a shell."""

from __future__ import annotations

from collections.abc import Container

from npl_mcp.cli.terminal.arguments import Program
from npl_mcp.config.connection import TRANSPORTS

_BASH = r"""# Completion of @NAME@. In ~/.bashrc: source <(@NAME@ completion bash)
@FUNCTION@_names() {
@NAMES@
}

@FUNCTION@() {
    local word=${COMP_WORDS[COMP_CWORD]} command= at words=
    for ((at = 1; at < COMP_CWORD; at++)); do
        case ${COMP_WORDS[at]} in
        --via) ((at++)) ;;
        -*) ;;
        *) command=${COMP_WORDS[at]}; break ;;
        esac
    done
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    --via) words='@TRANSPORTS@' ;;
    --file|--target) COMPREPLY=($(compgen -f -- "$word")); return ;;
@VALUES@    *)
        case $command in
@CASES@        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F @FUNCTION@ @NAME@
"""

_ZSH = r"""#compdef @NAME@
# Completion of @NAME@. In a folder of fpath, or: source <(@NAME@ completion zsh)
autoload -U +X bashcompinit && bashcompinit
"""

_LOAD_NAMES = r"""    case $1 in
    agent) npl-load agent --list 2>/dev/null ;;
    *) npl-load --quiet "$1" '**.*' 2>/dev/null | sed -n 's/^@.*+="\(.*\)"$/\1/p' | tr , '\n' ;;
    esac"""

_WORKLOG_NAMES = """    npl-worklog list --all 2>/dev/null | sed 's/^..//; s/ .*//'"""


def load_script(shell: str, program: Program, types: Container[str]) -> str:
    """Return the script for ``npl-load``.

    :param shell: ``bash`` or ``zsh``.
    :param types: commands that are followed by names of items.
    """
    names = {name for name in program.commands if name in types or name == "agent"}
    return _script(shell, program, _LOAD_NAMES, names, "")


def worklog_script(shell: str, program: Program) -> str:
    """Return the script for ``npl-worklog``.

    :param shell: ``bash`` or ``zsh``.
    """
    values = "    --session|export) words=$(_npl_worklog_names) ;;\n"
    return _script(shell, program, _WORKLOG_NAMES, (), values)


def _script(shell: str, program: Program, list_names: str, named: Container[str], values: str) -> str:
    """Return a script.

    :param list_names: shell commands that print the names that can follow the command ``$1``.
    :param named: commands that such names can follow.
    :param values: cases for the word before the one to complete.
    """
    function = f"_{program.name.replace('-', '_')}"
    cases = f"        '') words='{' '.join([*program.commands, *program.options()])}' ;;\n"
    for name in program.commands:
        words = "bash zsh" if name == "completion" else ""
        cases += f"        {name}) words='{' '.join([words, *program.options(name)]).strip()}'"
        if name in named:
            cases += f"; [[ $word == -* ]] || words=$({function}_names {name})"
        cases += " ;;\n"
    parts = {
        "NAMES": list_names,
        "VALUES": values,
        "CASES": cases,
        "NAME": program.name,
        "FUNCTION": function,
        "TRANSPORTS": " ".join(TRANSPORTS),
    }
    script = _BASH if shell == "bash" else _ZSH + _BASH
    for mark, text in parts.items():
        script = script.replace(f"@{mark}@", text)
    return script
