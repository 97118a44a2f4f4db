"""``npl-load map`` prints the map of documents, or keeps it in a marked block of a file."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import cases
from tests.folders import fill
from tests.programs import Run

BEGIN, END = "<!-- npl map -->", "<!-- /npl map -->"
MAP = """2 documents for npl_load_tailored; in brackets words of headings

- docs/: bees (Hives, Honey), wax (Candles)
"""
BLOCK = f"{BEGIN}\n{MAP}{END}"


@pytest.fixture
def run(data: Path, program: Run) -> Run:
    """Run the command in a project with two documents."""
    fill(Path("docs"), {"bees.md": "# Hives\n\n## Honey\n", "wax.md": "# Candles\n"})
    return partial(program, "npl-load", "map")


@pytest.mark.parametrize("words", [(), ("docs",), ("docs/",), ("--root", ".")])
def test_the_map_is_printed(run: Run, words: tuple[str, ...]) -> None:
    """It covers all documents or those of a folder, with relative paths."""
    assert run(*words) == (0, MAP, "")


def test_a_folder_elsewhere_has_a_map(run: Run, tmp_path: Path) -> None:
    """The map has no absolute path and none of this folder."""
    fill(tmp_path / "shelf", {"moth.md": "# Silk\n"})
    code, out, _ = run("../shelf")
    assert (code, out.splitlines()[2:]) == (0, ["- ./: moth (Silk)"])


# What a file holds before, and afterwards.
FILES: dict[str, tuple[str | None, str]] = cases("npl_mcp/cli/commands/map_block")["files"]
REFUSED: dict[str, str] = cases("npl_mcp/cli/commands/map_block")["refused"]


def bytes_of(text: str, encoding: str = "utf-8") -> bytes:
    return text.replace("CRLF_BLOCK", BLOCK.replace("\n", "\r\n")).replace("BLOCK", BLOCK).encode(encoding)


@pytest.mark.parametrize("case", FILES)
def test_a_block_is_kept_and_nothing_else_touched(run: Run, case: str) -> None:
    """A second run changes nothing, since the file is not one of the documents."""
    before, after = FILES[case]
    file = Path("AGENTS.md")
    if before is not None:
        file.write_bytes(bytes_of(before))
    assert run("--write", "AGENTS.md", "--check")[0] == 1
    assert (file.read_bytes() if file.exists() else None) == (None if before is None else bytes_of(before))
    assert run("--write", "AGENTS.md") == (0, "", "")
    assert file.read_bytes() == bytes_of(after)
    state = file.stat()
    assert run("--write", "AGENTS.md") == (0, "", "")
    assert run("--write", "AGENTS.md", "--check") == (0, "", "")
    assert file.stat() == state


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_cannot_hold_a_block_stays(run: Run, case: str) -> None:
    """Writing and checking both refuse it."""
    data = bytes_of(REFUSED[case], "latin-1")
    Path("AGENTS.md").write_bytes(data)
    for words in ((), ("--check",)):
        code, out, err = run("--write", "AGENTS.md", *words)
        assert (code, out) == (65, "")
        assert err.startswith("npl-load: AGENTS.md: ")
    assert Path("AGENTS.md").read_bytes() == data


def test_a_link_leads_no_further_than_its_folder(run: Run, tmp_path: Path) -> None:
    """A clone may contain a link to a file or a folder of its user."""
    outside = tmp_path / "profile"
    outside.write_text("export A=1\n", encoding="utf-8")
    Path("AGENTS.md").symlink_to(outside)
    Path("linked").symlink_to(tmp_path)
    for name in ("AGENTS.md", "linked/profile", "linked/new.md"):
        code, out, err = run("--write", name)
        assert (code, out, outside.read_text(encoding="utf-8")) == (74, "", "export A=1\n")
        assert f"{name}: a link leads outside of {Path.cwd()}" in err
    assert not (tmp_path / "new.md").exists()
    Path("CLAUDE.md").write_text("# C\n", encoding="utf-8")
    Path("NEAR.md").symlink_to("CLAUDE.md")
    assert run("--write", "NEAR.md") == (0, "", "")
    assert Path("NEAR.md").is_symlink()
    assert BLOCK in Path("CLAUDE.md").read_text(encoding="utf-8")


def test_an_old_block_fails_in_ci(run: Run) -> None:
    """The process prints a message on standard error, ends with 1 and leaves the file as it was."""
    assert run("--write", "AGENTS.md")[0] == 0
    before = Path("AGENTS.md").read_bytes()
    Path("docs/mead.md").write_text("# Brewing\n", encoding="utf-8")
    command = [sys.executable, "-m", "npl_mcp.cli.commands.load", "map", "--write", "AGENTS.md"]
    done = subprocess.run([*command, "--check"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the map in AGENTS.md is old" in done.stderr
    assert Path("AGENTS.md").read_bytes() == before
    assert subprocess.run(command, check=False).returncode == 0
    assert b"mead (Brewing)" in Path("AGENTS.md").read_bytes()


def test_what_cannot_be_done_is_said(run: Run) -> None:
    """A missing file to check and a missing folder are errors."""
    assert "--check: needs --write FILE" in run("--check")[2]
    assert run("--write", "nowhere/AGENTS.md")[0] == 74
    assert run("--write", "docs")[0] == 74
