"""Every benchmark runs on the smallest input. Those that start servers take seconds, and run in CI."""

import json
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from fastmcp import Client, FastMCP

from benchmarks.agent_day.peers import PEERS, PeerSystem
from benchmarks.agent_day.tasks import Documents, Phrasing
from benchmarks.forms import FORMS
from tests.folders import fill

ROOT = Path(__file__).resolve().parent.parent
CASES = json.loads((ROOT / "tests" / "cases" / "benchmarks.json").read_text("utf-8"))
FILES = {
    name: content if isinstance(content, str) else json.dumps(content)
    for name, content in CASES["files"].items()
}
SLOW = pytest.mark.thorough
SMALLEST: Mapping[str, tuple[str, str]] = CASES["smallest"]
FAST = ("agent_day", "bench_parse", "published", "relevance", "scale_corpus")
# They write files of the repository, or need vocabularies that are not shipped.
HELP_ALONE = ("bench_tokens", "tool_lists", "train_tokens")


def run(name: str, *arguments: str) -> int:
    module = import_module(f"benchmarks.{name}")
    if not hasattr(module, "main"):
        module = import_module(f"benchmarks.{name}.__main__")
    code: int = module.main(list(arguments))
    return code


def test_every_entry_point_is_tried() -> None:
    folder = ROOT / "benchmarks"
    entries = {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__main__")
        for path in folder.rglob("*.py")
        if '__name__ == "__main__"' in path.read_text("utf-8")
    }
    assert entries == {*SMALLEST, *HELP_ALONE}


@pytest.mark.parametrize("name", [*SMALLEST, *HELP_ALONE])
def test_an_entry_point_says_what_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        run(name, "--help")
    assert f"benchmarks.{name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else SLOW) for name in SMALLEST]
)
def test_an_entry_point_runs(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments, said = SMALLEST[name]
    fill(tmp_path, FILES)
    assert run(name, *arguments.format(here=tmp_path, root=ROOT).split()) == 0
    lines = capfd.readouterr().out.splitlines()
    assert " ".join(said.split()) in " ".join(" ".join(lines).split())
    if name == "forms":
        assert [line.split("  ")[0] for line in lines[:-1]] == list(FORMS)
        assert all("1 of   1   invented   0 of 1" in line for line in lines[:-1])


def test_the_steps_of_a_request_run() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--benchmark-disable", "benchmarks/bench_steps.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "10 passed" in done.stdout) == (0, True), done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("contextual {here}", "npl, `search` | 1.000 | 1.000 | 1.000 | 1.000 | this run"),
        ("xquad {here} --languages zh", "npl, `search` | 1.000"),
    ],
)
def test_a_published_set_is_asked(
    arguments: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path, FILES)
    assert run("published", *arguments.format(here=tmp_path, root=ROOT).split()) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("name", PEERS)
async def test_the_answer_of_a_peer_is_read(name: str, tmp_path: Path) -> None:
    """It names the section, or the page that the peer reads, and its text is found without marks."""
    fill(tmp_path, FILES)
    server = FastMCP("peer")
    server.tool(
        lambda query: json.dumps(CASES["answers"][name] if query == "delay" else []), name=PEERS[name].search
    )
    documents = Documents.read(tmp_path / "set" / "corpus")
    async with Client(server) as client:
        system = PeerSystem(client, PEERS[name], documents)
        answer, absent = await system.ask(Phrasing("delay")), await system.ask(Phrasing("zebra"))
    assert documents.labelled("lamps.md > lamp_delay") <= answer.hits[0].places
    assert "\nTen." in (answer.plain or "")
    assert (bool(system.passages(answer)), system.passages(absent)) == (True, "")
