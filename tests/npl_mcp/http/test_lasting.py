"""Answers that last longer than the token they were asked for with."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.http.policy import SECONDS
from npl_mcp.stores.access import add_token, revoke_token
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.chat.rooms import post
from npl_mcp.stores.data_folder import Stores
from npl_mcp.web.browsers import TOKEN_COOKIE, as_cookie
from tests import engines
from tests.messages import asking
from tests.npl_mcp.http.http_server import BOTH, JSON, META, MODERN, Running, serving
from tests.until import until

PROTOCOL = {**BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "chat_get_feed"}


def awaited(cursor: int) -> dict[str, Any]:
    return {"room_id": 1, "since": cursor, "wait": 60}


def sent(cursor: int) -> dict[str, Any]:
    return asking(1, "tools/call", name="chat_get_feed", arguments=awaited(cursor), _meta=META)


# What lasts: address, body and headers.
LASTING: dict[str, tuple[str, Callable[[int], Any], dict[str, str]]] = {
    "call": ("/mcp/tools/chat_get_feed", awaited, JSON),
    "message of the protocol": ("/mcp", sent, PROTOCOL),
}


@dataclass
class Site:
    server: Running
    stores: Stores
    owner: dict[str, str]

    @property
    def database(self) -> Database:
        return self.stores.database

    def begin(self, what: str, token: str) -> socket.socket:
        """Ask for something that lasts, and return once the server works on it."""
        path, body, headers = LASTING[what]
        cursor = self.server.call("chat_get_feed", {"room_id": 1}, **self.owner).data["data"]["cursor"]
        named = {"Authorization": f"Bearer {token}", **headers}
        asked = self.server.message("POST", path, body(cursor), named)
        until(lambda: self.admits(token))
        line = self.server.connected()
        until(lambda: self.server.in_flight() == 0)
        line.sendall(asked)
        until(lambda: self.server.in_flight() == 1)
        return line

    def say(self, text: str) -> None:
        sent = {"room_id": 1, "message": text}
        assert self.server.call("chat_send_message", sent, **self.owner).status == 200

    def admits(self, token: str) -> bool:
        answer = self.server.call("session_list", {}, Authorization=f"Bearer {token}")
        return answer.status == 200


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("lasting")
    stores = engines.stores(folder / "data")
    owner = {"Authorization": f"Bearer {stores.database.writing(add_token, 'owner')}"}
    try:
        with serving(folder, **engines.environment(folder / "data")) as running:
            room = {"name": "r", "members": ["owner", "other"]}
            assert running.call("chat_create_room", room, **owner).status == 200
            site = Site(running, stores, owner)
            site.say("before")
            yield site
    finally:
        stores.close()


def rest(line: socket.socket) -> bytes:
    """Return all that comes until the connection ends, or an answer is complete."""
    data = b""
    try:
        while part := line.recv(65536):
            data += part
            if data.endswith((b"}", b"\r\n0\r\n\r\n")):
                break
    except ConnectionResetError:
        pass
    return data


def told(site: Site, line: socket.socket) -> bytes:
    """Return what comes after a message."""
    with line:
        site.say("told too late else")
        came = rest(line)
    assert came.startswith(b"HTTP/1.1 401")
    return came


@pytest.mark.parametrize("what", LASTING)
def test_what_lasts_ends_when_its_token_is_revoked(site: Site, what: str) -> None:
    """A waiting caller gets no later news."""
    name = f"revoked {what}".replace(" ", "-")
    token = site.database.writing(add_token, name)
    line = site.begin(what, token)
    site.database.writing(revoke_token, name)
    until(lambda: not site.admits(token))
    time.sleep(SECONDS)  # the token of a younger answer is not checked again
    assert b"told too late" not in told(site, line)


@pytest.mark.thorough
def test_what_lasts_ends_when_its_token_ends(site: Site) -> None:
    token = site.database.writing(add_token, "brief", lifetime=timedelta(seconds=SECONDS + 7))
    line = site.begin("call", token)
    until(lambda: not site.admits(token))
    assert b"told too late" not in told(site, line)


@pytest.mark.thorough
@pytest.mark.parametrize("what", LASTING)
def test_what_lasts_goes_on_while_its_token_is_valid(site: Site, what: str) -> None:
    token = site.database.writing(add_token, f"{what} goes on".replace(" ", "-"))
    with site.begin(what, token) as line:
        time.sleep(SECONDS)  # the server asks once more
        site.say("told to all")
        came = b""
        while b"told to all" not in came:
            came += line.recv(65536) or pytest.fail(came.decode())


@pytest.mark.thorough
@pytest.mark.parametrize("what", LASTING)
def test_what_lasts_goes_on_while_its_token_cannot_be_checked(site: Site, what: str) -> None:
    """New calls are refused for that reason, and a browser is not led to the sign-in page."""
    token = site.database.writing(add_token, f"{what} unchecked".replace(" ", "-"))
    with site.begin(what, token) as line:
        with away(site.server.folder / "data"):
            until(lambda: not site.admits(token))
            refused = site.server.call("session_list", {}, Authorization=f"Bearer {token}")
            assert (refused.status, refused.data["error_code"]) == (503, "DATABASE_ERROR")
            browser = {"Accept": "text/html", "Cookie": f"{TOKEN_COOKIE}={as_cookie(token)}"}
            pages = [site.server.request("GET", path, headers=browser) for path in ("/", "/sign-in")]
            assert [(page.status, "location" in page.headers) for page in pages] == [(503, False)] * 2
            with site.stores.database.write() as tx:
                post(tx, 1, "owner", "message", {"message": "told meanwhile"})
            came = b""
            while b"told meanwhile" not in came:
                came += line.recv(65536) or pytest.fail(came.decode())
        assert came.startswith(b"HTTP/1.1 200")
        assert site.admits(token)


@contextmanager
def away(folder: Path) -> Iterator[None]:
    """Make the tokens unreadable for a while."""
    engines.execute(folder, "ALTER TABLE access_token RENAME TO hidden")
    try:
        yield
    finally:
        engines.execute(folder, "ALTER TABLE hidden RENAME TO access_token")
