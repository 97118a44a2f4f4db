"""Large sets are indexed by several processes, with visible progress, without delaying others."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client

from npl_index.index.entries import BATCH_FILES
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import Caller
from npl_mcp.app.document_sets import BACKGROUND_BYTES
from npl_mcp.app.waiting import OwnThread
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server
from tests.conftest import cases, envelope
from tests.npl_mcp.app import many
from tests.tools import npl_load_tailored, npl_section_index
from tests.until import until

FILES = 80
QUESTION = "care of the valve"


@pytest.fixture
def large(settings: Settings, tmp_path: Path) -> Settings:
    return many.large(settings, tmp_path / "large", FILES)


def told(app: App) -> object:
    return npl_load_tailored(app, context=QUESTION, file=".", explain=True, token_budget=2_000).value


def in_one_process(settings: Settings) -> object:
    """Return the answers of a server that cannot start workers."""
    with closing(App(replace(settings, cache_mode="memory"))) as app, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        return told(app)


def children(process: int) -> list[int]:
    """Return the workers of a process."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(words[1]) == process and words[0] != "Z" and b"index.building" in command:
            processes.append(int(folder.name))
    return processes


@pytest.mark.thorough
def test_several_processes_say_what_one_says(settings: Settings, tmp_path: Path) -> None:
    """Answers do not depend on who indexed which file; no process stays; a restart indexes nothing."""
    root = tmp_path / "small"
    files = BATCH_FILES[0] * 5
    for number in range(files):
        page = root / f"part{number % 7}" / f"page{number:04}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# Page {number}\n\nOil the valve of number{number % 97}.\n" + "A lid.\n" * 1000)
        os.utime(page, (1_000_000_000, 1_000_000_000))
    settings = replace(settings, roots=(root,))
    with closing(App(settings)) as app:
        answer = told(app)
        assert app.state.sets.built == files
        assert children(os.getpid()) == []
    assert answer == in_one_process(settings)
    with closing(App(settings)) as again:
        assert told(again) == answer
        assert again.state.sets.built == 0


@pytest.mark.thorough
def test_tokens_of_a_large_set_are_counted_after_its_first_answer(large: Settings) -> None:
    """Workers index without counting; the counts that follow are those that an answer makes itself."""
    with closing(App(large)) as app:
        first = npl_section_index(app, file=".")
        documents = app.state.sets.database
        select = "SELECT count(*) FROM document WHERE length(tokens) > 4"  # longer than a checksum
        assert documents.rows(select) == [(0,)]
        until(lambda: documents.rows(select) == [(FILES,)])
    with closing(App(large)) as again:
        assert npl_section_index(again, file=".") == first


def first_children(process: int) -> list[int]:
    """Wait for workers of a process."""
    return until(lambda: children(process))


@pytest.mark.thorough
async def test_a_worker_that_dies_breaks_no_call(large: Settings) -> None:
    """The parent process indexes its files."""

    def shoot() -> None:
        for worker in first_children(os.getpid()):
            os.kill(worker, signal.SIGKILL)

    app = App(large)

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, shoot)
        answer = await anyio.to_thread.run_sync(told, app)
    app.close()
    assert answer == in_one_process(large)


SERVE = """
import sys
from npl_mcp.__main__ import main
if __name__ != "__main__":
    raise SystemExit("a worker imported the main module")
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda sign: sign.name
)
def test_no_worker_outlives_its_server(large: Settings, tmp_path: Path, number: signal.Signals) -> None:
    """The workers end with their server, however it ends in the middle of an index."""
    script = tmp_path / "serve.py"
    script.write_text(SERVE, encoding="utf-8")
    for path in large.roots[0].iterdir():  # enough to do
        path.write_text(path.read_text(encoding="utf-8") * 8, encoding="utf-8")
    command = [sys.executable, str(script), "--data-dir", str(large.data_dir), "index", str(large.roots[0])]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    workers = first_children(process.pid)
    process.send_signal(number)
    process.wait(60)
    until(lambda: not any(map(is_alive, workers)))


def is_alive(process: int) -> bool:
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


ASKED = {"context": QUESTION, "file": ".", "token_budget": 600}


async def test_clients_see_how_far_it_is(large: Settings) -> None:
    """A caller with a progress token sees all files done; others are answered meanwhile."""
    seen: list[list[tuple[float, float | None]]] = []
    ended: list[str] = []

    async with Client(create_server(large)) as client:
        answers: list[dict[str, Any]] = []

        async def ask(**arguments: Any) -> None:
            own: list[tuple[float, float | None]] = []
            seen.append(own)

            async def tell(progress: float, total: float | None, message: str | None) -> None:
                own.append((progress, total))

            result = await client.call_tool("npl_load_tailored", arguments, progress_handler=tell)
            answers.append(envelope(result)["data"])
            ended.append(arguments["file"])

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(lambda: ask(**ASKED))
            await anyio.to_thread.run_sync(first_children, os.getpid())
            await ask(**{**ASKED, "file": "npl.md"})
    assert ended == ["npl.md", ".", ".", ".", "."]
    assert answers[1:] == answers[1:2] * 4
    waited = [own for own in seen if own]
    assert waited
    for own in waited:  # the numbers grow, and the last one says that all files are done
        assert own == sorted(set(own))
        assert own[-1] == (FILES, FILES)


@pytest.fixture
def hurried(large: Settings) -> Settings:
    """A server that waits a tenth of a second, and a set with a file that takes longer than all others."""
    last = large.roots[0] / "the-last.md"
    last.write_text("".join(f"## Part {part}\n\n" + "words of a valve\n" * 1000 for part in range(120)))
    os.utime(last, (1_000_000_000, 1_000_000_000))
    return replace(large, patience=0.1, time_limit=600)  # a busy machine may need more than the usual limit


SOME = rf"\d+ of {FILES + 1} files are indexed; ask again for the others"


@pytest.mark.thorough
def test_a_call_without_patience_gets_what_is_ready(hurried: Settings) -> None:
    """It names what is missing; later calls get more, and the last one gets all, like a patient call."""
    forms = ("json", "markdown")

    async def run(settings: Settings) -> dict[str, list[str]]:
        texts: dict[str, list[str]] = {form: [] for form in forms}
        async with Client(create_server(settings)) as client:

            async def ask(form: str) -> None:
                while not texts[form] or "files are indexed" in texts[form][-1]:
                    result = await client.call_tool("npl_load_tailored", {**ASKED, "format": form})
                    texts[form].append(result.content[0].text)

            async with anyio.create_task_group() as group:
                for form in forms:
                    group.start_soon(ask, form)
        return texts

    texts = anyio.run(run, hurried)
    assert '"partial":true,"missing_files":' in texts["json"][0]
    first_lines = {
        "json": rf'{{"success":true,"data":{{"indexed":"{SOME}",',
        "markdown": f"<!-- {SOME} -->\n",
    }
    for form, line in first_lines.items():
        assert re.match(line, texts[form][0])
    for first, *_ in texts.values():
        assert QUESTION.split()[-1] in first
    patient = replace(hurried, patience=None, cache_mode="memory")
    assert anyio.run(run, patient) == {form: texts[form][-1:] for form in forms}


async def test_what_a_part_lacks_is_not_said_to_be_nowhere(hurried: Settings) -> None:
    """The error for a selector, and an outline, say that files are still to come."""
    last = hurried.roots[0] / "the-last.md"  # as long as all calls together, even on a busy machine
    last.write_text(last.read_text() * 4)
    calls: list[tuple[str, dict[str, object]]] = cases("npl_mcp/app/indexing")["absent_words"]
    texts = [""] * len(calls)

    async with Client(create_server(hurried)) as client:

        async def ask(number: int) -> None:
            result = await client.call_tool(*calls[number], raise_on_error=False)
            texts[number] = result.content[0].text

        async with anyio.create_task_group() as group:
            for number in range(len(calls)):
                group.start_soon(ask, number)
    assert [text[:300] for text in texts if not re.search(SOME, text)] == []
    for text in texts[2:4]:
        assert re.match(SOME, text)
    assert not any(re.search("absent|no section|a line of words", text) for text in texts)
    few = json.loads(texts[-1])["data"]
    assert (few["content"], bool(few["request_more"])) == ("", True)  # the word is in no heading


@pytest.mark.thorough
async def test_a_server_indexes_its_roots_before_the_first_question(large: Settings) -> None:
    """The first answer is complete and finds nothing to index; a closed server leaves no worker."""
    app = App(replace(large, warm_up=True))
    async with Client(create_server(app.settings, ToolCalls(app))) as client:
        await anyio.to_thread.run_sync(until, lambda: app.state.sets.built == FILES)
        answer = envelope(await client.call_tool("npl_load_tailored", ASKED))["data"]
    assert ("indexed" in answer, app.state.sets.built) == (False, FILES)
    (large.roots[0] / "new.md").write_text("# New\n\n" + "words of a valve\n" * (BACKGROUND_BYTES // 8))
    async with Client(create_server(replace(large, warm_up=True))):
        await anyio.to_thread.run_sync(first_children, os.getpid())
    until(lambda: not children(os.getpid()))


@pytest.mark.parametrize(
    ("changes", "begins"),
    [({}, True), ({"cache_mode": "memory"}, False), ({"domains": ("chat",)}, False), ({"roots": ()}, False)],
)
def test_a_server_indexes_ahead_what_questions_use(
    large: Settings, changes: dict[str, Any], begins: bool
) -> None:
    before = threading.enumerate()
    with closing(App(replace(large, **changes))) as app:
        app.index_ahead()
        assert ("npl-index" in {one.name for one in threading.enumerate() if one not in before}) == begins


def test_a_model_waits_for_a_time_and_a_program_to_the_end(settings: Settings) -> None:
    app = App(settings)
    assert Caller(reads="json").context(app, OwnThread()).until is None
    assert Caller().context(app, OwnThread()).until is not None
