"""The section commands read the user's own files, wherever the shell may read them."""

import json
from pathlib import Path

import pytest

from tests.conftest import cases
from tests.folders import fill
from tests.programs import Ended, Run

BUILD = "# Build\n\n## Library mode\n\nBuild a library with one entry.\n\n## App mode\n\nBuild pages.\n"
MANUAL = "# Manual\n\n## Library mode\n\nThe library of the manual.\n\n## Index cards\n\nOne for each book.\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Run) -> Run:
    """Run a command in a project with another folder next to it."""
    files = {
        "work/docs/guide/build.md": BUILD,
        "work/a, b.md": "# Comma\n\n## Library shelf\n\nOak.\n",
        "shelf/manual.md": MANUAL,
        "shelf/deep/more.md": "# More\n\n## Library card\n\nBring your card.\n",
        "empty/notes.txt": "",
    }
    fill(tmp_path, files)
    (tmp_path / "work" / "linked").symlink_to(tmp_path / "shelf")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(tmp_path / "data"))

    def ended(*words: str, cwd: str = "work") -> Ended:
        monkeypatch.chdir(tmp_path / cwd)
        return program("npl-load", *(word.replace("TMP", str(tmp_path)) for word in words))

    return ended


PLACES = cases("npl_mcp/cli/commands/targets")["places"]


@pytest.mark.parametrize("case", PLACES)
def test_the_best_section_comes_from_the_place_that_is_meant(run: Run, case: str) -> None:
    words, file = PLACES[case]
    code, out, _ = run("search", *words, "--limit", "1")
    assert code == 0
    assert out.startswith(f"{file}:")


def test_without_markdown_here_the_reference_is_used(run: Run) -> None:
    """The reference can also be named anywhere; the answer says that no root has Markdown."""
    for command in (("search", "fences", "--format", "markdown"), ("tailored", "fences"), ("index",)):
        code, out, err = run(*command, cwd="empty")
        assert (code, "npl.md" in out + err) == (0, True)
        assert "the roots: no Markdown" in out + err
    assert "the roots: no Markdown" not in "".join(map(str, run("tailored", "fences", "--file", "npl.md")))
    assert "npl.md:" in run("search", "fences", "--file", "npl.md")[1]
    assert "npl.md" not in run("search", "fences")[1]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    cases("npl_mcp/cli/commands/targets")["a_mistyped_path_is_named"],
)
def test_a_mistyped_path_is_named(run: Run, words: tuple[str, ...], code: int, message: str) -> None:
    """A path among the words of a question is refused, since it would only be searched for."""
    done = run("search", *words)
    assert (done[0], message in done[2], bool(message)) == (code, True, bool(done[2]))


def test_answers_come_in_the_form_that_is_asked_for(run: Run, tmp_path: Path) -> None:
    """The default is the agents' form, and JSON the whole answer."""
    request = ("tailored", "library mode", "--file", "docs/guide/build.md", "--budget", "200")
    code, out, err = run(*request)
    assert (code, err) == (0, "")
    assert out.startswith("<!-- docs/guide/build.md ## Library mode")
    assert run(*request, "--format", "markdown")[1] == out
    assert json.loads(run(*request, "--json")[1])["sections"][0]["title"] == "Library mode"


def test_an_index_lists_files_and_their_sections(run: Run) -> None:
    """The output is the agents' outline or the fields of the index."""
    code, out, _ = run("index", "docs/guide/build.md")
    assert code == 0
    _, *headings = out.splitlines()
    assert [line.partition("#")[1:] for line in headings] == [
        ("#", " Build"),
        ("#", "# Library mode"),
        ("#", "# App mode"),
    ]
    listed = json.loads(run("index", "docs", "../shelf", "--json")[1])
    assert [node["name"] for node in listed["sections"]] == [
        "docs/guide/build.md",
        "deep/more.md",
        "manual.md",
    ]
    assert "guide/build.md" in run("index")[1]


def test_a_server_has_roots_of_its_own(run: Run) -> None:
    """The command cannot give a server a root for one call."""
    code, _, err = run("--via", "http", "search", "library", "--root", "../shelf")
    assert code == 2
    assert "--root" in err


SEEN_ALIKE = cases("npl_mcp/cli/commands/targets")["seen_alike"]
SERVED = SEEN_ALIKE[2:]
"""Calls with a server of their own, whose start takes two seconds each."""


@pytest.mark.thorough
@pytest.mark.parametrize("roots", ["", "TMP/shelf"])
def test_every_way_to_the_tools_looks_at_the_same_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roots: str
) -> None:
    """A call in this process and one over standard streams agree, for any default form."""
    monkeypatch.setenv("NPL_ROOTS", roots.replace("TMP", str(tmp_path)))
    direct = [run("--via", "direct", *words) for words in SEEN_ALIKE]
    assert all(code == 0 for code, _, _ in direct)
    monkeypatch.setenv("NPL_FORMAT", "markdown")
    assert [run("--via", "direct", *words) for words in SEEN_ALIKE] == direct
    served = SERVED[::2] if roots else SERVED[1::2]
    assert [run("--via", "stdio", *words) for words in served] == [
        direct[SEEN_ALIKE.index(words)] for words in served
    ]
    empty = run("--via", "direct", "search", "fences", cwd="empty")
    if not roots:
        assert run("--via", "stdio", "search", "fences", cwd="empty") == empty
