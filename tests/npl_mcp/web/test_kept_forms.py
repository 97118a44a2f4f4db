"""A person's input stays unchanged: line breaks as typed, and the whole text despite a lost cookie."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.web.browsers import SESSION_COOKIE, TOKEN_COOKIE
from tests import engines
from tests.npl_mcp.http.http_server import Running, call, serving
from tests.npl_mcp.web.browsing import Shown, Visitor

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


def sign_in_and_send(visitor: Visitor, kept: Shown, token: str) -> Shown:
    """Fill in the token on the page with the kept text, and send the text from the next page."""
    assert (kept.status, kept.tree.find(".//h1").text) == (401, "Sign in to send this")  # type: ignore[union-attr]
    assert "second <line>" in kept.text
    shown = visitor.post("/sign-in", {**kept.fields("/sign-in"), "token": token}, **HTML)
    assert shown.status == 200
    return visitor.post("/rooms/1/messages", shown.fields("/rooms/1/messages"), **HTML)


@pytest.mark.parametrize(
    "lost", [(TOKEN_COOKIE,), (TOKEN_COOKIE, SESSION_COOKIE), ()], ids=["token", "both", "the token ended"]
)
def test_a_lost_cookie_leads_to_sign_in_and_keeps_the_text(
    server: tuple[Running, str], lost: tuple[str, ...]
) -> None:
    """The text is sent once, after signing in; a wrong token keeps it as well."""
    visitor = Visitor(*server)
    form, before = written(visitor), said(*server)
    for cookie in lost:
        del visitor.cookies[cookie]
    if not lost:
        visitor.cookies[TOKEN_COOKIE] = "b3RoZXI="
    kept = visitor.post("/rooms/1/messages", form, **HTML)
    assert said(*server) == before
    refused = sign_in_and_send(visitor, kept, "wrong")
    assert sign_in_and_send(visitor, refused, server[1]).status == 303
    assert said(*server) == [*before, "first line\nsecond <line>\n\nlast"]


def test_a_lost_session_keeps_the_text_for_one_more_click(server: tuple[Running, str]) -> None:
    visitor = Visitor(*server)
    form, before = written(visitor), said(*server)
    del visitor.cookies[SESSION_COOKIE]
    shown = visitor.post("/rooms/1/messages", form, **HTML)
    assert shown.status == 403
    assert said(*server) == before
    assert visitor.post("/rooms/1/messages", shown.fields("/rooms/1/messages"), **HTML).status == 303
    assert said(*server) == [*before, "first line\nsecond <line>\n\nlast"]


def test_a_program_without_a_token_gets_the_envelope(server: tuple[Running, str]) -> None:
    """Only a browser is led to a page; a kept form leads nowhere else."""
    stranger = Visitor(server[0])
    assert (
        stranger.post("/rooms/1/messages", {"message": "x"}).answer.data["error_code"] == "PERMISSION_DENIED"
    )
    form = stranger.open("/sign-in").fields("/sign-in")
    odd = {**form, "token": "x", "next": "https://elsewhere.invalid/", "kept.message": "x"}
    shown = stranger.post("/sign-in", odd, **HTML)
    assert [form.get("action") for form in shown.all("form") if form.get("class") == "form"] == ["/"]


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
