"""Unusable command lines are refused in the words of each program's options."""

import re
from pathlib import Path

import pytest

from tests.conftest import cases
from tests.programs import Run

LONG = "x" * 70_000

# What is typed, and what is said.
ENTRY = ["log", "--agent", "a", "--action", "b", "--summary", "s"]
WORKLOG: list[tuple[list[str], str]] = [
    *cases("npl_mcp/cli/mistakes")["worklog"],
    (["init", "--id", LONG], "--id has 70,000 characters; at most 200"),
    (["init", "--task", LONG], "--task has 70,000 characters; at most 65,536"),
    ([*ENTRY, "--tags", f"a,{LONG}"], "--tags (word 2) has 70,000 characters; at most 200"),
    (["read", "--agent", "a", "--since", "9" * 5_000], f"argument --since: invalid int value: '{'9' * 200}"),
]
STORES: list[tuple[list[str], str]] = [
    *cases("npl_mcp/cli/mistakes")["stores"],
    (["--root", LONG, "check"], f"argument --root: '{'x' * 32}'… is too long for a path"),
    (
        ["copy", "postgresql://me:secret@host/\udcff", "new"],
        "the address of the database cannot be read; e.g.",
    ),
    (["directive", "init", LONG], "is too long for a path"),
]
SHARED: list[tuple[list[str], str]] = cases("npl_mcp/cli/mistakes")["shared"]
SERVER: list[tuple[list[str], str]] = cases("npl_mcp/cli/mistakes")["server"]
LOAD: list[tuple[list[str], str]] = [
    *cases("npl_mcp/cli/mistakes")["load"],
    (["c", LONG, "--index"], "NAME has 70,000 characters; use at most 4,096"),
    (["tailored", *(["--topic", "t"] * 65)], "65 topics are too many"),
    (["tailored", *(["--select", "## t"] * 65)], "65 selectors are too many"),
]
CASES = {
    "worklogs": ("npl-worklog", WORKLOG),
    "stores": ("npl-mcp", STORES),
    "tokens and libraries": ("npl-mcp", SHARED),
    "the server": ("npl-mcp-server", SERVER),
    "sections": ("npl-load", LOAD),
}


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


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_told_in_the_words_of_the_command_line(case: str, project: Path, program: Run) -> None:
    """Exit code 2 and one short message on standard error; nothing is made in the project."""
    name, cases = CASES[case]
    before = everything(Path())
    for words, said in cases:
        asked = [word[:40] for word in words]
        done = program(name, *words)
        assert (done.code, done.out) == (2, ""), asked
        line = done.err.splitlines()[-1]
        assert line.startswith(f"{name}: "), asked
        assert said in line, asked
        assert len(line) < 400, asked
        assert "secret" not in done.err
        assert not re.search(r"\b[a-z]+_[a-z]+\b", line), "a parameter of a tool"
        assert everything(Path()) == before, asked
