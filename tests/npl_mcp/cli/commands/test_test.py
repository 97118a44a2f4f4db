"""``npl-load test`` asks questions."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import case_text, cases
from tests.folders import fill
from tests.programs import Run

PAGES = cases("npl_mcp/cli/commands/test")
QUESTIONS = case_text("texts/questions.md")
KEYS = "How are signing keys rotated?"


@pytest.fixture
def run(data: Path, program: Run) -> Run:
    """Run the command in a folder of three pages and a question file."""
    fill(Path(), {**PAGES, "questions.md": QUESTIONS})
    return partial(program, "npl-load", "test")


def change(name: str, old: str, new: str) -> None:
    text = Path(name).read_text(encoding="utf-8")
    assert old in text
    Path(name).write_text(text.replace(old, new), encoding="utf-8")


def test_all_questions_pass(run: Run) -> None:
    """Each question has a line, and the exit code is 0."""
    code, out, _ = run()
    assert (code, out.splitlines()[0]) == (0, "questions.md: 5 of 5 pass")
    assert out.count("  pass  rank   1 ") == 4
    assert out.endswith("recall@1 1.000, recall@3 1.000, recall@10 1.000, mrr 1.000\n")


# What is changed: file, old text, new text; the question that must fail.
BREAKAGES = cases("npl_mcp/cli/commands/test_breakages")


@pytest.mark.parametrize(("file", "old", "new", "question"), BREAKAGES.values(), ids=list(BREAKAGES))
def test_a_breakage_fails_under_its_name(run: Run, file: str, old: str, new: str, question: str) -> None:
    change(file, old, new)
    code, out, _ = run()
    assert code == 1
    assert [line.split(" tokens  ")[1] for line in out.splitlines() if "FAIL" in line] == [question]


def test_a_section_that_moves_to_another_file_fails(run: Run) -> None:
    """The selector names the file."""
    section = PAGES["keys.md"].partition("\n\n")[2]
    change("keys.md", section, "None.\n")
    with Path("backup.md").open("a", encoding="utf-8") as file:
        file.write(f"\n{section}")
    code, out, _ = run()
    assert code == 1
    assert "FAIL" in next(line for line in out.splitlines() if KEYS in line)
    assert "wrong selector: keys > ## Rotation" in out


def test_what_cannot_be_read_ends_with_2(run: Run) -> None:
    """A malformed line and a missing file end with 2."""
    change("questions.md", "- keys > ## Rotation", "keys")
    code, out, _ = run()
    assert (code, "questions.md:15: expected a list item" in out) == (2, True)
    assert run("missing.questions.md")[0] == 2
    Path("questions.md").unlink()
    assert run()[0] == 2


def test_reports_for_programs(run: Run) -> None:
    """JSON has all fields."""
    change("limits.md", "## Upload size", "## Files")
    code, out, _ = run("--json")
    report = json.loads(out)
    assert (code, report["passed"], report["asked"]) == (1, 4, 5)
    ranks = {"recall@1": 0.75, "recall@3": 0.75, "recall@10": 0.75, "mrr": 0.75}
    assert {name: report[name] for name in ranks} == ranks
    assert report["outcomes"]["questions.md"][0]["wrong"]


def test_problems_are_reported_within_bounds(run: Run) -> None:
    """The first problems have a line each, the others are counted."""
    for name in ("a", "b"):
        Path(f"{name}.questions.md").write_text("## Why?\n\n" + "- [[\n" * 3_000, encoding="utf-8")
    Path("c.questions.md").write_text("x" * 300_000, encoding="utf-8")
    code, out, _ = run()
    assert code == 2
    assert len(out) < 10_000
    assert out.splitlines()[-2] == "b.questions.md: 2,951 more problems"
    code, out, _ = run("a.questions.md")
    assert (code, "a.questions.md: 2,951 more problems" in out) == (2, True)
    code, out, _ = run("c.questions.md")
    assert (code, "more than 262,144 bytes" in out) == (2, True)
