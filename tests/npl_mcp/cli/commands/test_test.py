"""``npl-load test``: questions are asked, compared with a revision, repaired, and drafted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from npl_mcp.cli.commands.load import main
from npl_mcp.config.settings import Settings
from tests.conftest import Connect

PAGES = {
    "limits.md": """# Limits

## Upload size

An upload may have at most 20 MB. Larger files are refused with error 413. Ask support for more.

## Requests

A client may send ten requests a second. The rest is answered with error 429.
""",
    "backup.md": """# Backup

## Snapshots

A snapshot of the database is taken every night at two. It is kept for thirty days.

## Restore

Stop the server before a restore. Then copy the snapshot over the database file. The
size of a snapshot is limited, see [upload size](limits.md#upload-size) for files that users send.
""",
    "keys.md": """# Keys

## Rotation

Signing keys are rotated every ninety days. An old key is valid for one more week.
""",
}
QUESTIONS = """## How large may an upload be?

- limits > ## Upload size

## How many requests may a client send?

- limits > ## Requests

## When is a snapshot of the database taken?

- backup > ## Snapshots

## How are signing keys rotated?

- keys > ## Rotation

## How do I brew coffee?

- nowhere
"""
UPLOAD, SNAPSHOT, KEYS = (
    "How large may an upload be?",
    "When is a snapshot of the database taken?",
    "How are signing keys rotated?",
)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(data: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in a git repository of three pages and a question file; give code, output, messages."""
    for name, text in {**PAGES, "questions.md": QUESTIONS}.items():
        Path(name).write_text(text, encoding="utf-8")
    git("init", "--quiet")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "first")

    def ended(*words: str) -> tuple[int, str, str]:
        code = main(["test", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return ended


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})


def change(name: str, old: str, new: str) -> None:
    text = Path(name).read_text(encoding="utf-8")
    assert old in text
    Path(name).write_text(text.replace(old, new), encoding="utf-8")


def test_all_questions_are_held(run: Run) -> None:
    """One line each; no other exit code than 0."""
    code, out, _ = run()
    assert (code, out.splitlines()[0]) == (0, "questions.md: 5 of 5 held")
    assert out.count("  held  rank   1 ") == 4


# What is changed: file, old text, new text; the question that must fail.
BREAKAGES = {
    "section removed": ("keys.md", PAGES["keys.md"][8:], "Nothing.\n", KEYS),
    "section renamed": ("limits.md", "## Upload size", "## Files", UPLOAD),
    "section renamed to a longer name": ("limits.md", "## Upload size", "## Upload size of users", UPLOAD),
    "section moved deeper": ("backup.md", "## Snapshots", "### Snapshots", SNAPSHOT),
    "section split, and its name is gone": (
        "keys.md",
        "## Rotation\n",
        "## Every ninety days\n\nKeys are rotated.\n\n## Old keys\n",
        KEYS,
    ),
    "section split, and its name stays": (
        "limits.md",
        "An upload may have at most 20 MB. Larger",
        "Uploads are limited.\n\n## Largest upload\n\nAn upload may have at most 20 MB. Larger",
        UPLOAD,
    ),
    "key sentence deleted": ("limits.md", "An upload may have at most 20 MB. ", "", UPLOAD),
    "another key sentence deleted": (
        "backup.md",
        "A snapshot of the database is taken every night at two. ",
        "",
        SNAPSHOT,
    ),
    "something appears": (
        "keys.md",
        "# Keys\n",
        "# Keys\n\n## Coffee\n\nTo brew coffee, boil water and pour it over ground coffee.\n",
        "How do I brew coffee?",
    ),
}


@pytest.mark.parametrize(("file", "old", "new", "question"), BREAKAGES.values(), ids=list(BREAKAGES))
def test_a_breakage_fails_under_its_name(run: Run, file: str, old: str, new: str, question: str) -> None:
    """Compared with the last revision, this question alone is worse."""
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
    assert "MISS" in next(line for line in out.splitlines() if KEYS in line)
    assert "wrong selector: keys > ## Rotation" in out


def test_another_wording_is_not_worse(run: Run) -> None:
    """A sentence may change, and others may be added."""
    change("limits.md", "at most 20 MB", "at most 30 MB")
    change("keys.md", "An old key is valid for one more week.", "For a week both keys are accepted by all.")
    assert run("--against", "HEAD")[0] == 0


def test_a_miss_of_before_is_not_worse(run: Run) -> None:
    """Compared with a revision only what changed counts; without one the miss does."""
    with Path("questions.md").open("a", encoding="utf-8") as file:
        file.write("\n## Who pays?\n\n- limits\n")
    code, out, _ = run()
    assert (code, "no section has: pays" in out) == (1, True)
    assert run("--against", "HEAD")[0] == 0


def test_what_cannot_be_read_ends_with_2(run: Run) -> None:
    """A line that is no question, a missing file, an unknown revision."""
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
    assert (code, report["held"], report["asked"]) == (1, 4, 5)
    assert report["outcomes"]["questions.md"][0]["wrong"]
    (suite,) = ElementTree.parse("report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("5", "1")
    failed = [case.get("name") for case in suite if len(case)]
    assert failed == [UPLOAD]


def test_a_repair_is_tried_shown_and_written(run: Run) -> None:
    """Words that users say become keywords of the page; nothing else changes."""
    Path("more.questions.md").write_text(
        "## What is the weight limit of an attachment?\n\n- limits > ## Upload size\n", encoding="utf-8"
    )
    code, out, _ = run("more.questions.md", "--repair")
    assert code == 1
    assert "1. keywords in limits.md" in out
    assert Path("limits.md").read_text(encoding="utf-8") == PAGES["limits.md"]
    run("more.questions.md", "--fix", "1")
    front, _, rest = Path("limits.md").read_text(encoding="utf-8").rpartition("---\n")
    assert (rest, "attachment" in front) == (PAGES["limits.md"], True)
    assert run()[0] == 0
    assert run("more.questions.md", "--fix", "7")[0] == 0  # nothing is missed, so there is nothing to choose


def test_a_heading_is_repaired_and_keeps_its_selectors(run: Run) -> None:
    """Keywords do not help between two sections of one page; old selectors select the longer heading."""
    change("questions.md", "How are signing keys rotated?", "How are signing keys replaced by fresh secrets?")
    page = "".join(
        f"## {title}\n\nSigning keys, keys for signing and all keys. {text}\n\n"
        for title, text in (("Replaced", "Fresh ones."), ("Rotation", "Ninety days."), ("Keys", "Secrets."))
    )
    Path("keys.md").write_text(f"# Keys\n\n{page}", encoding="utf-8")
    code, out, _ = run("--fix")
    assert code == 1
    assert "heading in keys.md" in out
    assert "## Rotation (signing" in Path("keys.md").read_text(encoding="utf-8")
    assert "- keys > ## Rotation\n" in Path("questions.md").read_text(encoding="utf-8")
    assert run()[0] == 0


def test_a_draft_asks_the_sentences_around_links(run: Run) -> None:
    """The sentence is the question, the linked section the answer; documents stay as they are."""
    code, out, err = run("--draft")
    assert code == 0
    assert "- limits > ## Upload size" in out
    assert "size of a snapshot is limited, see upload size for files" in out
    assert "1 of 1 held" in err
    assert Path("backup.md").read_text(encoding="utf-8") == PAGES["backup.md"]


def test_questions_come_from_calls(
    run: Run, settings: Settings, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that found nothing, and one that was asked again at once."""
    logging = replace(
        settings,
        log_calls="contexts",
        roots=(Path.cwd(),),
        data_dir=Path("kept").resolve(),
        database_url=None,
    )
    call = connect(logging)
    call("npl_load_tailored", context="ferret insurance", token_budget=450)
    call("npl_load_tailored", context="How large may an upload be?", token_budget=450)
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(logging.data_dir))
    out = ""
    for _ in range(100):  # the log is written in batches
        out = run("--from-calls")[1]
        if "ferret" in out:
            break
    assert "## ferret insurance\n\n<!-- asked again, 1 call; check the answers -->" in out
