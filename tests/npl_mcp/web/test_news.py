"""What pages are told while they are open: to whom, from where on, and that what changed comes again."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from npl_mcp.app.lanes import HEAVY_WORKERS, WORKERS
from tests import engines
from tests.npl_mcp.web.news import told
from tests.npl_mcp.web.pages import Pages, visited


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """A session with a room, an artifact and a worklog."""
    with visited(tmp_path_factory.mktemp("news")) as site:
        site.call("ann", "session_create", session_id="s", title="Quay")
        site.call("ann", "chat_create_room", name="Pier", members=["ann", "ben"], session_id="s")
        plan = {"filename": "plan.md", "content": "# Plan\n\nOne.\n", "session_id": "s"}
        site.call("ann", "artifact_create", name="plan", artifact_type="document", **plan)
        site.call("ann", "worklog_init", session_id="s")
        yield site


def stream_of(pages: Pages, who: str, page: str) -> str | None:
    """Return where a page as it is now gets its news."""
    found = re.search(r'data-stream="([^"]+)"', pages.get(who, page).body.decode())
    return html.unescape(found[1]) if found else None


def happen(pages: Pages, words: str) -> None:
    """Let something of each kind happen in the session."""
    pages.call("ann", "chat_send_message", room_id=1, message=f"{words} QUAY-003")
    revision = {"filename": "plan.md", "content": f"# {words}\n", "purpose": words}
    pages.call("ann", "artifact_add_revision", artifact_id=1, **revision)
    number = pages.data("ann", "/artifacts/1")["about"]["revision_id"]
    review = pages.call("ben", "review_create", artifact_id=1, revision_id=number)["review_id"]
    pages.call(
        "ben", "review_add_comment", review_id=review, location="line:1", comment=f"a comment, {words}"
    )
    pages.call("ben", "review_complete", review_id=review, overall_comment=f"all of it, {words}")
    pages.call("ann", "worklog_log", session_id="s", action="found", summary=f"logged, {words}")


SHOWN = {
    "events": ["event-"],
    "artifacts": ["revision-"],
    "reviews": ["review-begun-", "review-comment-", "review-completed-"],
    "worklog": ["entry-"],
}
"""How the ids of the rows of a moment of each kind begin."""

EVERY = [mark for marks in SHOWN.values() for mark in marks]


def ids_of(part: str) -> list[str]:
    return [re.sub("[0-9]+$", "", found) for found in re.findall(r'<li [^>]*id="([^"]+)"', part)]


def moments(pages: Pages, who: str, page: str, words: str) -> list[str]:
    """Return the rows that a page is told of when something of each kind happens, and which are the last."""
    address = stream_of(pages, who, page)
    assert address is not None
    wanted = pages.data(who, page)["kinds"]
    with told(pages, who, address) as news:
        happen(pages, words)
        # What is told is in order, so nothing is missing once the last has come.
        pages.call("ann", "worklog_log", session_id="s", action="end", summary="the end")
        pages.call("ann", "chat_send_message", room_id=1, message="the end")
        seen: list[str] = []
        ends = [kind for kind in ("worklog", "events") if wanted.get(kind, {}).get("shown")]
        while ends:
            kind, part = news.next()
            assert kind == "message"
            if "the end" in part:
                ends.remove("worklog" if "entry-" in part else "events")
            else:
                seen += [one for one in ids_of(part) if not one.startswith("linked")]
        return seen


def test_a_session_is_told_of_all_that_happens(pages: Pages) -> None:
    """Each thing once, whatever was read together."""
    assert sorted(moments(pages, "ann", "/sessions/s", "first")) == sorted(EVERY)


@pytest.mark.parametrize(
    ("query", "kinds"),
    [("kind=events&kind=reviews", ["events", "reviews"]), ("who=ann", ["events", "artifacts", "worklog"])],
)
def test_the_news_of_a_session_keep_to_its_filters(pages: Pages, query: str, kinds: list[str]) -> None:
    seen = moments(pages, "ann", f"/sessions/s?{query}", query)
    assert sorted(seen) == sorted(mark for kind in kinds for mark in SHOWN[kind])


@pytest.mark.parametrize(
    ("domain", "hidden"),
    [("chat", ["events"]), ("artifact", ["artifacts", "reviews"]), ("worklog", ["worklog"])],
)
def test_what_may_not_be_seen_is_not_told(pages: Pages, domain: str, hidden: list[str]) -> None:
    """Nor to who asks for it by hand, and the page's own address does not say how much there is of it."""
    who = f"no-{domain}"
    address = stream_of(pages, who, "/sessions/s")
    assert address is not None
    assert not [kind for kind in hidden if kind in address]
    seen = moments(pages, who, "/sessions/s", domain)
    assert sorted(seen) == sorted(
        mark for kind, marks in SHOWN.items() if kind not in hidden for mark in marks
    )
    with told(pages, who, f"/sessions/s/news?since={hidden[0]}:0") as news:
        assert news.next()[0] == "failed"


def test_a_session_goes_on_where_the_browser_left_off(pages: Pages) -> None:
    """With the id of the last event in place of the page's, and not from anything else."""
    address = stream_of(pages, "ann", "/sessions/s?kind=events&kind=worklog")
    assert address is not None
    with told(pages, "ann", address) as news:
        pages.call("ann", "chat_send_message", room_id=1, message="before the break")
        assert "before the break" in news.next()[1]
        cursor = news.cursor
    pages.call("ann", "worklog_log", session_id="s", action="found", summary="during the break")
    with told(pages, "ann", address, cursor) as news:
        assert "during the break" in news.next()[1]
    for wrong in ("", "0", "events", "events:x", "events:1,", "calls:1", "events:" + "9" * 20):
        with told(pages, "ann", f"/sessions/s/news?since={wrong}") as news:
            kind, said = news.next()
            assert (kind, wrong[:64] in said) == ("failed", True)


def test_news_name_rooms_and_change_requests(pages: Pages) -> None:
    """As the page does."""
    address = stream_of(pages, "ann", "/sessions/s")
    assert address is not None
    room = pages.call("ann", "chat_create_room", name="New <b>", members=["ann"], session_id="s")["room_id"]
    with told(pages, "ann", address) as news:
        assert "in New &lt;b&gt;" in news.next()[1]
        pages.call("ann", "chat_send_message", room_id=room, message="QUAY-003 <script>")
        part = news.next()[1]
        assert 'href="/changes/QUAY-003"' in part
        assert "&lt;script&gt;" in part


def test_only_a_session_as_it_is_now_has_news(pages: Pages) -> None:
    """One that is looked at as it was has none."""
    assert stream_of(pages, "ann", "/sessions/s?until=1000") is None
    moment = pages.data("ann", "/sessions/s")["moments"][0]
    assert stream_of(pages, "ann", f"/sessions/s?before={moment['at']}") is None


CHANGES = [
    ("chat_react", {"emoji": "!"}, '<li title="ben">'),
    ("chat_claim_todo", {}, "claimed by"),
    ("chat_update_todo", {"status": "done"}, "done"),
]


@pytest.mark.parametrize("page", ["/rooms/1", "/sessions/s"])
@pytest.mark.parametrize(("tool", "given", "words"), CHANGES, ids=[tool for tool, _, _ in CHANGES])
def test_a_row_that_changed_comes_again(
    pages: Pages, page: str, tool: str, given: dict[str, str], words: str
) -> None:
    """As one that has changed, before the event that says so, which alone moves the browser on."""
    todo = pages.call("ann", "chat_create_todo", room_id=1, description="tar the rope")["event_id"]
    address = stream_of(pages, "ann", page)
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


def test_a_worklog_goes_on_where_the_browser_left_off(pages: Pages) -> None:
    address = stream_of(pages, "ann", "/worklogs/s")
    assert address is not None
    with told(pages, "ann", address) as news:
        pages.call("ann", "worklog_log", session_id="s", action="found", summary="a gull")
        assert "a gull" in news.next()[1]
        cursor = news.cursor
    pages.call("ann", "worklog_log", session_id="s", action="found", summary="a tern")
    with told(pages, "ann", address, cursor) as news:
        assert "a tern" in news.next()[1]


def test_waiting_pages_keep_nobody_out(pages: Pages) -> None:
    """More of them than there are workers and connections, and calls are answered as before."""
    many = 3 * (WORKERS + HEAVY_WORKERS)
    address = stream_of(pages, "ann", "/sessions/s?kind=worklog")
    assert address is not None
    with ExitStack() as stack:
        streams = [stack.enter_context(told(pages, "ann", address)) for _ in range(many)]
        assert pages.get("ben", "/sessions/s").status == 200
        pages.call("ann", "worklog_log", session_id="s", action="found", summary="to all of them")
        with ThreadPoolExecutor(many) as readers:
            parts = list(readers.map(lambda news: news.next()[1], streams))
    assert all("to all of them" in part for part in parts)


def test_who_is_let_in_no_more_is_told_no_more(pages: Pages) -> None:
    """An open page ends with the token of who looks at it."""
    stores = engines.stores(pages.server.folder / "data")
    try:
        pages.tokens["guest"] = stores.access.add("guest")
        while pages.get("guest", "/rooms/1").status != 200:  # a token is known within a second
            pass
        address = stream_of(pages, "guest", "/rooms/1")
        assert address is not None
        with told(pages, "guest", address) as news:
            pages.call("ann", "chat_send_message", room_id=1, message="to the guest as well")
            assert "to the guest as well" in news.next()[1]
            stores.access.revoke("guest")
            while pages.get("guest", "/rooms/1").status == 200:
                pass
            pages.call("ann", "chat_send_message", room_id=1, message="to the others")
            assert news.next()[0] == "failed"
    finally:
        stores.close()
