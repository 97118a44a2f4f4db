"""``npl-mcp config show`` prints every setting and its source."""

import json
import re
from pathlib import Path

import pytest

from npl_mcp.config.settings import SETTINGS
from tests.folders import fill
from tests.programs import Run


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "docs/garden.md": "# Garden\n\n## Pruning\n\nPrune apples.\n",
        "npl.toml": 'root = "docs"\n\nweights = [1, 0, 0]\n',
        "config/npl-mcp/npl.toml": 'token = "sixteen-letters-"\nvia = "direct"\n',
    }
    fill(tmp_path, files)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NPL_DOMAINS", "npl,chat")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_value_and_its_source_are_shown(work: Path, program: Run) -> None:
    """Flag, variable, project, user or default; a secret is only said to be set."""
    done = program("npl-mcp", "--cache", "memory", "config", "show", "--json")
    rows = json.loads(done.out)
    assert done.code == 0
    assert [row["name"] for row in rows] == list(SETTINGS)
    shown = {row["name"]: (row["value"], row["source"]) for row in rows}
    wanted = {
        "root": ([str(work / "docs")], f"{work}/npl.toml"),
        "cache": ("memory", "--cache"),
        "domains": (["npl", "chat"], "NPL_DOMAINS"),
        "weights": ([1, 0, 0], f"{work}/npl.toml"),
        "token": ("(not shown)", f"{work}/config/npl-mcp/npl.toml"),
        "via": ("direct", f"{work}/config/npl-mcp/npl.toml"),
        "port": (8765, "default"),
    }
    assert {name: shown[name] for name in wanted} == wanted
    # People get a line for each, in columns.
    lines = program("npl-mcp", "config", "show").out.splitlines()
    assert [line.split()[0] for line in lines] == list(SETTINGS)
    assert re.split("  +", lines[list(SETTINGS).index("domains")]) == ["domains", "NPL_DOMAINS", "npl, chat"]
    assert "sixteen" not in "".join(lines)


def test_options_of_the_program_may_stand_behind_a_command(work: Path, program: Run) -> None:
    """An option after the command wins over the same option before it."""
    options = ["--write", "--format", "markdown", "--cache", "memory", "--root", "docs"]
    behind = ["--format", "json", "--root", str(work)]
    shown: list[dict[str, object]] = []
    for words in (
        [*options, "config", "show", "--json"],
        ["config", *options, "show", "--json"],
        ["config", "show", "--json", *options],
        [*options, "config", "show", *behind, "--json"],
    ):
        done = program("npl-mcp", *words)
        assert done.code == 0
        shown.append({row["name"]: row["value"] for row in json.loads(done.out)})
    first, *same, last = shown
    assert (first["format"], first["cache"], first["write"]) == ("markdown", "memory", True)
    assert all(output == first for output in same)
    assert last == {**first, "format": "json", "root": [str(work)]}


def test_a_file_that_cannot_be_used_stops_every_command(work: Path, program: Run) -> None:
    """The error is printed; only a server prints a warning instead."""
    (work / "npl.toml").write_text('host = "0.0.0.0"\n')
    done = program("npl-mcp", "config", "show")
    assert done.code == 2
    assert done.err.startswith(f"npl-mcp: {work}/npl.toml: a project may not set host; remove the line")


def test_all_command_lines_read_the_files(work: Path, monkeypatch: pytest.MonkeyPatch, program: Run) -> None:
    """Sections come from the project's root, worklogs go to the user's data folder."""
    monkeypatch.delenv("NPL_DOMAINS")
    (work / "config" / "npl-mcp" / "npl.toml").write_text(f'data-dir = "{work / "data"}"\nvia = "direct"\n')
    for name in ("src", ".git"):
        (work / name).mkdir()
    monkeypatch.chdir(work / "src")
    done = program("npl-load", "index", "garden.md")
    assert (done.code, "## Pruning" in done.out) == (0, True)
    assert program("npl-worklog", "init", "--id", "first").code == 0
    assert [path.name for path in (work / "data").glob("*.db")]
    (work / "npl.toml").write_text('via = "http"\n')
    for words in (["npl-load", "index", "garden.md"], ["npl-worklog", "current"]):
        done = program(*words)
        assert (done.code, f"{work}/npl.toml: a project may not set via" in done.err) == (2, True)
