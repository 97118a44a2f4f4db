"""``npl-load edit``: one section of the user's own files, wherever the shell may write them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from npl_mcp.app import section_edits
from npl_mcp.cli.commands.edit import OPERATIONS
from npl_mcp.cli.commands.load import main

GUIDE = (
    "# Guide\r\n\r\nIntro  \r\n\r\n## Setup\r\n\r\nRun it.\r\n\r\n### Twice\r\n\r\nAgain.\r\n\r\n## Log\r\n"
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a project with a guide and one in a folder next to it; give code, output, messages."""
    for name in ("guide.md", "../beside/guide.md", ".notes/guide.md"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(GUIDE.encode())

    def ended(*words: str, typed: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed)))
        code = main([*words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return ended


def test_the_operations_are_those_of_the_tool() -> None:
    """They are written twice, since the command line is read before the tool is imported."""
    assert get_args(section_edits.Operation) == OPERATIONS


@pytest.mark.parametrize("file", ["guide.md", "../beside/guide.md", "ABSOLUTE", ".notes/guide.md"])
def test_a_section_is_changed_and_nothing_else(run: Run, file: str) -> None:
    """In this folder, beside it, by its full path, in a hidden folder that is named as a root."""
    file = str(Path("guide.md").absolute()) if file == "ABSOLUTE" else file
    roots = ["--root", ".notes"] if file.startswith(".notes") else []
    code, out, err = run("edit", file, "## Log", "--operation", "append", "--content", "- done", *roots)
    assert (code, err) == (0, "")
    assert "guide > ## Log is changed: " in out
    assert Path(file).read_bytes() == GUIDE.encode() + b"\r\n- done\r\n"


def test_content_comes_from_standard_input(run: Run) -> None:
    """Subsections that are gone are named; what is no text changes nothing."""
    words = ("edit", "guide.md", "## Setup", "--operation", "replace")
    assert run(*words, typed=b"caf\xe9")[0] == 2
    assert run(*words)[2].startswith("npl-load: error: standard input is empty; give a text")
    assert Path("guide.md").read_bytes() == GUIDE.encode()
    code, out, _ = run(*words, typed="Ein Café.\n".encode())
    assert code == 0
    assert out.splitlines()[1:] == ["removed: ### Twice"]
    assert "## Setup\r\n\r\nEin Café.\r\n\r\n## Log\r\n" in Path("guide.md").read_bytes().decode()


def test_only_the_expected_state_is_changed(run: Run) -> None:
    """The digest of the index, or of the change before, also from another process."""
    digest = run("index", "guide.md")[1].splitlines()[-1].removeprefix("digest: ")
    words = ("edit", "guide.md", "## Log", "--operation", "append", "--content", "one", "--json")
    first = json.loads(run(*words, "--expect", digest)[1])
    assert first["file"] == "guide.md"
    code, out, err = run(*words, "--expect", digest)
    assert (code, out) == (65, "")
    assert "has changed since you read it" in err
    assert run(*words, "--expect", first["digest"])[0] == 0
    assert Path("guide.md").read_bytes().count(b"one") == 2


def test_what_several_sections_or_none_are_is_refused(run: Run) -> None:
    """With selectors that work, and without a change."""
    words = ("--operation", "append", "--content", "x")
    assert "did you mean" in run("edit", "guide.md", "## Stup", *words)[2]
    assert "sections of guide.md match" in run("edit", "guide.md", "// *", *words)[2]
    assert "is not below a root" in run("edit", "npl.md", "# NPL", *words, "--root", ".")[2]
    assert Path("guide.md").read_bytes() == GUIDE.encode()


def test_a_section_is_deleted_by_its_owner_without_a_digest(run: Run) -> None:
    """Standard input is not read; with a digest only the expected state is deleted."""
    words = ("edit", "guide.md", "## Setup", "--operation", "delete")
    assert run(*words, "--expect", "00000000")[0] == 65
    assert "did you mean" in run("edit", "guide.md", "## Stup", "--operation", "delete")[2]
    assert "sections of guide.md match" in run("edit", "guide.md", "// *", "--operation", "delete")[2]
    assert Path("guide.md").read_bytes() == GUIDE.encode()
    code, out, _ = run(*words, typed=b"not read")
    assert code == 0
    assert out.startswith("guide > # Guide is changed and lost lines 5-12: ")
    assert out.splitlines()[1:] == ["removed: ## Setup", "removed: ### Twice"]
    assert Path("guide.md").read_bytes() == b"# Guide\r\n\r\nIntro  \r\n\r\n## Log\r\n"


@pytest.mark.parametrize(
    "file", ["new.md", "one/two/new.md", "../beside/new.md", "ABSOLUTE", "./.notes/new.md"]
)
def test_a_file_is_made_once(run: Run, file: str) -> None:
    """In this folder, in new ones, beside it, by its full path, in a hidden folder named as a root."""
    file = str(Path("new.md").absolute()) if file == "ABSOLUTE" else file
    words = ("edit", file, "--operation", "create", *(["--root", ".notes"] if ".notes" in file else []))
    code, out, err = run(*words, typed=b"# New\n\nx\n")
    assert (code, err) == (0, "")
    assert "# New is new: " in out
    assert Path(file).read_bytes() == b"# New\n\nx\n"
    assert "already exists" in run(*words, typed=b"# Other\n")[2]
    assert Path(file).read_bytes() == b"# New\n\nx\n"
