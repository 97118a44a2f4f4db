"""Unusable command lines are refused in the words of each program's options."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from npl_mcp import __main__
from npl_mcp.cli.commands import load, serving, worklog
from tests.conftest import cases

MAIN: dict[str, Callable[[list[str]], int]] = {
    "npl-load": load.main,
    "npl-mcp": __main__.main,
    "npl-mcp-server": serving.main,
    "npl-worklog": worklog.main,
}
LONG = "x" * 70_000

# What is typed, and what is said.
ENTRY = ["log", "--agent", "a", "--action", "b", "--summary", "s"]
WORKLOG: list[tuple[list[str], str]] = [
    (["init", "--id", ""], "--id is empty; give a name"),
    (["init", "--id", "a b"], "--id 'a b' cannot be the name of a folder; use letters, digits,"),
    (["init", "--id", "../x"], "--id '../x' cannot be the name of a folder"),
    (["init", "--id", "a\0b"], "--id contains a NUL character"),
    (["init", "--id", LONG], "--id has 70,000 characters; at most 200"),
    (["init", "--task", ""], "--task is empty; give some text"),
    (["init", "--task", LONG], "--task has 70,000 characters; at most 65,536"),
    (["init", "more"], "unrecognized arguments: more"),
    ([], "the following arguments are required: COMMAND"),
    (["nosuch"], "invalid choice: 'nosuch'"),
    (["--quiet", "list"], "unrecognized arguments: --quiet"),
    (["log", "--agent", "a", "--summary", "s"], "the following arguments are required: --action"),
    ([*ENTRY[:1], "--agent", "", *ENTRY[3:]], "--agent is empty; give a name"),
    ([*ENTRY[:1], "--agent", "a\nb", *ENTRY[3:]], "--agent has a line break or a control character; use one"),
    ([*ENTRY[:3], "--action", " ", *ENTRY[5:]], "--action is empty"),
    ([*ENTRY[:5], "--summary", "\0"], "--summary contains a NUL character"),
    ([*ENTRY, "--type", ""], "--type is empty"),
    ([*ENTRY, "--data", "NaN"], "--data is not JSON"),
    ([*ENTRY, "--data", "[" * 99 + "]" * 99], "--data is nested too deeply; at most 32 levels"),
    ([*ENTRY, "--tags", "a," * 70], "--tags has 71 entries; at most 64"),
    ([*ENTRY, "--tags", f"a,{LONG}"], "--tags (word 2) has 70,000 characters; at most 200"),
    ([*ENTRY, "--session", "a\0"], "--session contains a NUL character"),
    (["read", "--agent", "a", "--since", "x"], "argument --since: invalid int value: 'x'"),
    (["read", "--agent", "a", "--since", "9" * 30], "--since is out of range; it must lie between 0 and"),
    (
        ["read", "--agent", "a", "--since", "9" * 5_000],
        f"argument --since: invalid int value: '{'9' * 200}",
    ),
    (["read", "--agent", "a", "--wait", "61"], "--wait is 61; give seconds, from 0 to 60"),
    (["read", "--agent", "a", "--wait", "1.5"], "argument --wait: invalid int value: '1.5'"),
]
STORES: list[tuple[list[str], str]] = [
    (["--root", "", "check"], "argument --root: it is empty; write a path"),
    (["--root", "a\0b", "check"], "argument --root: it contains a NUL character; write a path"),
    (["--root", LONG, "check"], f"argument --root: '{'x' * 32}'… is too long for a path"),
    (["--root", "absent", "check"], "--root absent is not a folder; give an existing folder"),
    (["--root", "file.md", "check"], "--root file.md is not a folder"),
    (["--data-dir", "", "check"], "argument --data-dir: it is empty; write a path"),
    (["--data-dir", "a\0b", "doctor"], "argument --data-dir: it contains a NUL character"),
    (["--data-dir", "file.md", "check"], "the data folder cannot be used: File exists; choose another with"),
    (["--domains", "", "check"], "argument --domains: it has no name; write names separated by commas"),
    (["--domains", "npl,search,chta", "check"], "--domains='chta' is not known; use some of search, npl"),
    (["--patience", "-1", "check"], "--patience='-1' is not a number of seconds; e.g. 5 or 0.5"),
    (["chekc"], "argument COMMAND: invalid choice: 'chekc' (choose from"),
    (["check", "--root", "absent"], "--root absent is not a folder; give an existing folder"),
    (["check", "--cache", "tape"], "argument --cache: invalid choice: 'tape' (choose from"),
    (["token", "list", "--patience", "-1"], "--patience='-1' is not a number of seconds; e.g. 5 or 0.5"),
    (["check", "--roots", "docs"], "unrecognized arguments: --roots docs"),
    (["check", "more"], "unrecognized arguments: more"),
    (["token"], "the following arguments are required: add|list|revoke"),
    (["completion", "csh"], "argument bash|zsh|fish: invalid choice: 'csh'"),
    (["backup"], "the following arguments are required: folder"),
    (["backup", ""], "argument folder: it is empty; write a path"),
    (["backup", "docs"], "docs exists and is not empty; name a new folder"),
    (["copy", "absent", "new"], "source absent has no database; name a data folder, or postgresql://"),
    (["copy", "docs", "./docs"], "source and target are the same; name another target"),
    (
        ["copy", "mysql://me:secret@host/x", "new"],
        "argument source: it is not an address of PostgreSQL; name",
    ),
    (["copy", "postgresql://me:secret@[/x", "new"], "the address of the database cannot be read; e.g. postg"),
    (
        ["copy", "postgresql://me:secret@host/\udcff", "new"],
        "the address of the database cannot be read; e.g.",
    ),
    (["copy", "a\0", "new"], "argument source: it contains a NUL character"),
    (["index", "absent"], "absent is not a folder; name an existing folder"),
    (["index", "bare"], "bare: the search roots hold no Markdown; name another folder"),
    (["index"], "there is no folder to index; npl-mcp index FOLDER"),
    (["--cache", "memory", "index", "docs"], "with --cache memory no index is stored; leave the flag out"),
    (["directive", "init", "file.md"], "'file.md' is not a folder; give the project's folder"),
    (["directive", "init", LONG], "is too long for a path"),
    (["worklog", "export"], "No active session; start one with worklog init, or name one"),
    (["worklog", "export", "a\0b"], "session contains a NUL character"),
    (["worklog", "export", ""], "argument session: it is empty; write a value"),
]
SHARED: list[tuple[list[str], str]] = cases("npl_mcp/cli/mistakes")["shared"]
SERVER: list[tuple[list[str], str]] = [
    (["statsu"], "argument COMMAND: invalid choice: 'statsu' (choose from"),
    (["status", "stop"], "unrecognized arguments: stop"),
    (["--status", "stop"], "--status and stop are two commands: write one"),
    (["completion"], "the following arguments are required: bash|zsh|fish"),
    (["completion", "csh"], "invalid choice: 'csh' (choose from"),
    (["--verbose"], "unrecognized arguments: --verbose"),
    (["start", "--json"], "unrecognized arguments: --json"),
    (["status", "--show-token"], "unrecognized arguments: --show-token"),
    (["start", "--port", "70000"], "--port='70000' is not a port; use 0 to 65535, e.g. 8765"),
    (["start", "--port", ""], "--port='' is not a port"),
    (["start", "--host", ""], "argument --host: it is empty; write a value"),
    (["start", "--socket", ""], "argument --socket: it is empty; write a path"),
    (["start", "--token", ""], "argument --token: it is empty; write a value"),
    (["start", "--token", "short"], "--token cannot be used; use 16 or more printable"),
    (["start", "--token", "x" * 40, "--no-token"], "argument --no-token: not allowed with argument --token"),
    (["start", "--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines, so callers need a token"),
    (["start", "--allow-host", "a b"], "--allow-host='a b' is not a host; e.g. tools"),
    (["start", "--allow-host", "http://a"], "'http://a' is not a host; e.g. tools.example"),
    (
        ["start", "--allow-origin", "a"],
        "--allow-origin='a' is not an origin; e.g. https",
    ),
    (["start", "--web", ""], "argument --web: invalid choice: ''"),
    (["start", "--data-dir", "file.md"], "the data folder file.md cannot be written: File exists; choose"),
    (["start", "--root", "absent"], "--root absent is not a folder"),
]
LOAD: list[tuple[list[str], str]] = [
    (["agent", "a", "--json"], "argument --json: needs --list"),
    (["syntax", "--josn", "a"], "unrecognized arguments: --josn"),
    (["c", "syntax", "--select", ""], "argument --select: it is empty; write a selector, e.g. '## Purpose'"),
    (["c", "syntax", "--select", "a", "--depth", "-7"], "--depth is -7; use 0 or more, or leave it out"),
    (["c", "a\0b", "--index"], "NAME contains control characters"),
    (["c", LONG, "--index"], "NAME has 70,000 characters; use at most 4,096"),
    (["schema", ""], "NAME is empty"),
    (["agent", "a\0"], "NAME contains control characters"),
    (["tailored", " "], "the request is empty: give a task, --topic or --select"),
    (["search", " "], "the query is empty"),
    (["search", "x", "--limit", "-1"], "--limit is -1; it must lie between 1 and"),
    (["search", "x", "--limit", "0"], "--limit is 0; it must lie between 1 and"),
    (["search", "x", "--limit", "nan"], "argument --limit: invalid int value: 'nan'"),
    (["index", "file.md", "--depth", "-2"], "--depth is -2; use 0 or more"),
    (["index", "file.md", "--budget", "inf"], "argument --budget: invalid int value: 'inf'"),
    (["tailored", "x", "--budget", "-1"], "--budget is -1; use 0 or more, or leave it out"),
    (["tailored", "x", "--file", ""], "--file is empty"),
    (["tailored"], "the request is empty: give a task, --topic or --select"),
    (["search", "x", "--file", "docs/none.md"], "there is no document 'docs/none.md'"),
    (["tailored", *(["--topic", "t"] * 65)], "65 topics are too many"),
    (["tailored", *(["--select", "## t"] * 65)], "65 selectors are too many"),
    (["search", "x", "--root", "nowhere"], "--root nowhere is not a folder"),
    (["c", "syntax", "--index", "--select", "x"], "use one of them"),
    (["c", "syntax", "--index", "--filter", "[version>1]"], "write NAME=VALUE or some of [has-code]"),
    (["c", "syntax", "--depth", "1"], "needs --select"),
    (["c", "syntax", "--format", "xml"], "invalid choice"),
    (["c", "syntax", "--quiet"], "write --quiet before the command"),
    (["c", "syntax", "--skip=a", "--via", "pigeon"], "invalid choice"),
    (["init-claude", "--target", ""], "argument --target: no file can have this path; write e.g. ./CLAUDE"),
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
def test_a_mistake_is_told_in_the_words_of_the_command_line(
    case: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one short message on standard error; nothing is made in the project."""
    program, cases = CASES[case]
    before = everything(Path())
    for words, said in cases:
        asked = [word[:40] for word in words]
        assert MAIN[program](words) == 2, asked
        shown = capsys.readouterr()
        assert shown.out == "", asked
        line = shown.err.splitlines()[-1]
        assert line.startswith(f"{program}: "), asked
        assert said in line, asked
        assert len(line) < 400, asked
        assert "secret" not in shown.err
        assert not re.search(r"\b[a-z]+_[a-z]+\b", line), "a parameter of a tool"
        assert everything(Path()) == before, asked
