"""Fixtures and helpers of the server's tests."""

import gc
import json
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastmcp import Client
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server
from npl_mcp.server.startup import lasting
from tests import engines, warm
from tests.folders import fill
from tests.programs import PROGRAMS, Ended, Run

THOROUGH = "NPL_THOROUGH" in os.environ
"""Whether all cases and 300 examples of a property are tried, as in CI, instead of a part and 10."""

STEP = 4
"""`make test` tries each fourth case of a test with more than two."""

hypothesis_settings.register_profile(
    "npl",
    max_examples=300 if THOROUGH else 10,
    database=None,  # nothing is kept
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # no verdict depends on the machine
)
hypothesis_settings.load_profile("npl")

T = TypeVar("T")


def case_text(name: str) -> str:
    """Return the text of a file below ``tests/cases``."""
    return (Path(__file__).parent / "cases" / name).read_text(encoding="utf-8")


def cases(name: str) -> Any:
    """Return the cases of a file below ``tests/cases``."""
    return json.loads(case_text(f"{name}.json"))


GUIDE = case_text("texts/guide.md")


def every(step: int, cases: Iterable[T], turn: int = 0) -> list[T]:
    """Return all cases where the run is thorough, and else one of ``step``.

    :param turn: differs where several tests share the cases: among them they try all.
    """
    return list(cases) if THOROUGH else list(cases)[turn % step :: step]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Import all tests without garbage collection; later ones are few and pass over what tests consist of."""
    gc.set_threshold(10_000, 20, 20)
    with lasting():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of what another engine has alone; mark most cases of long tables as thorough."""
    marks = [(item, item.get_closest_marker("engine")) for item in items]
    other = {item for item, mark in marks if mark is not None and mark.args[0] != engines.ENGINE}
    config.hook.pytest_deselected(items=list(other))
    items[:] = [item for item in items if item not in other]
    if not THOROUGH:
        tests = defaultdict(list)
        for item in items:
            tests[item.nodeid.partition("[")[0]].append(item)
        for table in tests.values():
            for number, item in enumerate(table):
                if len(table) > 2 and number % STEP:
                    item.add_marker(pytest.mark.thorough)


@pytest.fixture(scope="session", autouse=True)
def _warm_programs() -> Iterator[None]:
    with warm.programs():
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of tests that are coroutine functions."""
    return "asyncio"


@pytest.fixture(autouse=True)
def used_databases() -> Iterator[None]:
    """Databases of a server are removed after the test that made them."""
    before = set(engines.made)
    yield
    engines.drop(engines.made - before)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No setting of the machine reaches a test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-configuration"))
    for name in list(os.environ):
        if name.startswith(("NPL_", "TIKTOKEN", "DATA_GYM")):
            monkeypatch.delenv(name)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A root with a few documents."""
    files = {
        "guide.md": GUIDE,
        "plants/roses.md": "# Roses\n\n## Pruning\n\nCut above an outward bud.\n",
        "plants/beans.md": "# Beans\n\n## Sowing\n\nSow beans in May.\n",
    }
    return fill(tmp_path / "docs", files)


@pytest.fixture
def settings(tmp_path: Path, docs: Path) -> Settings:
    """Settings that reach only the test's own folders and the bundled corpus; only calls have budgets."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    return Settings(
        cwd=work,
        home=home,
        system=tmp_path / "system",
        roots=(docs,),
        own_cwd=True,
        data_dir=tmp_path / "data",
        database_url=engines.address(tmp_path / "data"),
        vocabulary_folders=(),
        token_budget=0,
        warm_up=False,
    )


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a program of npl by name in this process: a start takes longer than most commands."""

    def run(name: str, *words: str) -> Ended:
        capsys.readouterr()
        code = PROGRAMS[name](list(words))
        return Ended(code, *capsys.readouterr())

    return run


class Call:
    """Calls of the tools of one server in memory, which is made for the first call.

    :param settings: of the server.
    :param open_until_the_end: ends the server.
    """

    def __init__(self, settings: Settings, open_until_the_end: ExitStack) -> None:
        self._settings, self._opened = settings, open_until_the_end

    @cached_property
    def _client(self) -> tuple[BlockingPortal, Client[Any]]:
        portal = self._opened.enter_context(start_blocking_portal())
        client = portal.wrap_async_context_manager(Client(create_server(self._settings)))
        return portal, self._opened.enter_context(client)

    def result(self, tool: str, /, **arguments: Any) -> Any:
        """Return the answer as the protocol has it."""
        portal, client = self._client
        return portal.call(partial(client.call_tool, tool, arguments, raise_on_error=False))

    def __call__(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Return the envelope of the answer."""
        return envelope(self.result(tool, **arguments))

    def do(self, tool: str, /, **arguments: Any) -> Any:
        """Return the data of an answer; the call must succeed."""
        answer = self(tool, **arguments)
        assert answer["success"], (tool, arguments, answer)
        return answer["data"]

    def refused(self, tool: str, /, **arguments: Any) -> tuple[str, str]:
        """Return the code and the text of an error; the call must be refused."""
        answer = self(tool, **arguments)
        assert not answer["success"], (tool, arguments, answer)
        return answer["error_code"], answer["error"]

    def text(self, tool: str, /, **arguments: Any) -> str:
        """Return the text of an answer as it is sent; the call must succeed."""
        result = self.result(tool, **arguments)
        assert not result.is_error, (tool, arguments, result)
        return "".join(block.text for block in result.content if block.type == "text")


Connect = Callable[[Settings], Call]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect to servers in memory, each made for its first call, until the test ends."""
    with ExitStack() as open_until_the_end:
        yield partial(Call, open_until_the_end=open_until_the_end)


@pytest.fixture
def call(settings: Settings, connect: Connect) -> Call:
    """Call tools of one server and return the envelopes."""
    return connect(settings)


def calls(settings: Settings, requests: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Call several tools of one server, one after the other, and give their envelopes."""

    async def ask(client: Client[Any]) -> list[dict[str, Any]]:
        return [envelope(await client.call_tool(tool, args, raise_on_error=False)) for tool, args in requests]

    return with_client(settings, ask)


def client_of(settings: Settings, **changes: Any) -> Client[Any]:
    """Return a client of a new server."""
    return Client(create_server(replace(settings, **changes)))


def with_client(settings: Settings, work: Callable[[Client[Any]], Awaitable[Any]], **changes: Any) -> Any:
    """Run something with a client of a new server."""

    async def run() -> Any:
        async with client_of(settings, **changes) as client:
            return await work(client)

    return anyio.run(run)


def listed(settings: Settings, **changes: Any) -> list[dict[str, Any]]:
    """Return the tools that a new server lists, as they are sent."""

    async def ask(client: Client[Any]) -> list[dict[str, Any]]:
        tools = await client.list_tools()
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]

    tools: list[dict[str, Any]] = with_client(settings, ask, **changes)
    return tools


def by_name(settings: Settings, **changes: Any) -> dict[str, dict[str, Any]]:
    """Return the tools that a new server lists by their names."""
    return {tool["name"]: tool for tool in listed(settings, **changes)}


def envelope(result: Any) -> dict[str, Any]:
    """Read the text block of an answer, which pictures may follow; the error mark and the envelope agree."""
    block, *pictures = result.content
    assert all(picture.type == "image" for picture in pictures)
    body: dict[str, Any] = json.loads(block.text)
    assert body["success"] is not result.is_error
    return body
