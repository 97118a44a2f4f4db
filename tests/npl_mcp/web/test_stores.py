"""Pages of what agents do together: visibility, and the effects of forms."""

import base64
from collections.abc import Iterator

import pytest

from npl_mcp.config.domains import LISTED
from npl_mcp.stores.access import Permissions
from tests import engines
from tests.npl_mcp.web.browsing import Pages, visited, without
from tests.npl_mcp.web.examples import FORMS, filled


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    who = {"ann": Permissions(), "ben": Permissions(), **without(*LISTED)}
    with visited(tmp_path_factory.mktemp("pages"), who) as site:
        site.call("ann", "session_create", session_id="s", title="Quay")
        site.call("ann", "chat_create_room", name="r", members=["ann", "ben"], session_id="s")
        for number in range(130):
            site.call("ann", "chat_send_message", room_id=1, message=f"wave {number}")
        plan = {"filename": "plan.md", "content": "# Plan\n\nOne.\nTwo.\n", "session_id": "s"}
        site.call("ann", "artifact_create", name="plan", artifact_type="document", **plan)
        site.call("ben", "review_create", artifact_id=1, revision_id=1)
        site.call("ben", "review_add_comment", review_id=1, location="line:3", comment="Why one?")
        site.call("ann", "worklog_init", session_id="s")
        site.call("ann", "worklog_log", action="found", summary="a rope", tags=["rope"])
        yield site


LINKS = {"chat": "/rooms/1#end", "artifact": "/artifacts/1", "review": "/reviews/1", "worklog": "/worklogs/s"}


@pytest.mark.parametrize("domain", ["", *LINKS])
def test_a_session_links_to_what_the_visitor_sees(pages: Pages, domain: str) -> None:
    """A visitor who may not see artifacts does not see reviews."""
    body = pages.get(f"no-{domain}" if domain else "ann", "/sessions/s").body.decode()
    hidden = {domain, "review"} if domain == "artifact" else {domain}
    shown = {name for name, path in LINKS.items() if f'href="{path}"' in body}
    assert shown == LINKS.keys() - hidden


def test_a_room_is_read_by_pages(pages: Pages) -> None:
    """Paging goes back and forth from the newest page; any event has a page."""
    newest = pages.data("ann", "/rooms/1")
    oldest = pages.data("ann", f"/rooms/1?before={newest['older']}")
    ids = [event["id"] for event in oldest["items"] + newest["items"]]
    assert (len(ids), ids) == (newest["total"], sorted(ids))
    assert oldest["older"] is None
    later = pages.data("ann", f"/rooms/1?since={oldest['newer']}")
    assert [event["id"] for event in later["items"]] == ids[-100:]
    for event in (ids[0], ids[60], ids[-1]):
        page = pages.data("ann", f"/rooms/1?event={event}")
        assert event in [row["id"] for row in page["items"]]


def test_a_person_with_a_token_acts_in_their_own_name(pages: Pages) -> None:
    assert pages.send("ann", "/rooms/1/messages", persona="ben", message="not ben's").status == 303
    assert pages.data("ann", "/rooms/1")["items"][-1]["persona"] == "ann"


def test_a_comment_on_no_revision_is_not_found(pages: Pages) -> None:
    answer = pages.send("ann", "/artifacts/1/revisions/99/comments", location="line:1", comment="x")
    assert (answer.status, b"has no revision 99" in answer.body) == (404, True)


def stored(pages: Pages, **given: str) -> int:
    """Store a text as an artifact; return its id."""
    made = pages.call("ann", "artifact_create", artifact_type="x", filename="a.txt", **given)
    return int(made["artifact_id"])


PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
FILES = [
    ("a.png", PNG, "image/png"),
    ("a.html", PNG, "image/png"),
    ("a.jpg", b"\xff\xd8\xff\xe0", "image/jpeg"),
    ("a.gif", b"GIF89a", "image/gif"),
    ("a.webp", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ("a.txt", b"calm", ""),
    ("a.html", b"<script>alert(1)</script>", ""),
    ("a.png", b"<html><script>alert(1)</script>", ""),
    ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", ""),
    ("a.pdf", b"%PDF-1.7", ""),
    ("a.wav", b"RIFF\0\0\0\0WAVEfmt ", ""),
]
"""Names and contents of files, with the media types of pictures."""


def test_files_are_sent_so_that_no_browser_runs_them(pages: Pages) -> None:
    """Pictures are shown, other files saved; the content decides, not the name."""
    made = stored(pages, name="files", content="first")
    for number, (name, content, kind) in enumerate(FILES, 1):
        given = base64.b64encode(content).decode()
        pages.call("ann", "artifact_add_revision", artifact_id=made, filename=name, file_content_base64=given)
        answer = pages.get("ann", f"/artifacts/{made}/revisions/{number}/file")
        assert answer.body == content
        assert answer.headers["content-type"] == (kind or "application/octet-stream")
        served = "inline" if kind else "attachment"
        assert answer.headers["content-disposition"] == f"{served}; filename*=UTF-8''{name}"
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert pages.get("no-artifact", f"/artifacts/{made}/revisions/{number}/file").status == 404


def test_a_worklog_is_read_by_pages(pages: Pages) -> None:
    """The latest entries come first, or those around an entry; reading moves no cursor."""
    pages.call("ann", "worklog_init", session_id="long")
    for number in range(1, 131):
        pages.call("ann", "worklog_log", action="found", summary=f"buoy {number}", session_id="long")
    shown = {"": (31, 130, 30, 0), "?since=0": (1, 100, 0, 30), "?entry=60": (11, 110, 10, 20)}
    for query, (first, last, earlier, later) in shown.items():
        page = pages.data("ann", f"/worklogs/long{query}")
        assert [row["seq"] for row in page["items"]] == list(range(first, last + 1))
        assert (page["session"]["entry_count"], page["earlier"], page["later"]) == (130, earlier, later)
    assert pages.call("ann", "worklog_read", session_id="long", peek=True)["cursor"] == 0
    pages.call("ann", "worklog_close", archive=True, session_id="long")
    assert pages.data("ann", "/worklogs/archive/long")["items"][-1]["summary"] == "buoy 130"
    entry = pages.data("ann", "/activity")["items"][0]
    assert (entry["text"], entry["href"]) == (
        "found: buoy 130",
        "/worklogs/archive/long?entry=130#entry-130",
    )


def test_activity_is_one_list_by_day_and_agent(pages: Pages) -> None:
    """Agents have their numbers, kinds that a visitor does not see are left out, other days are empty."""
    today = pages.data("ann", "/activity")["items"][0]["at"][:10]
    shown = pages.data("ann", f"/activity?by=ben&day={today}")
    assert {(entry["kind"], entry["by"]) for entry in shown["items"]} == {("review", "ben")}
    assert shown["items"][0]["title"] == "plan"
    assert shown["total"] == shown["days"][today] == len(shown["items"])
    numbers = {agent["by"]: agent["entries"] for agent in shown["agents"]}
    assert (numbers["ben"], numbers["ann"] > 130) == (1, True)
    for domain in ("chat", "worklog", "artifact", "review"):
        kinds = {entry["kind"] for entry in pages.data(f"no-{domain}", "/activity")["items"]}
        kinds |= {entry["kind"] for entry in pages.data(f"no-{domain}", "/sessions/s")["items"]}
        assert domain not in kinds
    assert pages.data("ann", "/activity?day=2000-01-01")["items"] == []
    assert pages.get("ann", "/activity?day=%00").status == 400


def test_a_long_text_is_read_by_pages(pages: Pages) -> None:
    """A page has a thousand lines, with any line ends; long lines are cut."""
    text = "".join(f"line {number}\r\n" for number in range(1, 1500)) + "x" * 5000
    made = stored(pages, name="long", content=text)
    first = pages.data("ann", f"/artifacts/{made}")
    assert (len(first["items"]), first["total"], first["items"][0]["text"]) == (1000, 1500, "line 1")
    last = pages.data("ann", f"/artifacts/{made}?offset=1000")["items"]
    assert [line["number"] for line in last] == list(range(1001, 1501))
    assert last[-1]["text"] == "x" * 2000 + "…"


def test_a_review_leads_to_its_revision(pages: Pages) -> None:
    """A verdict is about the newest revision, and confirmed after it was sent."""
    place = "/artifacts/1/revisions/0?review=1"
    assert pages.get("ann", "/reviews/1").headers["location"] == place
    assert pages.get("no-review", "/reviews/1").status == 404
    assert pages.data("ann", place)["review"]["reviewer_persona"] == "ben"
    assert b"Finish your review" in pages.get("ann", place).body
    done = pages.send("ann", "/artifacts/1/revisions/0/verdict", next=place)
    assert done.headers["location"] == f"{place}&sent=comment"
    pages.call("ann", "artifact_add_revision", artifact_id=1, filename="plan.md", content="# Plan\n\nTwo.\n")
    assert b"Finish your review" not in pages.get("ann", place).body


@pytest.mark.parametrize(("offset", "marked"), [(0, [2, 3, 4, 6]), (2, [3, 4, 6]), (4, [6])])
def test_commented_lines_are_marked_on_each_page(pages: Pages, offset: int, marked: list[int]) -> None:
    number = stored(pages, name=f"lines {offset}", content="line\n" * 7)
    for place in ("line:2-4", "line:3", "line:6"):
        pages.send("ann", f"/artifacts/{number}/revisions/0/comments", location=place, comment="c")
    rows = pages.data("ann", f"/artifacts/{number}?offset={offset}")["items"]
    assert [row["number"] for row in rows if row["meant"]] == marked


def test_comments_are_hidden_with_reviews(pages: Pages) -> None:
    shown = pages.data("ann", "/artifacts/1/revisions/0")
    assert [line["number"] for line in shown["items"] if line["meant"]] == [3]
    assert "Why one?" in [row["comment"] for row in shown["comments"]]
    assert [line["number"] for line in shown["items"] if line["comments"]] == [3]
    hidden = pages.data("no-review", "/artifacts/1/revisions/0")
    assert (hidden["comments"], hidden["reviews"]) == ([], [])
    assert "Why one?" not in pages.get("no-review", "/artifacts/1/revisions/0").body.decode()


COMPARED: dict[str, tuple[str, str, list[tuple[int | None, int | None]] | None, int, int]] = {
    "replaced": ("a\nb\nc\n", "a\nB\nc\n", [(1, 1), (2, None), (None, 2), (3, 3)], 1, 1),
    "added": ("a\n", "a\nb\n", [(1, 1), (None, 2)], 1, 0),
    "removed": ("a\nb\n", "b\n", [(1, None), (2, 1)], 0, 1),
    "same": ("a\n", "a\n", [], 0, 0),
    "context": (
        "x\n" * 9 + "y\n",
        "x\n" * 9 + "z\n",
        [(7, 7), (8, 8), (9, 9), (10, None), (None, 10)],
        1,
        1,
    ),
    "long": ("a\n" * 4000, "b\n" * 3000, None, 3000, 4000),
}


@pytest.mark.parametrize("case", COMPARED)
def test_revisions_are_compared(pages: Pages, case: str) -> None:
    """Each change has three lines around it; a comparison is bounded."""
    old, new, rows, added, removed = COMPARED[case]
    first = stored(pages, name=f"compared {case}", content=old)
    pages.call("ann", "artifact_add_revision", artifact_id=first, filename="a.txt", content=new)
    changes = pages.data("ann", f"/artifacts/{first}/compare?from=0&to=1")["changes"]
    pairs = [(pair.get("old"), pair.get("new")) for hunk in changes["hunks"] for pair in hunk]
    assert (changes["added"], changes["removed"], changes["cut"]) == (added, removed, rows is None)
    assert rows is None or pairs == rows
    assert len(pairs) <= 3000


REFUSED = [
    {},
    {"location": "line:999", "comment": "x", "verdict": "odd", "status": "odd", "action": "odd"},
    {"location": "line:1", "comment": " ", "message": " ", "description": " ", "reaction": "999999 x"},
    {"location": "line:1", "comment": "x", "reply_to": "999", "message": "x", "reply_to_id": "999"},
    {"reaction": "1 ", "status": "claim", "description": "x", "assigned_to": "nobody"},
]


def test_a_refused_form_leaves_nothing(pages: Pages) -> None:
    """The sender is in no room, has no review, and claims a todo that another has claimed."""
    folder, who = pages.server.folder / "data", "no-worklog"
    todo = pages.call("ann", "chat_create_todo", room_id=1, description="Sail")["event_id"]
    pages.call("ann", "chat_claim_todo", event_id=todo)

    opened, version = engines.watched(folder)
    refused = set()
    for form in (form for form in FORMS if form.writes):
        for fields in REFUSED:
            before = opened.execute(version).fetchone()
            answer = pages.send(who, filled(form.path, event=str(todo)), **fields)
            if answer.status >= 400:
                refused.add(form.path)
                assert opened.execute(version).fetchone() == before, (form.path, fields)
    opened.close()
    assert len(refused) > 10
    good = {"location": "line:1", "comment": "x", "message": "x", "reaction": f"{todo} x", "description": "x"}
    for form in (
        "artifacts/1/revisions/0/comments",
        "rooms/1/messages",
        "rooms/1/reactions",
        "rooms/1/todos",
    ):
        assert pages.send(who, f"/{form}", **good).status == 303
