"""A person's text stays unchanged, with its line breaks, and is shown if it cannot be sent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.web.browsers import SESSION_COOKIE, TOKEN_COOKIE
from tests import engines
from tests.npl_mcp.http.http_server import Running, call, serving
from tests.npl_mcp.web.browsing import Visitor

TYPED = "first line\r\nsecond <line>\r\n\r\nlast"
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """A server with one room, and ann's token."""
    folder = tmp_path_factory.mktemp("kept")
    token = engines.tokens(folder / "data", ["ann"])["ann"]
    with serving(folder, **engines.environment(folder / "data")) as running:
        named = {"Authorization": f"Bearer {token}"}
        assert call(running, "chat_create_room", {"name": "den", "members": ["ann"]}, **named).status == 200
        yield running, token


def said(server: Running, token: str) -> list[str]:
    answer = call(server, "chat_get_feed", {"room_id": 1}, Authorization=f"Bearer {token}")
    events: list[dict[str, Any]] = answer.data["data"]["items"]
    return [event["data"]["message"] for event in events if event["event_type"] == "message"]


def written(visitor: Visitor) -> dict[str, str]:
    return {**visitor.open("/rooms/1?as=ann").fields("/rooms/1/messages"), "message": TYPED, "to": ""}


def test_line_breaks_are_stored_as_they_were_typed(server: tuple[Running, str]) -> None:
    """A browser sends CR LF; every kind of form stores one line feed."""
    visitor = Visitor(*server)
    assert visitor.post("/rooms/1/messages", written(visitor), **HTML).status == 303
    assert said(*server)[-1] == "first line\nsecond <line>\n\nlast"
    todo = {
        **visitor.open("/rooms/1?as=ann").fields("/rooms/1/todos"),
        "description": "a\r\nb\rc",
        "assigned_to": "",
    }
    assert visitor.post("/rooms/1/todos", todo, **HTML).status == 303
    assert visitor.json("/rooms/1")["todos"]["items"][0]["description"] == "a\nb\nc"


def test_line_breaks_of_earlier_versions_are_shown_as_such(server: tuple[Running, str]) -> None:
    arguments = {"room_id": 1, "message": "old\r\nbreak \r alone"}
    assert call(server[0], "chat_send_message", arguments, Authorization=f"Bearer {server[1]}").status == 200
    html = Visitor(*server).open("/rooms/1").html
    assert "old\nbreak ␍ alone" in html


@pytest.mark.parametrize(
    ("cookie", "value", "status"),
    [(TOKEN_COOKIE, "", 401), (TOKEN_COOKIE, "b3RoZXI=", 401), (SESSION_COOKIE, "", 403)],
)
def test_a_refused_text_is_shown(server: tuple[Running, str], cookie: str, value: str, status: int) -> None:
    """A form without the token or the session of its page sends nothing; a program gets the envelope."""
    visitor = Visitor(*server)
    form, before = written(visitor), said(*server)
    visitor.cookies[cookie] = value
    referer = f"http://127.0.0.1:{server[0].port}/rooms/1?as=ann"
    shown = visitor.post("/rooms/1/messages", form, **HTML, Referer=referer)
    assert (shown.status, said(*server)) == (status, before)
    assert "second <line>" in shown.text
    links = [link.get("href") for link in shown.all("a") if link.text == "sign in"]
    assert links == ["/sign-in?next=%2Frooms%2F1%3Fas%3Dann"] * (status == 401)
    answer = visitor.post("/rooms/1/messages", form).answer
    assert status == 403 or answer.data["error_code"] == "PERMISSION_DENIED"


def test_differences_have_no_empty_lines_between_lines() -> None:
    from npl_mcp.web.rendering import environment

    rows = [{"sign": sign, "text": f"line {sign}"} for sign in ("", "−", "+", "")]
    module = environment().get_template("change_parts.html").module
    html = str(module.difference([rows, rows], "same"))  # type: ignore[attr-defined]
    inside = html.partition(">")[2].rpartition("</pre>")[0]
    assert "\n\n" not in inside
    assert "<del>− line −</del>" in inside


def test_a_page_is_asked_for_again_as_it_was(server: tuple[Running, str], tmp_path: Path) -> None:
    visitor = Visitor(server[0])
    answer = visitor.send("GET", "/documents/a%20b%3Fc?view=text", Accept="text/html")
    assert answer.status == 303
    shown = visitor.open(answer.headers["location"])
    assert shown.fields("/sign-in")["next"] == "/documents/a%20b%3Fc?view=text"
