"""Completion of the command lines in shells."""

import re
import subprocess
import sys

import pytest

from tests.conftest import cases

MODULES = {
    "npl-load": "npl_mcp.cli.commands.load",
    "npl-mcp": "npl_mcp",
    "npl-mcp-server": "npl_mcp.cli.commands.serving",
    "npl-worklog": "npl_mcp.cli.commands.worklog",
}
# The words of a line of fish: what is quoted ends at a quote that has no backslash before it.
WORD = re.compile(r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s"'\\])+""")


def script(program: str, shell: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", MODULES[program], "completion", shell],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout


TYPED = cases("npl_mcp/cli/terminal/completion")


@pytest.mark.parametrize("program", TYPED)
def test_bash_offers_what_can_follow(program: str) -> None:
    """Bash offers commands, subcommands, options and values of options."""
    lines = [script(program, "bash")]
    for typed in TYPED[program]:
        words = [program, *typed.split(" ")]
        lines.append(f"COMP_WORDS=({' '.join(map(repr, words))}) COMP_CWORD={len(words) - 1}")
        lines.append(f'_shtab_{program.replace("-", "_")}; echo "${{COMPREPLY[*]}}"')
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    for (typed, offered), shown in zip(TYPED[program].items(), done.stdout.splitlines(), strict=True):
        assert set(offered) <= set(shown.split()), typed
        assert typed.endswith(" ") or not typed or shown.split() == offered


@pytest.mark.parametrize("program", MODULES)
def test_fish_gets_lines_that_it_can_read(program: str) -> None:
    """Each line names the program and its condition; quotes are closed."""
    text = script(program, "fish")
    lines = [line for line in text.splitlines() if line.startswith("complete ")]
    assert len(lines) > 10
    for line in lines:
        assert WORD.sub("", line).strip() == ""
        words = WORD.findall(line)
        assert words[:3] == ["complete", "-c", program]
        assert words[3] in ("-n", "-f", "-e")
    assert any(re.search("-k?a .*completion", line) for line in lines)
