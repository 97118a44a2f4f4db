"""A server whose pages all show something, filled by calls of tools as agents make them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser import fill_stores
from tests.browser.fill_ask import fill_ask
from tests.browser.fill_changes import fill_calls, fill_changes
from tests.browser.fill_documents import fill_documents
from tests.browser.fill_search import fill_search
from tests.npl_mcp.http.http_server import Running, call, serving


@dataclass
class Site:
    """The server.

    :param docs: the folder it serves.
    """

    server: Running
    docs: Path

    @property
    def url(self) -> str:
        return self.server.state.url or ""

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the data of a tool's answer."""
        answer = call(self.server, tool, arguments)
        assert answer.status == 200, answer.data
        return answer.data["data"]


@contextmanager
def running(folder: Path, *flags: str, **variables: str) -> Iterator[Site]:
    docs = folder / "docs"
    docs.mkdir()
    fill_documents(docs)
    with serving(folder, "--root", str(docs), "--log-calls", "contexts", *flags, **variables) as server:
        site = Site(server, docs)
        fill(site)
        yield site


def fill(site: Site) -> None:
    fill_stores.fill(site)
    fill_ask(site.docs)
    fill_changes(site)
    fill_search(site, site.docs)
    fill_calls(site)
