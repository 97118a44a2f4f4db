"""The documents say what is true."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from benchmarks import tool_lists
from benchmarks.agent_day import __main__ as agent_day
from docs import connecting, demo, reference
from npl_index import estimator
from npl_mcp import __version__
from npl_mcp.cli.commands import serving
from npl_mcp.cli.commands.mcp import parser
from npl_mcp.config.clients import READING
from npl_mcp.config.settings import corpus_folder
from npl_mcp.tools.domains import listed_tools
from tests.conftest import case_text
from tests.programs import PROGRAMS, Run

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


SETTINGS = (ROOT / "SETTINGS.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "GUIDE.md").read_text(encoding="utf-8")
API = (ROOT / "API.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    fences = re.findall(r"^(`{3,})(\w*)\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL)
    return [text for _, label, text in fences if label == language]


def between(marks: tuple[str, str], text: str) -> str:
    return text.split(f"{marks[0]}\n")[1].split(marks[1])[0]


def demonstrated() -> str:
    """Return what README shows of `make run`."""
    return next(block for block in blocks("") if block.startswith("$ npl-mcp"))


def prose(text: str) -> list[str]:
    """Return the words of a document; code and the rules of tables do not count."""
    text = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [word for word in text.replace("|", " ").split() if not re.fullmatch(r":?-+:?", word)]


def test_the_documents_are_short() -> None:
    """README and ARCHITECTURE are read from beginning to end."""
    assert len(prose(README)) <= 850
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= 120
    folders = [*ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    documents = [*folders, *(ROOT / "npl_mcp").rglob("*.md"), *(ROOT / "plugin").rglob("*.md")]
    counted = [path for path in documents if path.name not in ("API.md", "CHANGELOG.md")]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in counted) <= 13_600


def test_the_figures_of_the_readme_are_those_that_were_measured() -> None:
    """Table and sentence are made from the kept figures."""
    files = agent_day.KEPT, tool_lists.KEPT
    day, kept = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    assert between(agent_day.MARKS, README) == agent_day.readme_table(day)
    assert between(tool_lists.MARKS, README) == tool_lists.sentence(kept)


def test_the_lists_of_tools_cost_what_the_readme_says() -> None:
    """The number of tools is exact, that of tokens within the error of an estimate."""
    now = anyio.run(tool_lists.measure, estimator().count)
    kept = json.loads(tool_lists.KEPT.read_text(encoding="utf-8"))
    for name, said in kept.items():
        assert now[name]["tools"] == said["tools"]
        assert now[name]["tokens"] == pytest.approx(said["tokens"], rel=0.04)


def test_the_generated_documents_are_current() -> None:
    """``make docs`` writes API.md, the demonstration and the picture from what tools say and do."""
    assert reference.main(["--check"]) == 0


@pytest.mark.parametrize("spec", listed_tools(), ids=lambda spec: spec.name)
def test_every_tool_is_documented(spec: object) -> None:
    """Each has a description, parameters, answer fields, errors and an example."""
    part = API.partition(f"\n## {spec.name}\n")[2].partition("\n## ")[0]  # type: ignore[attr-defined]
    for heading in ("| parameter |", "Answer:", "Errors:", "Example:"):
        assert heading in part
    assert not re.search(r"\| +\|$", part, re.MULTILINE), "a parameter without a meaning"
    answer = json.loads(re.findall(r"````json\n(.*?)\n````", part, re.DOTALL)[0])
    assert answer["success"] is True


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        pytest.param(0, "commit-message > ## Form of a Commit Message", id="library"),
        pytest.param(1, "qualifier", id="client", marks=pytest.mark.thorough),
    ],
)
def test_the_python_of_the_documents_works(block: int, expected: str, tmp_path: Path) -> None:
    """Each block runs as it is, in a clone."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-c", blocks("python", API)[block]],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


COMMANDS = (ROOT / "COMMANDS.md").read_text(encoding="utf-8")
GARDEN = case_text("docs/garden.md")


def console_steps() -> list[tuple[str, str]]:
    """Return each command of the guide to the command lines, and what it prints."""
    blocks = re.findall(r"^(`{3,})console\n(.*?)^\1\n", COMMANDS, re.MULTILINE | re.DOTALL)
    steps = [step for _, block in blocks for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(command, output) for command, _, output in (step.partition("\n") for step in steps)]


SHELL = re.compile(
    r"(?:(?P<input>(?:cat|echo|printf) .+?) \| )?(?P<words>npl-.+?)(?: 2>(?P<errors>/dev/null|&1))?"
    r"(?:(?P<code>; echo \$\?)| \| head -(?P<lines>\d+))?"
)
"""The shell syntax of the guide; other syntax does not match."""


def test_the_examples_of_the_guide_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Run
) -> None:
    """Every command is run as it stands, one after the other in one project."""
    work = tmp_path / "work"
    (work / "docs").mkdir(parents=True)
    (work / "docs" / "garden.md").write_text(GARDEN, encoding="utf-8")
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(tmp_path / "data"))
    steps = console_steps()
    assert len(steps) >= COMMANDS.count("\n$ ") > 10
    for command, expected in steps:
        if command.startswith("rm "):
            subprocess.run(["sh", "-c", command], check=True)
            continue
        step = SHELL.fullmatch(command)
        assert step is not None, command
        given = subprocess.run(["sh", "-c", step["input"] or ":"], capture_output=True, check=True).stdout
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        code, out, err = program(*shlex.split(step["words"]))
        if step["lines"] is not None:
            out = "".join(out.splitlines(keepends=True)[: int(step["lines"])])
        shown = f"{out}{code}\n" if step["code"] else out
        if step["errors"] != "/dev/null":
            shown += err
        pattern = re.escape(expected).replace("\n…\\\n", "\n(?:.*\n)+?").replace("…", ".+")
        assert re.fullmatch(pattern, shown), (command, shown)


def flags(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def helped(name: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    try:
        code = PROGRAMS[name]([*words, "--help"])
    except SystemExit as end:  # argparse ends the program
        code = int(end.code or 0)
    assert code == 0
    return capsys.readouterr().out


def test_the_commands_of_the_readme_are_those_of_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Every flag shown exists, and every flag of the servers is shown."""
    servers = [*parser()._actions, *serving.parser()._actions]
    known = {flag for action in servers for flag in action.option_strings if flag.startswith("--")}
    lines = [helped("npl-load", capsys, *words) for words in ([], ["c"], ["tailored"], ["map"], ["test"])]
    lines += [helped("npl-worklog", capsys, *words) for words in ([], ["init"], ["log"], ["read"])]
    lines += [helped("npl-mcp", capsys, *words) for words in (["library", "export"], ["token", "add"])]
    lines.append(helped("npl-mcp-server", capsys, "config"))
    shown = flags(README.replace(demonstrated(), "") + GUIDE + SETTINGS)
    assert shown <= known.union(*map(flags, lines))
    said = {"--help", "--version", "--show-token"}
    assert known - said <= shown


def test_the_readme_installs_and_connects_the_program_of_the_clients_page() -> None:
    """The line for Claude Code is that of CLIENTS.md; its program lies where the line above installs it."""
    install, connect = (
        next(line for line in README.splitlines() if line.startswith(words))
        for words in ("python3 -m venv ", "claude mcp add ")
    )
    assert f"```\n{connect}\n```" in connecting.page()
    program = Path(shlex.split(connect)[5])
    assert shlex.split(install)[3] == str(program.parents[1])
    assert shlex.split(connect)[6:] == ["--root", "$PWD", *READING, "--format", "markdown"]


def test_the_documents_name_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Every word behind a program's name, in code, is a command that its help lists."""
    code = "\n".join(
        text
        for name in ("README", "GUIDE", "SETTINGS", "COMMANDS", "OPERATIONS", "MIGRATION", "CONTRIBUTING")
        for text in re.findall(
            r"`[^`\n]+`|^(?:\$ )?npl-.*$", (ROOT / f"{name}.md").read_text("utf-8"), re.MULTILINE
        )
    )
    for name in PROGRAMS:
        listed = helped(name, capsys)
        named = set(re.findall(rf"(?<![\w/-]){name} ([a-z][a-z-]*)\b", code))
        assert named
        unknown = {word for word in named if not re.search(rf"[\s{{,|]{word}[\s}},|]", listed)}
        assert not unknown, name


def test_the_demonstration_shows_what_the_readme_shows() -> None:
    """``make run`` asks a spawned server, and prints README's text within the budget."""
    lines: list[str] = []
    anyio.run(demo.run, lines.append)
    screen = demonstrated()
    assert "\n".join(lines).strip() == screen.strip()
    tokens = int(re.findall(r"^([\d,]+) tokens", screen, re.MULTILINE)[-1].replace(",", ""))
    assert 0 < tokens <= demo.REQUEST["token_budget"]


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_the_documents_lead_somewhere() -> None:
    """Relative links of the documents and of the bundled prompts name files that exist."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *corpus_folder().rglob("*.md")]
    for path in documents:
        text = re.sub(r"(`{3,})[^`]*?\n.*?\n\1", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
            named = path.parent / target if target else path
            assert not anchor or anchor in anchors(named), f"{path.name}: {target}#{anchor}"


def test_the_version_is_the_same_everywhere() -> None:
    """Package, project file and changelog agree; the changelog's newest release has the day."""
    assert f'\nversion = "{__version__}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    sections = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("\n## Unreleased\n", "\n")
    newest = sections.split("\n## ")[1].splitlines()[0]
    assert re.fullmatch(rf"{re.escape(__version__)} - 20\d\d-[01]\d-[0-3]\d", newest)


def test_the_corpus_is_large_enough_to_learn_from() -> None:
    """At least forty files, each with a title and something to say."""
    texts = {path: path.read_text(encoding="utf-8") for path in corpus_folder().rglob("*.md")}
    assert len(texts) >= 40
    for path, text in texts.items():
        assert re.search(r"^# \S", text, re.MULTILINE), path
        assert len(text.split()) >= 120, path


def test_no_document_names_a_machine() -> None:
    """The project has no path of a developer's machine and no address of a package index."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for name in listed.splitlines():
        text = (ROOT / name).read_bytes().decode("utf-8", "replace") if (ROOT / name).is_file() else ""
        assert not re.search(r"(?<![\w.])/(?:work|root|farm)/|--(?:extra-)?index-url|pythonhosted", text) or (
            name == "tests/test_docs.py"
        ), name
