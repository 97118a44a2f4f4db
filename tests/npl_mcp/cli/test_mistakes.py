"""Unusable command lines are refused in the words of each program's options."""

import re
from pathlib import Path

import pytest

from tests.conftest import cases
from tests.programs import Run

LONG = "x" * 70_000

MISTAKES = cases("npl_mcp/cli/mistakes")
PROGRAMS = {"stores": "npl-mcp", "shared": "npl-mcp", "server": "npl-mcp-server"}


@pytest.fixture
def project(data: Path) -> Path:
    """A project with a folder of Markdown, a folder without, and a file."""
    for name in ("docs", "bare"):
        Path(name).mkdir()
    for name in ("docs/a.md", "file.md"):
        Path(name).write_text("# A\n", encoding="utf-8")
    return data


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_in_the_words_of_the_command_line(case: str, project: Path, program: Run) -> None:
    """Exit code 2 and one short message on standard error; nothing is made in the project."""
    name, before = PROGRAMS.get(case, f"npl-{case}"), everything(Path())
    for asked, said in MISTAKES[case]:
        done = program(name, *(word.replace("LONG", LONG) for word in asked))
        assert (done.code, done.out) == (2, ""), asked
        line = done.err.splitlines()[-1]
        assert line.startswith(f"{name}: "), asked
        assert said in line, asked
        assert len(line) < 400, asked
        assert "secret" not in done.err
        assert not re.search(r"\b[a-z]+_[a-z]+\b", line), "a parameter of a tool"
        assert everything(Path()) == before, asked
