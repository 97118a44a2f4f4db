"""``npl-load map`` prints the map of documents, or keeps it in a marked block of a file."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

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
FILES: dict[str, tuple[str | None, str]] = {
    "none": (None, f"{BLOCK}\n"),
    "empty": ("", f"{BLOCK}\n"),
    "text": ("# Agents\n", f"# Agents\n\n{BLOCK}\n"),
    "no line end": ("# Agents", f"# Agents\n\n{BLOCK}"),
    "CRLF": ("# Agents\r\n", f"# Agents\n\n{BLOCK}\n".replace("\n", "\r\n")),
    "BOM": ("\ufeff# Agents\n", f"\ufeff# Agents\n\n{BLOCK}\n"),
    "block": (f"# A\n{BEGIN}\nold\n{END}\n\tend  ", f"# A\n{BLOCK}\n\tend  "),
    "block first": (f"\ufeff{BEGIN}\n{END}", f"\ufeff{BLOCK}"),
    "block with CRLF": (
        f"A\r\n{BEGIN}\r\nold\r\n{END} \r\nB\n",
        f"A\n{BLOCK} \n".replace("\n", "\r\n") + "B\n",
    ),
    "an example": (f"# A\n\n```\n{BLOCK}\n```\n", f"# A\n\n```\n{BLOCK}\n```\n\n{BLOCK}\n"),
    "an example and a block": (
        f"~~~~md\n{BEGIN}\n~~~~\n\n{BEGIN}\n{END}\n",
        f"~~~~md\n{BEGIN}\n~~~~\n\n{BLOCK}\n",
    ),
    "marks in a line": (f"`{BEGIN}` and {END}\n", f"`{BEGIN}` and {END}\n\n{BLOCK}\n"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_block_is_kept_and_nothing_else_touched(run: Run, case: str) -> None:
    """A second run changes nothing, since the file is not one of the documents."""
    before, after = FILES[case]
    file = Path("AGENTS.md")
    if before is not None:
        file.write_bytes(before.encode())
    assert run("--write", "AGENTS.md", "--check")[0] == 1
    assert (file.read_bytes().decode() if file.exists() else None) == before
    assert run("--write", "AGENTS.md") == (0, "", "")
    assert file.read_bytes() == after.encode()
    state = file.stat()
    assert run("--write", "AGENTS.md") == (0, "", "")
    assert run("--write", "AGENTS.md", "--check") == (0, "", "")
    assert file.stat() == state


REFUSED = {
    "two blocks": f"{BLOCK}\n{BLOCK}\n".encode(),
    "not closed": f"{BEGIN}\n".encode(),
    "not opened": f"{END}\n".encode(),
    "wrong order": f"{END}\n{BEGIN}\n".encode(),
    "other encoding": b"# Caf\xe9\n",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_cannot_hold_a_block_stays(run: Run, case: str) -> None:
    """Writing and checking both refuse it."""
    Path("AGENTS.md").write_bytes(REFUSED[case])
    for words in ((), ("--check",)):
        code, out, err = run("--write", "AGENTS.md", *words)
        assert (code, out) == (65, "")
        assert err.startswith("npl-load: AGENTS.md: ")
    assert Path("AGENTS.md").read_bytes() == REFUSED[case]


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
