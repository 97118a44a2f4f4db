"""``npl-load test`` asks questions and compares the outcomes with a revision."""

import json
import os
import subprocess
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import case_text, cases
from tests.folders import fill
from tests.programs import Run

PAGES = cases("npl_mcp/cli/commands/test")
QUESTIONS = case_text("texts/questions.md")
UPLOAD, SNAPSHOT, KEYS = (
    "How large may an upload be?",
    "When is a snapshot of the database taken?",
    "How are signing keys rotated?",
)


@pytest.fixture
def run(data: Path, program: Run) -> Run:
    """Run the command in a git repository of three pages and a question file."""
    fill(Path(), {**PAGES, "questions.md": QUESTIONS})
    git("init", "--quiet")
    git("add", ".")
    git(*COMMIT, "--message", "first")
    return partial(program, "npl-load", "test")


COMMIT = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet")


def git(*words: str, given: str = "") -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    ended = subprocess.run(
        ["git", *words], check=True, env=environment, input=given, capture_output=True, text=True
    )
    return ended.stdout.strip()


def change(name: str, old: str, new: str) -> None:
    text = Path(name).read_text(encoding="utf-8")
    assert old in text
    Path(name).write_text(text.replace(old, new), encoding="utf-8")


def test_all_questions_pass(run: Run) -> None:
    """Each question has a line, and the exit code is 0."""
    code, out, _ = run()
    assert (code, out.splitlines()[0]) == (0, "questions.md: 5 of 5 pass")
    assert out.count("  pass  rank   1 ") == 4


# What is changed: file, old text, new text; the question that must fail.
BREAKAGES = cases("npl_mcp/cli/commands/test_breakages")


@pytest.mark.parametrize(("file", "old", "new", "question"), BREAKAGES.values(), ids=list(BREAKAGES))
def test_a_breakage_fails_under_its_name(run: Run, file: str, old: str, new: str, question: str) -> None:
    """Only this question is worse than at the last revision."""
    change(file, old, new)
    code, out, _ = run("--against", "HEAD")
    assert code == 1
    assert [line.strip() for line in out.splitlines() if "WORSE" in line] == [f"WORSE {question}"]


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


def test_another_wording_is_not_worse(run: Run) -> None:
    """A sentence may change, and others may be added."""
    change("limits.md", "at most 20 MB", "at most 30 MB")
    change("keys.md", "An old key is valid for one more week.", "For a week both keys are accepted by all.")
    assert run("--against", "HEAD")[0] == 0


def test_a_miss_of_before_is_not_worse(run: Run) -> None:
    """A comparison counts changes only; without a revision the miss fails."""
    with Path("questions.md").open("a", encoding="utf-8") as file:
        file.write("\n## Who pays?\n\n- limits\n")
    code, out, _ = run()
    assert (code, "no section has: pays" in out) == (1, True)
    assert run("--against", "HEAD")[0] == 0


def test_what_cannot_be_read_ends_with_2(run: Run) -> None:
    """A malformed line, a missing file and an unknown revision end with 2."""
    change("questions.md", "- keys > ## Rotation", "keys")
    code, out, _ = run()
    assert (code, "questions.md:15:1: expected a list item" in out) == (2, True)
    assert run("missing.questions.md")[0] == 2
    assert "no revision 'gone'" in run("--against", "gone")[2]
    Path("questions.md").unlink()
    assert run()[0] == 2


def test_reports_for_programs(run: Run) -> None:
    """JSON has all fields; JUnit has a case for each question and the reasons of failures."""
    change("limits.md", "## Upload size", "## Files")
    code, out, _ = run("--json", "--junit", "report.xml")
    report = json.loads(out)
    assert (code, report["passed"], report["asked"]) == (1, 4, 5)
    assert report["outcomes"]["questions.md"][0]["wrong"]
    (suite,) = ElementTree.parse("report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("5", "1")
    failed = [case.get("name") for case in suite if len(case)]
    assert failed == [UPLOAD]


def test_problems_are_reported_within_bounds(run: Run) -> None:
    """The first problems have a line each, the others are counted."""
    for name in ("a", "b"):
        Path(f"{name}.questions.md").write_text("## Why?\n\n" + "- [[\n" * 3_000, encoding="utf-8")
    Path("c.questions.md").write_text("x" * 300_000, encoding="utf-8")
    code, out, _ = run()
    assert code == 2
    assert len(out) < 10_000
    assert out.splitlines()[-1] == "53 more lines with problems"
    code, out, _ = run("a.questions.md")
    assert (code, "a.questions.md:53:1: 2,951 more problems" in out) == (2, True)
    code, out, _ = run("c.questions.md")
    assert (code, "more than 262,144 bytes" in out) == (2, True)


@pytest.mark.parametrize("words", ["--repair", "--fix 1,2", "--draft", "--from-calls"])
def test_a_removed_option_is_one_warning(run: Run, words: str) -> None:
    """It names its replacement, and the questions are asked as without it."""
    code, out, err = run("questions.md", *words.split())
    assert (code, out.splitlines()[0]) == (0, "questions.md: 5 of 5 pass")
    flag, *_ = words.split()
    assert [line for line in err.splitlines() if f"{flag} has no effect: " in line] == err.splitlines()
    assert len(err.splitlines()) == 1


# Lines of a tree that a revision has, and words of the message that says why it cannot be asked.
BLOB = "100644 blob {blob}\t{name}.md"
TREES = {
    "a name that is too long": ([BLOB.format(blob="{blob}", name="a" * 300)], "cannot be copied"),
    "a file and a folder of one name": (
        [BLOB.format(blob="{blob}", name="a"), "040000 tree {tree}\ta.md"],
        "cannot be copied",
    ),
    "a content that is missing": (
        [BLOB.format(blob="0" * 39 + "1", name="lost")],
        "lacks the content of 'lost.md'",
    ),
}


@pytest.mark.parametrize(("lines", "words"), TREES.values(), ids=list(TREES))
def test_a_revision_that_cannot_be_asked_ends_with_2(run: Run, lines: list[str], words: str) -> None:
    ids = {"blob": git("rev-parse", "HEAD:keys.md"), "tree": git("rev-parse", "HEAD^{tree}")}
    made = git("mktree", "--missing", given="".join(f"{line.format(**ids)}\n" for line in lines))
    code, out, err = run("--against", made)
    assert (code, out) == (2, "")
    assert words in err


def test_a_partial_clone_says_what_it_lacks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has to fetch the missing contents: npl lets git connect to nothing."""
    change("keys.md", "ninety", "thirty")
    git(*COMMIT, "--all", "--message", "second")
    git("config", "uploadpack.allowFilter", "true")
    git("clone", "--quiet", "--filter=blob:none", Path.cwd().as_uri(), "partial")
    monkeypatch.chdir("partial")
    code, _, err = run("--against", "HEAD~1")
    assert (code, "made with --filter" in err) == (2, True)
