"""Servers on other machines: the same promises, kept through httpx."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from npl_mcp.cli.transports import remote
from npl_mcp.cli.transports.addresses import Address
from npl_mcp.cli.transports.base import TransportError
from npl_mcp.cli.transports.remote import RemoteConnection
from tests.npl_mcp.cli.stage import DONE, Play, Stage, heard, message, playing


def asked(where: Address, method: str = "POST", seconds: float = 5.0) -> bytes:
    line = RemoteConnection(where)
    try:
        return line.request(method, "/mcp/tools/x", {"Authorization": b"Bearer t"}, b"{}", seconds).body
    finally:
        line.close()


def test_an_answer_is_read_and_the_token_sent(stage: Callable[[Play], Stage]) -> None:
    """The request has what was given, and says who asks."""
    requests: list[bytes] = []

    def play(line: socket.socket) -> None:
        requests.append(heard(line))
        line.sendall(message(DONE))

    assert asked(stage(play).where) == DONE
    assert b"\r\nauthorization: bearer t\r\n" in requests[0].lower()
    assert b"\r\nuser-agent: npl-cli/" in requests[0].lower()


BROKEN = {
    "closed at once": b"",
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_no_answer_is_an_error(stage: Callable[[Play], Stage], case: str, method: str) -> None:
    """A call that was sent whole is told apart from a question that changes nothing."""
    with pytest.raises(TransportError) as raised:
        asked(stage(playing(BROKEN[case])).where, method)
    assert raised.value.sent is (method == "POST")


def test_a_server_that_hangs_is_given_up(stage: Callable[[Play], Stage]) -> None:
    """After the time the caller names."""
    theatre: list[Stage] = []

    def play(line: socket.socket) -> None:
        heard(line)
        theatre[0].ended.wait(10)

    theatre.append(stage(play))
    with pytest.raises(TransportError, match=r"does not answer within 0\.2 s") as raised:
        asked(theatre[0].where, seconds=0.2)
    assert raised.value.sent
    theatre[0].ended.set()


def test_nobody_is_there() -> None:
    """A port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(TransportError, match="cannot be reached") as raised:
        asked(Address("http://test", "127.0.0.1", port))
    assert raised.value.absent


def test_an_answer_without_end_is_cut_off(
    stage: Callable[[Play], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server can fill this machine's memory."""
    monkeypatch.setattr(remote, "MAX_BODY_BYTES", 1000)
    with pytest.raises(TransportError, match="answers with more"):
        asked(stage(playing(message(b"x" * 5000))).where)
