"""``npl-load``: output, messages and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import case_text, cases
from tests.folders import fill
from tests.programs import Ended, Run

CASES = cases("npl_mcp/cli/load")
RECORDED = cases("predecessor/load")
HEAVY = ("yaml", "numpy", "tiktoken", "asyncio", "rapidfuzz", "sqlite3", "npl_mcp.app.app")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Run) -> Run:
    """Run a command in the trees of the case file or in others."""

    def in_trees(
        *words: str,
        env: Mapping[str, str] | None = None,
        work: Mapping[str, str] = CASES["trees"]["work"],
        home: Mapping[str, str] = CASES["trees"]["home"],
    ) -> Ended:
        monkeypatch.chdir(fill(tmp_path / "work", work))
        monkeypatch.setenv("HOME", str(fill(tmp_path / "home", home)))
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        return program("npl-load", *words)

    return in_trees


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["name"])
def test_to_the_byte(case: dict[str, Any], run: Run) -> None:
    """Standard output, standard error and exit code are those of the case."""
    done = run(*case["argv"], env=case.get("env"))
    assert (done.code, done.out) == (case["exit"], case["stdout"])
    assert done.err == case["stderr"] or (case["stderr"] is None and done.err)


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["name"])
def test_what_the_predecessor_printed(case: dict[str, Any], run: Run) -> None:
    work, home = (
        RECORDED["fixtures"][tree] if isinstance(tree, str) else tree
        for tree in (case["fixture"], case["home_fixture"])
    )
    done = run(*case["argv"], env=case["env"], work=work, home=home)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", done.out)
    text = re.sub(r"\d{4}-\d\d-\d\d", "<date>", text)
    assert (done.code, text) == (case["exit"], case["stdout"])


def test_bundled_prompts_stand_in_for_what_the_user_has_no_folder_of(run: Run) -> None:
    """A user's folder of a kind replaces the bundled prompts of that kind only."""
    bare = run("--quiet", "c", "syntax,**.*", work={}, home={})
    assert {"syntax", "fences", "pumps"} <= set(re.split('[",]', bare.out))
    other = run("--quiet", "c", "syntax", work={".npl/prds/x.md": "# X\n"}, home={})
    assert '@npl.def.loaded+="syntax"' in other.out
    assert run("--quiet", "c", "*", work={".npl/prds/x.md": "# X\n"}, home={}).out == ""
    own = run("c", "syntax", work={".npl/npl/x.md": "# X\n"}, home={})
    assert own.out == ""
    assert "there is no component 'syntax'" in own.err


def test_a_definition_holds_what_the_agent_relies_on(run: Run) -> None:
    """It is the agent, the core reference and the components it names, in this order."""
    work = {
        ".npl/npl.md": "# Core\n",
        ".npl/npl/fences.md": "# Fences\n",
        ".npl/npl/pump.md": "# Pump\n",
        ".npl/core/agents/owl.md": '# Owl\n`npl_load("c", "pump")`\n',
    }
    done = run("agent", "owl", "--definition", work=work, home={})
    wanted = [
        "# agent:owl:",
        "# NPL Definition for owl",
        "# Core",
        "## Component: fences",
        "## Component: pump",
    ]
    places = [done.out.index(text) for text in wanted]
    assert (done.code, places) == (0, sorted(places))


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_an_answer_as_data(form: str, run: Run) -> None:
    """``--format`` prints the tool's answer; both forms say the same."""
    import yaml

    done = run("c", "rake", "m", "soil", "--format", form)
    data = yaml.safe_load(done.out)  # JSON is YAML
    assert data["flags"] == {"npl.def.loaded": "rake", "npl.meta.loaded": "soil"}
    assert data["content"].startswith("# rake:\n")


def test_conditions_of_one_name_add_up(run: Run) -> None:
    """Values are alternatives, and an excluded one stays excluded."""
    tags = {"new": "red", "old": "red, old", "other": "blue", "plain": "green"}
    work = {f"{name}.md": f"---\ntags: [{tag}]\n---\n# Pump {name}\n" for name, tag in tags.items()}
    conditions = ("--filter", "tags=red,blue", "--filter", "tags=!old")
    done = run("search", "pump", *conditions, "--format", "json", work=work, home={})
    assert {hit["file"] for hit in json.loads(done.out)} == {"new.md", "other.md"}


DOCUMENT = case_text("texts/levels.md")
NORTH = "## North\n\n| crop | month |\n|:--|:--|\n| peas | May |\n"


def test_an_index_of_many_items_lists_them_all(run: Run) -> None:
    work = {f".npl/npl/d{number % 3}/a{number}.md": f"# T{number}\n" for number in range(150)}
    done = run("c", "**", "--index", work=work, home={})
    assert (done.code, len(re.findall(r" \.npl/npl/d\d/a\d+\.md", done.out))) == (0, 150)


BEDS = {".npl/npl/beds.md": DOCUMENT}


@pytest.mark.parametrize(
    ("words", "out"),
    cases("npl_mcp/cli/commands/load")["sections_of_an_item"],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_sections_of_an_item(words: list[str], out: str, run: Run) -> None:
    """Selectors, the tree of headings, conditions and depth work on items."""
    done = run("c", "beds", *words, work=BEDS, home={})
    assert (done.code, done.err) == (0, "")
    assert re.sub(r"\n+", "\n", done.out) == re.sub(r"\n+", "\n", out)


@pytest.mark.parametrize(
    ("setting", "more", "names"),
    cases("npl_mcp/cli/commands/load")["a_setting_bounds_what_has_no_budget"],
)
def test_a_setting_bounds_what_has_no_budget(
    run: Run, setting: str, more: tuple[str, ...], names: bool
) -> None:
    """The answer names the sections without room."""
    beds = "".join(f"## Bed {n}\n\n" + f"Tulips of bed {n} want water. " * 9 + "\n\n" for n in range(9))
    words = ("tailored", "water", "for", "tulips", "--file", "beds.md", *more)
    done = run(*words, work={"beds.md": beds}, home={}, env={"NPL_TOKEN_BUDGET": setting})
    assert ("<!-- more:" in done.out) == names
    assert (len(done.out) < 1_000) == names


def test_search_lists_places(run: Run) -> None:
    """Each line begins with file and line of a hit, best first, up to the requested number."""
    done = run("search", "stones", "--file", "beds.md", "--limit", "1", work={"beds.md": DOCUMENT}, home={})
    assert re.fullmatch(r"beds\.md:\d+  (beds )?### Edge  \d+  .*\n(.*more: offset=1\n)?", done.out)


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["c", "--help"], ["agent", "x", "-h"], ["tailored", "--help"]]
)
def test_help_teaches(words: list[str], run: Run) -> None:
    done = run(*words)
    assert done.code == 0
    assert done.out.startswith("usage: npl-load")
    assert "\nExamples:\n  npl-load " in done.out
    assert "--strict" in done.out
    assert "Exit codes: 0" in done.out


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "npl_mcp.cli.commands.load", *words]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_stops(unbuffered: str, tmp_path: Path) -> None:
    """A reader that stops early causes no message, for any buffering by Python."""
    fill(tmp_path / ".npl" / "npl", {"big.md": "# Big\n" + "words and words\n" * 100_000})
    with subprocess.Popen(
        command("c", "big"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(13) == b"# Flag Update"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_notation_of_standard_input(tmp_path: Path) -> None:
    """``-`` reads standard input; bytes that are not UTF-8 are refused."""
    good = subprocess.run(
        command("syntax", "-"), cwd=tmp_path, input=b"{a}", capture_output=True, check=True, timeout=60
    )
    assert b"placeholder: 1" in good.stdout
    bad = subprocess.run(
        command("syntax", "-"), cwd=tmp_path, input=b"\xff", capture_output=True, check=False, timeout=60
    )
    assert (bad.returncode, bad.stdout) == (2, b"")
    (tmp_path / "endless").symlink_to("/dev/zero")
    endless = subprocess.run(
        command("syntax", "--file", "endless"), cwd=tmp_path, capture_output=True, check=False, timeout=60
    )
    assert (endless.returncode, endless.stdout) == (2, b"")


def test_an_interrupt_is_silent(tmp_path: Path) -> None:
    """Ctrl-C ends a command that waits for input, with the exit code shells give it."""
    process = subprocess.Popen(
        command("syntax", "-"),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(b"x" * 200_000)  # more than a pipe holds: the command is reading now
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_loading_whole_items_imports_nothing_slow(tmp_path: Path) -> None:
    """A command imports only the modules that it needs."""
    code = (
        "import sys; from npl_mcp.cli.commands.load import main; main(['c', 'syntax']);"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("# Flag Update\n")
    assert done.stderr.split() == []
