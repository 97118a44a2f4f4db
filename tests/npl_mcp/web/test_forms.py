"""Forms and cookies of strangers: only forms of our own pages are read, and refusals are quick."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from npl_mcp.web.browsers import SESSION_COOKIE, cookies
from npl_mcp.web.visits import FORM_TYPE, MAX_FIELDS, MAX_FORM
from tests.npl_mcp.http.http_server import Answer, Running, call, request, serving
from tests.npl_mcp.web.browsing import Visitor


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("forms")) as running:
        yield running


def part(text: bytes, head: bytes = b"") -> bytes:
    """Return a form of one part."""
    return b'--x\r\nContent-Disposition: form-data; name="a"%s\r\n\r\n%s\r\n--x--\r\n' % (head, text)


MULTIPART = "multipart/form-data; boundary=x"
REFUSED: dict[str, tuple[str, bytes, str]] = {
    "only separators": (FORM_TYPE, b"&" * MAX_FORM, "fields"),
    "too many fields": (FORM_TYPE, b"a=1&" * (MAX_FIELDS + 1), "fields"),
    "too long": (FORM_TYPE, b"%41" * 2_000_000, "bytes"),
    "parts in a slow encoding": (f"{MULTIPART}; charset=punycode", part(b"a-" + b"b" * 900_000), "form"),
    "parts in an unknown encoding": (f"{MULTIPART}; charset=x", part(b"a"), "form"),
    "parts": (MULTIPART, part(b"a"), "form"),
    "a file": (MULTIPART, part(b"a" * 2_000_000, b'; filename="a"'), "form"),
    "text": ("text/plain", b"a=1", "form"),
    "JSON": ("application/json", b"{}", "form"),
    "nothing": ("", b"", "form"),
}


def sent(server: Running, kind: str, body: bytes) -> Answer:
    return request(server, "POST", "/sign-in", body, {"Content-Type": kind})


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_form_of_ours_is_refused(server: Running, case: str) -> None:
    """The refusal needs no sign-in; reading some of these forms would take for ever."""
    kind, body, why = REFUSED[case]
    answer = sent(server, kind, body)
    assert answer.status == 400
    assert why in answer.body.decode()


def test_a_form_is_read_as_a_browser_sends_it(server: Running) -> None:
    place = "/ask?context=%C3%A9"
    for kind in (FORM_TYPE, f"{FORM_TYPE.title()}; charset=utf-8"):
        visitor = Visitor(server)
        fields = {**visitor.open("/sign-in").fields("/sign-in"), "next": place}
        answer = visitor.post("/sign-in", {**fields, "token": "ä\r\n%"}, Content_Type=kind).answer
        assert (answer.status, answer.headers["location"]) == (303, place)
    # Bytes that are no UTF-8 and halves of characters break nothing, and of equal names the last counts.
    for body in (b"\xff\xfe=%ff", b"%ED%A0%80=%ED%A0%80", b"form_token=%ED%A0%80", b"a=1&a=%00&a"):
        assert visitor.send("POST", "/sign-in", body, Content_Type=FORM_TYPE).status == 403
    own = visitor.open("/sign-in").fields("/sign-in")
    both = f"{urlencode(own)}&next=%2Frooms".encode()
    assert visitor.send("POST", "/sign-in", both, Content_Type=FORM_TYPE).headers["location"] == "/rooms"


COOKIES = {
    "quotes": 'a="' + "\\" * 30_000 + '"',
    "many": "; ".join(f"c{number}=1" for number in range(6_000)),
    "no names": "=" * 30_000,
    "no values": ";" * 30_000,
    "controls": "npl_session=\x7f\xe4\xff; npl_token=\xff",
}


@pytest.mark.parametrize("case", COOKIES)
def test_cookies_of_any_form_are_read_at_once(server: Running, case: str) -> None:
    """Some versions of Python's own reader take minutes for quotes, while all others wait."""
    line = COOKIES[case]
    assert request(server, "GET", "/sign-in", headers={"Cookie": line}).status == 200
    named = cookies({b"cookie": f"{line}; {SESSION_COOKIE} = s=1 ".encode()})
    assert named[SESSION_COOKIE] == "s=1"


def test_a_form_that_is_sent_twice_changes_something_once(server: Running) -> None:
    """A reload sends the same fields; other fields, or another page, are another form."""
    call(server, "chat_create_room", {"name": "den", "members": ["ann"]})
    visitor, action, page = Visitor(server), "/rooms/1/messages", "/rooms/1"
    visitor.post("/name", {**visitor.open(page).fields("/name"), "name": "eve"})
    fields = {**visitor.open(page).fields(action), "message": "hello", "to": ""}
    later = {**visitor.open(page).fields(action), "message": "hello", "to": ""}
    for sent in (fields, fields, {**fields, "message": "hi"}, later):
        assert visitor.post(action, sent).status == 303
    said = [row["data"].get("message") for row in visitor.json(page)["items"]]
    assert said[1:] == [None, "hello", "hi", "hello"]


def test_a_comment_on_a_later_page_leads_back_to_it(server: Running) -> None:
    """The page after the form has the comment."""
    text = {"name": "long", "artifact_type": "x", "filename": "a.txt", "content": "x\n" * 1_200}
    number = call(server, "artifact_create", text).data["data"]["artifact_id"]
    visitor, action = Visitor(server), f"/artifacts/{number}/revisions/0/comments"
    typed = {"location": "line:1100", "comment": "Why?", "persona": "ann"}
    answer = visitor.submit(f"/artifacts/{number}?offset=1000", action, **typed).answer
    assert "Why?" in visitor.open(answer.headers["location"].partition("#")[0]).text
