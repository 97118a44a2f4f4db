"""News for open pages: recipients, start, and repeated changes."""

import html
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from npl_mcp.app.lanes import HEAVY_WORKERS, WORKERS
from npl_mcp.stores.access import add_token, revoke_token
from tests import engines
from tests.npl_mcp.web.news import told
from tests.npl_mcp.web.pages import Pages, visited
from tests.until import until


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    with visited(tmp_path_factory.mktemp("news")) as site:
        site.call("ann", "chat_create_room", name="Pier", members=["ann", "ben"])
        yield site


def stream_of(pages: Pages, who: str, page: str) -> str | None:
    """Return where a current page gets its news."""
    match = re.search(r'data-stream="([^"]+)"', pages.get(who, page).body.decode())
    return html.unescape(match[1]) if match else None


CHANGES = [
    ("chat_react", {"emoji": "!"}, '<li title="ben">'),
    ("chat_claim_todo", {}, "claimed by"),
    ("chat_update_todo", {"status": "done"}, "done"),
]


@pytest.mark.parametrize(("tool", "given", "words"), CHANGES, ids=[tool for tool, _, _ in CHANGES])
def test_a_row_that_changed_comes_again(pages: Pages, tool: str, given: dict[str, str], words: str) -> None:
    """The changed row comes before its event, which alone advances the browser."""
    todo = pages.call("ann", "chat_create_todo", room_id=1, description="tar the rope")["event_id"]
    address = stream_of(pages, "ann", "/rooms/1")
    assert address is not None
    with told(pages, "ann", address) as news:
        pages.call("ben", tool, event_id=todo, **given)
        kind, part = news.next()
        assert (kind, news.cursor) == ("changed", "")
        assert f'id="event-{todo}"' in part
        assert "tar the rope" in part
        assert words in part
        assert news.next()[0] == "message"
        assert news.cursor != ""


def test_an_answer_changes_no_row(pages: Pages) -> None:
    address = stream_of(pages, "ann", "/rooms/1")
    assert address is not None
    with told(pages, "ann", address) as news:
        pages.call("ben", "chat_send_message", room_id=1, message="aye", reply_to_id=1)
        kind, part = news.next()
        assert (kind, "aye" in part) == ("message", True)


def test_a_room_goes_on_where_the_browser_left_off(pages: Pages) -> None:
    address = stream_of(pages, "ann", "/rooms/1")
    assert address is not None
    with told(pages, "ann", address) as news:
        pages.call("ann", "chat_send_message", room_id=1, message="a gull")
        assert "a gull" in news.next()[1]
        cursor = news.cursor
    pages.call("ann", "chat_send_message", room_id=1, message="a tern")
    with told(pages, "ann", address, cursor) as news:
        assert "a tern" in news.next()[1]


def test_waiting_pages_keep_no_caller_out(pages: Pages) -> None:
    """They outnumber workers and connections, and calls are answered as before."""
    many = 3 * (WORKERS + HEAVY_WORKERS)
    address = stream_of(pages, "ann", "/rooms/1")
    assert address is not None
    with ExitStack() as stack:
        streams = [stack.enter_context(told(pages, "ann", address)) for _ in range(many)]
        assert pages.get("ben", "/artifacts").status == 200
        pages.call("ann", "chat_send_message", room_id=1, message="to all of them")
        with ThreadPoolExecutor(many) as readers:
            parts = list(readers.map(lambda news: news.next()[1], streams))
    assert all("to all of them" in part for part in parts)


def test_a_reader_that_is_let_in_no_more_is_told_no_more(pages: Pages) -> None:
    stores = engines.stores(pages.server.folder / "data")
    try:
        pages.tokens["guest"] = stores.database.writing(add_token, "guest")
        until(lambda: pages.get("guest", "/rooms/1").status == 200)
        address = stream_of(pages, "guest", "/rooms/1")
        assert address is not None
        with told(pages, "guest", address) as news:
            pages.call("ann", "chat_send_message", room_id=1, message="to the guest as well")
            assert "to the guest as well" in news.next()[1]
            stores.database.writing(revoke_token, "guest")
            until(lambda: pages.get("guest", "/rooms/1").status != 200)
            pages.call("ann", "chat_send_message", room_id=1, message="to the others")
            assert news.next()[0] == "failed"
    finally:
        stores.close()
