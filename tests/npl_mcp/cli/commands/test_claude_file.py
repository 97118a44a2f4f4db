"""``npl-load init-claude`` keeps prompts in a file of instructions."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.folders import fill
from tests.programs import Run


def prompt(name: str, version: str, text: str = "Text.") -> str:
    return f"npl-instructions:\n   name: {name}\n   version: {version}\n---\n\n## {name}\n{text}\n"


PROMPTS = {name: prompt(name, "1.2.0") for name in ("npl-conventions", "npl-load-directive", "sqlite-guide")}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the prompts above."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    place(folder, PROMPTS)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(program: Run) -> Run:
    return partial(program, "npl-load", "init-claude")


def place(folder: Path, prompts: Mapping[str, str]) -> None:
    fill(folder / ".npl" / "prompts", {f"{name}.md": text for name, text in prompts.items()})


def test_a_first_run_appends_the_usual_prompts(project: Path, run: Run) -> None:
    """Existing prompts are appended after the text, with separators; exit code 1 means a changed file."""
    (project / "CLAUDE.md").write_text("# Mine\n", encoding="utf-8")
    done = run()
    assert (done.code, done.out) == (1, "Added 3 prompt(s) to ./CLAUDE.md\n")
    assert "Added sqlite-guide to ./CLAUDE.md" in done.err
    bodies = [PROMPTS[name].strip() for name in PROMPTS]
    wanted = "# Mine\n" + "".join(f"\n\n* * *\n\n{body}" for body in bodies)
    assert (project / "CLAUDE.md").read_text(encoding="utf-8") == wanted
    assert run().code == 0


def test_chosen_prompts_and_another_file(project: Path, run: Run) -> None:
    """``--prompts`` and ``--target`` choose them; an unknown name is reported."""
    done = run("--target", "AGENTS.md", "--prompts", "sqlite-guide", "nosuch")
    assert (done.code, "Prompt not found: nosuch" in done.err) == (1, True)
    assert (project / "AGENTS.md").read_text(encoding="utf-8") == PROMPTS["sqlite-guide"].strip()


def test_versions_are_compared(project: Path, run: Run) -> None:
    """Versions compare by precedence: 1.10 is newer than 1.9. Exit code 2 means that some are behind."""
    place(project, {"npl-conventions": prompt("npl-conventions", "1.10")})
    installed = [prompt("npl-conventions", "1.9"), prompt("sqlite-guide", "1.2"), prompt("mine", "1.0.0")]
    (project / "CLAUDE.md").write_text("\n* * *\n\n".join(installed), encoding="utf-8")
    code, table, _ = run()
    assert code == 2
    assert f"{'npl-conventions':<25} {'1.10':<10} {'1.9':<10} {'OUTDATED':<10}\n" in table
    assert f"{'npl-load-directive':<25} {'1.2.0':<10} {'-':<10} {'MISSING':<10}\n" in table
    assert f"{'sqlite-guide':<25} {'1.2.0':<10} {'1.2':<10} {'current':<10}\n" in table
    assert "\nSummary: 1 outdated, 1 missing, 1 current, 1 extra\n" in table
    code, text, _ = run("--json")
    data = json.loads(text)
    assert code == 2
    assert data["summary"] == {"current": 1, "outdated": 1, "missing": 1, "extra": 1, "newer": 0}
    assert data["sections"][0] == {
        "name": "mine",
        "source_version": None,
        "installed_version": "1.0.0",
        "source_path": None,
        "status": "extra",
    }
    assert data["sections"][1]["source_path"] == ".npl/prompts/npl-conventions.md"


def test_a_section_is_renewed_where_it_stands(project: Path, run: Run) -> None:
    """Every byte around it stays, doubled separators and line ends included."""
    old = prompt("npl-conventions", "1.0.0", "Old.").strip()
    text = f"# Mine\n\n* * *\n* * *\n{old}\n\n* * *\n* * *\n\nBelow.\n"
    (project / "CLAUDE.md").write_bytes(text.replace("\n", "\r\n").encode())
    would = "Would update: npl-conventions (1.0.0 -> 1.2.0)\n"
    assert run("--update", "npl-conventions", "--dry-run")[:2] == (0, would)
    updated = ("Updated 1 section(s) in ./CLAUDE.md\n", "Updated: npl-conventions (1.0.0 -> 1.2.0)\n")
    assert run("--update", "npl-conventions") == (1, *updated)
    wanted = text.replace(old, PROMPTS["npl-conventions"].strip()).replace("\n", "\r\n").encode()
    assert (project / "CLAUDE.md").read_bytes() == wanted


def test_all_are_renewed_or_added(project: Path, run: Run) -> None:
    (project / "CLAUDE.md").write_text(prompt("npl-conventions", "1.0.0"), encoding="utf-8")
    assert run("--update-all").code == 1
    assert run("--update-all")[:2] == (0, "No sections to update\n")


def test_names_without_a_source(project: Path, run: Run) -> None:
    """A section without a source gives exit code 3; an unknown name gives 0, or 1 with --strict."""
    (project / "CLAUDE.md").write_text(prompt("mine", "1.0.0"), encoding="utf-8")
    assert run("--update", "mine")[::2] == (3, "Warning: Source not found for mine\n")
    code, _, err = run("--update", "sqlite-gide")
    assert (code, "near: sqlite-guide" in err) == (0, True)
    assert run("--strict", "--update", "sqlite-gide").code == 1


def test_a_file_that_cannot_be_written(project: Path, run: Run) -> None:
    code, _, err = run("--target", "nosuch/CLAUDE.md")
    assert (code, "nosuch" in err) == (74, True)
    assert not (project / "nosuch").exists()


def test_a_file_that_is_no_text(project: Path, run: Run) -> None:
    (project / "CLAUDE.md").write_bytes(b"\xff\xfe")
    (project / "folder").mkdir()
    refused = {(): "./CLAUDE.md: it is not UTF-8", ("--target", "folder"): "folder: not a regular file"}
    for words, problem in refused.items():
        code, _, err = run(*words)
        assert (code, problem in err) == (74, True)
    assert (project / "CLAUDE.md").read_bytes() == b"\xff\xfe"


@pytest.mark.parametrize("target", ["CLAUDE.md", "linked/profile", "linked/new.md"])
def test_no_link_leads_out_of_the_project(project: Path, run: Run, tmp_path: Path, target: str) -> None:
    """A clone may contain a link to a file or a folder of its user."""
    outside = fill(tmp_path / "outside", {"profile": "export A=1\n"})
    (project / "CLAUDE.md").symlink_to(outside / "profile")
    (project / "linked").symlink_to(outside)
    done = run("--target", target)
    assert (done.code, f"{target}: a link leads outside of {project}" in done.err) == (74, True)
    assert {path.name: path.read_text("utf-8") for path in outside.iterdir()} == {"profile": "export A=1\n"}
