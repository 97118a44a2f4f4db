"""Hostile texts run nothing on any page and load nothing from other hosts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Dialog

from tests.browser.conftest import Tab
from tests.browser.site import Site
from tests.npl_mcp.http.http_server import call, serving
from tests.npl_mcp.web.examples import SHOWN, with_query
from tests.npl_mcp.web.hostile import fill

MOST = 60
"""The number of opened pages: the declared ones, and some of their targets."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server whose texts are all hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    docs = folder / "docs"
    docs.mkdir()
    with serving(folder, "--root", str(docs), "--log-calls", "contexts", "--write") as server:

        def ask(tool: str, **given: Any) -> Any:
            return call(server, tool, given).data.get("data")

        fill(ask, docs)
        yield Site(server, Path(docs))


def test_nothing_runs_on_any_page(browser: Browser, hostile: Site) -> None:
    """Nothing runs, even if all details are open and the pointer is over every element."""
    tab = Tab(browser.new_context(viewport={"width": 1280, "height": 800}), hostile, True)
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    tab.page.on("dialog", note)
    declared = [with_query(page.path) for page in SHOWN]
    waiting = list(declared)
    seen: list[str] = []
    while waiting and len(seen) < MOST:
        address = waiting.pop(0)
        if address in seen:
            continue
        seen.append(address)
        answer = tab.page.goto(hostile.url + address)
        assert answer is not None
        assert answer.status == 200 or (address not in declared and answer.status == 404), address
        if answer.status == 404:
            tab.forget_status()
        tab.page.evaluate(OPEN_ALL)
        assert tab.page.evaluate("[window.pwned, document.scripts.length, document.cookie]") == [None, 1, ""]
        links = tab.page.evaluate("[...document.links].map((one) => one.href)")
        waiting += [page for link in links if (page := _page(hostile, link))]
    tab.close()
    assert dialogs == []


OPEN_ALL = """() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  for (const one of document.querySelectorAll("main *")) {
    for (const kind of ["mouseover", "mouseenter", "focus", "toggle", "load", "error"]) {
      one.dispatchEvent(new Event(kind));
    }
  }
}"""


def _page(site: Site, link: str) -> str | None:
    """Return the address of a link to one of our pages; exports and files are not pages."""
    if not link.startswith(f"{site.url}/"):
        return None
    parts, name = urlsplit(link), urlsplit(link).path.rpartition("/")[2]
    if parts.path.startswith("/static/") or name in ("export", "download") or name.endswith(".csv"):
        return None
    return parts.path + (f"?{parts.query}" if parts.query else "")
