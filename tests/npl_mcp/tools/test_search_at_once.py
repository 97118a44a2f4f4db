"""Searches delay no other call, read in batches, end with their callers, and name what they left out."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from fastmcp import Client

from npl_index.index.entries import BATCH_FILES
from npl_mcp.app import sources
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import Caller
from npl_mcp.app.document_sets import BACKGROUND_BYTES
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config.settings import Settings
from npl_mcp.http.app import unless_gone
from npl_mcp.server.server import create_server
from npl_mcp.stores.base.database import Transaction
from npl_mcp.stores.searching import KINDS, RowKind
from npl_mcp.tools.artifact import artifact_add_revision, artifact_archive, artifact_create
from npl_mcp.tools.chat import chat_create_room, chat_send_message
from tests import engines
from tests.conftest import Call, cases, envelope
from tests.tools import search
from tests.until import soon

SECONDS = 60
MANY = 300
FEW = 32


class Gate:
    """A gate that holds all callers until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Semaphore(0)
        self.open = threading.Event()

    def holding(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*given: Any, **named: Any) -> Any:
            self.reached.release()
            assert self.open.wait(SECONDS)
            return work(*given, **named)

        return wait

    async def waits_for(self, count: int) -> None:
        """Wait until the given number of callers is held."""
        for _ in range(count):
            assert await anyio.to_thread.run_sync(self.reached.acquire, True, SECONDS)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


def artifact(app: App, name: str, text: str) -> int:
    file = {"filename": f"{name}.md", "content": text}
    return artifact_create(app, name=name, artifact_type="document", **file).artifact_id


def opened(settings: Settings) -> closing[App]:
    return closing(App(settings))


@pytest.fixture
def stored(settings: Settings) -> Settings:
    """A server with an artifact of each kind, a room and a message."""
    with opened(settings) as app:
        artifact(app, "plan", "# Plan\n\nOil the capstan.\n")
        chat_create_room(app, "deck", ["ann"])
        chat_send_message(app, 1, "ann", "Where is the capstan?")
    return settings


OTHERS: list[tuple[str, dict[str, Any]]] = cases("npl_mcp/tools/search_at_once")["others"]


def at_messages(gate: Gate, looked: list[str] | None = None) -> Callable[..., Any]:
    """Return the look-up of rows, which waits at messages; ``looked`` gets the indexes of the others."""
    matching = RowKind.matching
    matching_held = gate.holding(matching)

    def look(kind: RowKind, tx: Transaction, *given: Any) -> Any:
        if kind is KINDS["message"]:
            return matching_held(kind, tx, *given)
        if looked is not None:
            looked.append(kind.index)
        return matching(kind, tx, *given)

    return look


async def test_searches_hold_up_no_other_call(
    stored: Settings, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as may run at one time wait while they look through messages."""
    monkeypatch.setattr(RowKind, "matching", at_messages(gate))

    answers: list[dict[str, Any]] = []
    with anyio.fail_after(SECONDS):
        async with Client(create_server(stored)) as client, anyio.create_task_group() as group:

            async def ask() -> None:
                answers.append(envelope(await client.call_tool("search", {"query": "capstan"})))

            for _ in range(4):
                group.start_soon(ask)
            await gate.waits_for(2)
            for tool, arguments in OTHERS:
                assert envelope(await client.call_tool(tool, arguments))["success"], tool
            assert not answers
            gate.open.set()
    assert [answer["data"]["counts"] for answer in answers] == [{"message": 1, "artifact": 1}] * 4


@pytest.mark.parametrize("way", ["mcp", "http"])
async def test_a_search_ends_with_its_caller(
    way: str, stored: Settings, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads no more, and its place is free."""
    looked: list[str] = []
    monkeypatch.setattr(RowKind, "matching", at_messages(gate, looked))
    asked = {"query": "capstan", "kinds": "message,worklog"}

    left: list[bool] = []

    calls, both_are_held = ToolCalls(App(stored)), anyio.Event()
    server = create_server(stored, calls)

    async def gone() -> Any:
        await both_are_held.wait()
        left.append(True)  # the call is cancelled before any other task goes on
        return {"type": "http.disconnect"}

    with anyio.fail_after(SECONDS):
        async with Client(server) as client, anyio.create_task_group() as group:

            async def ask() -> None:
                if way == "http":
                    await unless_gone(calls.invoke("search", Caller(), asked), gone)
                else:
                    with anyio.CancelScope() as scope:
                        scopes.append(scope)
                        await client.call_tool("search", asked)

            scopes: list[anyio.CancelScope] = []
            for _ in range(2):
                group.start_soon(ask)
            await gate.waits_for(2)
            both_are_held.set()
            if way == "mcp":
                for scope in scopes:
                    scope.cancel()
                # A server that has answered what was sent after it has read the cancellation.
                await client.call_tool(*OTHERS[0])
            else:
                await soon(lambda: len(left) == 2)
            gate.open.set()
            assert envelope(await client.call_tool("search", asked))["data"]["total"] == 1
    assert looked == ["worklog_entry_words"]


def large(settings: Settings) -> int:
    """Store enough artifacts that they are indexed in the background; return how many."""
    count = 12
    text = "a line of words about pumps and sieves\n" * (BACKGROUND_BYTES // count // 39 + 1)
    with opened(settings) as app:
        for number in range(count):
            artifact(
                app, f"page{number}", f"# Page {number}\n\n## Care\n\nOil the capstan.\n\n## More\n\n{text}"
            )
    return count


@pytest.mark.thorough
async def test_artifacts_are_read_in_the_background(
    settings: Settings, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search answers before that and says so; later ones find all of them."""
    count = large(settings)
    read = sources.ArtifactDocuments.read
    monkeypatch.setattr(sources.ArtifactDocuments, "read", gate.holding(read))

    with anyio.fail_after(SECONDS):
        async with Client(create_server(settings)) as client:
            answers: list[dict[str, Any]] = []
            for _ in range(2):
                answers.append(envelope(await client.call_tool("search", {"query": "capstan"}))["data"])
            await gate.waits_for(1)
            gate.open.set()
            while "missing_files" in answers[-1]:
                answers.append(envelope(await client.call_tool("search", {"query": "capstan"}))["data"])
    first, second, *_, last = answers
    assert first["missing_files"] == second["missing_files"] == count
    assert "artifact" not in first["counts"]
    assert last["counts"]["artifact"] == count


@contextmanager
def statements(app: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the statements of the stores."""
    noted: list[str] = []
    engine = app.stores.database.engine
    statement = engine.statement

    def noting(sql: str, values: Any) -> Any:
        noted.append(sql)
        return statement(sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "statement", noting)
        yield noted


def test_many_artifacts_take_few_statements(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later search sends as many as for one artifact, and lists none again."""
    with opened(settings) as app:
        artifact(app, "first", "# First\n\nOil the capstan.\n")
        search(app, query="capstan", limit=1)
        with statements(app, monkeypatch) as of_one:
            search(app, query="capstan", limit=1)
        for number in range(MANY):
            artifact(app, f"page{number}", f"# Page {number}\n\nOil the capstan of number{number}.\n")
        assert search(app, query="capstan", limit=1).missing_files is None
        with statements(app, monkeypatch) as later:
            search(app, query="capstan", limit=1)
        assert len(later) == len(of_one)
        assert (built := app.state.sets.built) > BATCH_FILES[0]
        artifact_add_revision(
            app, artifact_id=1, filename="first.md", content="# First\n\nOil the windlass.\n"
        )
        assert search(app, query="windlass").counts == {"artifact": 1}
        assert app.state.sets.built == built + 1


def test_what_changes_is_seen_at_once(settings: Settings) -> None:
    """Revisions, archiving and its end are seen, also by another process."""
    with opened(settings) as app, opened(settings) as other:
        for name in ("one", "two"):
            artifact(app, name, f"# {name}\n\nOil the capstan.\n")

        def names() -> list[str]:
            return [hit.title for hit in search(app, query="capstan", kinds="artifact").items]

        assert names() == ["one", "two"]
        artifact_archive(other, artifact_id=1)
        assert names() == ["two"]
        artifact_archive(other, artifact_id=2)
        artifact_archive(other, artifact_id=1, archived=False)
        assert names() == ["one"]
        artifact_add_revision(other, artifact_id=1, filename="a.txt", content="The capstan.\n")
        assert names() == []
        artifact_add_revision(other, artifact_id=1, filename="a.md", content="# Back\n\nThe capstan.\n")
        artifact_archive(other, artifact_id=2, archived=False)
        assert sorted(names()) == ["Back", "two"]


def test_a_damaged_artifact_hides_no_other(stored: Settings, call: Call) -> None:
    with opened(stored) as app:
        artifact(app, "damaged", "# Damaged\n\nThe capstan.\n")
    engines.execute(stored.data_folder, "UPDATE revision SET digest = '00' WHERE artifact_id = 2")
    data = call("search", query="capstan", kinds="artifact")["data"]
    assert [hit["title"] for hit in data["items"]] == ["Plan"]
    (problem,) = data["not_searched"]
    assert problem.startswith("1 of artifact:*, such as artifact:2@0")


def test_an_artifact_that_is_damaged_later_hides_no_other(stored: Settings) -> None:
    """Its index still gives the hit, whose text says what is wrong."""
    with opened(stored) as app:
        for number in range(FEW):
            artifact(app, f"page{number}", f"# Page {number}\n\nThe capstan.\n")
        assert search(app, query="capstan", kinds="artifact").total == FEW + 1
    engines.execute(stored.data_folder, f"UPDATE content SET data = CAST('x' AS {engines.BLOB})")
    with opened(stored) as app:
        assert search(app, query="capstan", kinds="artifact").total == FEW + 1
        hits = search(app, query="plan", kinds="artifact")
    assert hits.items[0].text.endswith("is damaged")


@pytest.mark.thorough
def test_no_row_is_too_old(stored: Settings, call: Call) -> None:
    with opened(stored) as app, app.stores.database.write() as tx:
        for first in range(0, 100_001, 10_000):  # a database of a busy machine answers each in time
            tx.run(
                """
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
                INSERT INTO event (room_id, position, event_type, persona, timestamp, data)
                SELECT 1, 100 + :first + i, 'message', 'ann', '2099-01-01T00:00:00.000000Z',
                    '{"message": "m"}' FROM n""",
                first=first,
            )
    data = call("search", query="capstan", kinds="message")["data"]
    assert [hit["text"] for hit in data["items"]] == ["Where is the capstan?"]
    assert "not_searched" not in data


def test_what_cannot_be_looked_through_is_named(stored: Settings) -> None:
    """A set with more artifacts than the limit is named as a whole."""
    with opened(replace(stored, limits=replace(stored.limits, max_files=1))) as app:
        artifact(app, "more", "# More\n")
        hits = search(app, query="capstan", kinds="artifact")
    assert hits.not_searched == ("artifact:*: there are more than 1 artifacts",)
