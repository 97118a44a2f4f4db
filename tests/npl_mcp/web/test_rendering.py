"""Pages are written outside the event loop, so that a long one delays no other."""

import asyncio
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

import pytest
from starlette.applications import Starlette
from starlette.types import Message

from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER_KEY, Caller
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config.settings import Settings
from npl_mcp.web.routes import site_of
from npl_mcp.web.routing import Data, Site, WebPage
from npl_mcp.web.visits import Visit

ENOUGH = 60
"""Seconds after which an endless wait fails."""


async def opened(site: Site, address: str) -> int:
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "path": path,
        "query_string": query.encode(),
        "headers": [],
        CALLER_KEY: Caller(),
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await Starlette(routes=list(site.routes()))(scope, receive, send)
    return int(sent[0]["status"])


class Long(Mapping[str, int]):
    """A value that takes as long to write as another page takes to answer."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[str]:
        self.began.set()
        assert self.go_on.wait(ENOUGH)
        return iter(())

    def __len__(self) -> int:
        return 0

    def __getitem__(self, name: str) -> int:
        raise KeyError(name)

    def __str__(self) -> str:
        return ", ".join(self)


@pytest.mark.parametrize("path", ["/long", "/long.json"])
async def test_a_page_is_answered_while_another_is_written(tmp_path: Path, path: str) -> None:
    long = Long()

    async def long_one(_: Visit) -> Data:
        return {"message": long, "status": 200}

    async def short_one(_: Visit) -> Data:
        return {"message": "short", "status": 200}

    pages = [WebPage("/long", long_one, "error.html"), WebPage("/short", short_one, "error.html")]
    settings = Settings(cwd=tmp_path, home=tmp_path)
    site = Site(ToolCalls(App(settings)), pages)

    first = asyncio.create_task(opened(site, path))
    assert await asyncio.to_thread(long.began.wait, ENOUGH)
    assert await opened(site, "/short") == 200
    assert not first.done()
    long.go_on.set()
    assert await first == 200


WRITING = ("jinja2", "web/markdown", "web/tables", "artifact/comparing", "review/annotation", "markdown_it")
"""Modules whose functions take long with long texts."""


async def test_nothing_of_a_page_is_written_on_the_event_loop(tmp_path: Path) -> None:
    """The functions for templates, Markdown and pictures run, and never in its thread."""
    (tmp_path / "guide.md").write_text("# Guide\n\n## Part\n\n*Text.*\n", encoding="utf-8")
    settings = Settings(cwd=tmp_path, home=tmp_path, roots=(tmp_path,), data_dir=tmp_path / "data")
    here: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            here.add(Path(frame.f_code.co_filename).as_posix().removesuffix(".py"))

    app = App(settings)
    try:
        tools = ToolCalls(app)
        site = site_of(tools)
        entry = {"agent_id": "ann", "action": "found", "summary": "a rope"}
        comment = {"location": "line:1", "comment": "c"}
        file = {"name": "n", "artifact_type": "t", "filename": "a.md", "content": "# A\n", "session_id": "s"}
        for tool, given in (
            ("session_create", {"session_id": "s"}),
            ("worklog_init", {"session_id": "s"}),
            ("worklog_log", {"session_id": "s", **entry}),
            ("artifact_create", file),
            ("review_comment_own", {"artifact_id": 1, "revision": 0, "reviewer_persona": "ann", **comment}),
        ):
            outcome = await tools.invoke(tool, Caller(), given)
            assert outcome.code is None, outcome
        for path in (
            "/documents/guide.md",
            "/worklogs/s",
            "/sessions/s",
            "/artifacts/1?view=rendered",
            "/usage",
        ):
            sys.setprofile(note)
            try:
                assert await opened(site, path) == 200, path
            finally:
                sys.setprofile(None)
    finally:
        app.close()
    assert any(name.endswith("web/routing") for name in here)
    assert [name for name in here if any(f"{part}/" in f"{name}/" for part in WRITING)] == []
