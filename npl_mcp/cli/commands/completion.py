"""``npl-load completion``: scripts that complete the command line in a shell."""

from __future__ import annotations

from npl_mcp.cli.terminal.arguments import COMMANDS, COMMON, FIRST, TYPES, Given, UsageError
from npl_mcp.cli.terminal.display import Display
from npl_mcp.cli.transports.connecting import Way

BASH = r"""# Completion of npl-load. In ~/.bashrc: source <(npl-load completion bash)
_npl_load_names() {
    case $1 in
    agent) npl-load agent --list 2>/dev/null ;;
    *) npl-load --quiet "$1" '**.*' 2>/dev/null | sed -n 's/^@.*+="\(.*\)"$/\1/p' | tr , '\n' ;;
    esac
}

_npl_load() {
    local word=${COMP_WORDS[COMP_CWORD]} command= at
    for ((at = 1; at < COMP_CWORD; at++)); do
        case ${COMP_WORDS[at]} in
        -*) ;;
        *) command=${COMP_WORDS[at]}; break ;;
        esac
    done
    COMPREPLY=()
    case $command in
    '')
        COMPREPLY=($(compgen -W '@COMMANDS@ @FIRST@' -- "$word")) ;;
@CASES@    esac
    if ((${#COMPREPLY[@]} == 0)) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == @(--file|--target) ]]; then
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -F _npl_load npl-load
"""

ZSH = r"""#compdef npl-load
# Completion of npl-load. In a folder of fpath, or: source <(npl-load completion zsh)
autoload -U +X bashcompinit && bashcompinit
"""

_CASE = """    {name})
        if [[ $word == -* ]]; then
            COMPREPLY=($(compgen -W '{options}' -- "$word"))
        else
            COMPREPLY=($(compgen -W "{words}" -- "$word"))
        fi ;;
"""


def run(given: Given, way: Way, display: Display) -> int:  # noqa: ARG001 - as all commands
    """Print the script for a shell.

    :raises UsageError: there is none for it.
    """
    shell = given.words[0] if given.words else ""
    if shell not in ("bash", "zsh"):
        raise UsageError(
            f"argument shell: invalid choice: {shell!r} (choose from 'bash', 'zsh')", "completion"
        )
    display.text(_script() if shell == "bash" else ZSH + _script())
    return 0


def _script() -> str:
    cases = []
    for name, command in COMMANDS.items():
        options = " ".join(option.name for option in (*command.options, *COMMON))
        words = '$(_npl_load_names "$command")' if name in TYPES or name == "agent" else ""
        words = "bash zsh" if name == "completion" else words
        cases.append(_CASE.format(name=name, options=options, words=words))
    first = " ".join(option.name for option in (*FIRST, *COMMON))
    return (
        BASH.replace("@COMMANDS@", " ".join(COMMANDS))
        .replace("@FIRST@", first)
        .replace("@CASES@", "".join(cases))
    )
