"""A person's text stays unchanged, with its line breaks, and is shown if it cannot be sent."""

from collections.abc import Iterator

import pytest

from npl_mcp.web.browsers import SESSION_COOKIE, TOKEN_COOKIE
from tests.npl_mcp.web.browsing import Pages, Visitor, visited

ROOM, SEND = "/rooms/1", "/rooms/1/messages"
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """A server with one room, for ann."""
    with visited(tmp_path_factory.mktemp("typed"), ["ann"]) as site:
        site.call("ann", "chat_create_room", name="den", members=["ann"])
        yield site


def said(pages: Pages) -> list[str]:
    events = pages.data("ann", ROOM)["items"]
    return [event["data"]["message"] for event in events if event["event_type"] == "message"]


def written(visitor: Visitor) -> dict[str, str]:
    typed = "first line\r\nsecond <line>\r\n\r\nlast"
    return {**visitor.open(ROOM).fields(SEND), "message": typed, "to": ""}


def test_line_breaks_stay_as_they_were_typed(pages: Pages) -> None:
    """A browser sends CR LF; every kind of form stores one line feed. Earlier versions stored CR LF."""
    visitor = pages.visitor("ann")
    assert visitor.post(SEND, written(visitor), **HTML).status == 303
    assert said(pages)[-1] == "first line\nsecond <line>\n\nlast"
    todo = {**visitor.open(ROOM).fields("/rooms/1/todos"), "description": "a\r\nb\rc", "assigned_to": ""}
    assert visitor.post("/rooms/1/todos", todo, **HTML).status == 303
    assert visitor.json(ROOM)["todos"]["items"][0]["description"] == "a\nb\nc"
    pages.call("ann", "chat_send_message", room_id=1, message="old\r\nbreak \r alone")
    assert "old\nbreak ␍ alone" in visitor.open(ROOM).html


@pytest.mark.parametrize(
    ("cookie", "value", "status"),
    [(TOKEN_COOKIE, "", 401), (TOKEN_COOKIE, "b3RoZXI=", 401), (SESSION_COOKIE, "", 403)],
)
def test_a_refused_text_is_shown(pages: Pages, cookie: str, value: str, status: int) -> None:
    """A form without the token or the session of its page sends nothing; a program gets the envelope."""
    visitor = pages.visitor("ann")
    form, before = written(visitor), said(pages)
    visitor.cookies[cookie] = value
    referer = "https://npl.example/rooms/1?as=ann"  # a proxy ends TLS
    shown = visitor.post(SEND, form, **HTML, Referer=referer)
    assert (shown.status, said(pages)) == (status, before)
    assert "second <line>" in shown.text
    links = [link.get("href") for link in shown.all("a") if link.text == "sign in"]
    assert links == ["/sign-in?next=%2Frooms%2F1%3Fas%3Dann"] * (status == 401)
    answer = visitor.post(SEND, form).answer
    assert status == 403 or answer.data["error_code"] == "PERMISSION_DENIED"


def test_a_page_is_asked_for_again_as_it_was(pages: Pages) -> None:
    visitor = Visitor(pages.server)
    answer = visitor.send("GET", "/documents/a%20b%3Fc?view=text", Accept="text/html")
    assert answer.status == 303
    shown = visitor.open(answer.headers["location"])
    assert shown.fields("/sign-in")["next"] == "/documents/a%20b%3Fc?view=text"
