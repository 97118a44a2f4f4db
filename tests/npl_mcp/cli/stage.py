"""A server that plays a script of a test."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable

from npl_mcp import __version__
from npl_mcp.cli.transports.base import Address

HEALTHY = json.dumps({"ok": True, "name": "npl", "version": __version__}).encode()
DONE = b'{"success":true,"data":{"n":1}}'


def message(body: bytes, status: bytes = b"200 OK", *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])


Play = Callable[[socket.socket], object]


class Stage:
    """A server that plays one script per connection.

    :param path: of its socket; without one it listens on loopback.
    """

    def __init__(self, play: Play, path: str = "") -> None:
        self._play = play
        if path:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(path)
            self._socket.listen()
            self.where = Address("x", "", 0, path=path)
        else:
            self._socket = socket.create_server(("127.0.0.1", 0))
            self.port = self._socket.getsockname()[1]
            self.where = Address("http://test", "127.0.0.1", self.port)
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self.ended.is_set():
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            with line:
                line.settimeout(20)
                with contextlib.suppress(OSError):  # the client has gone
                    self._play(line)

    def close(self) -> None:
        if not self.ended.is_set():
            self.ended.set()
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._thread.join()


def heard(line: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(header[15:]) for header in head.split(b"\r\n") if header.startswith(b"Content-Length:")), 0
    )
    while len(body) < length:
        body += line.recv(65536)
    return head + b"\r\n\r\n" + body


def playing(*answers: bytes, requests: list[bytes] | None = None) -> Play:
    """Answer each request with the next answer, then close.

    :param requests: gets the requests.
    """

    def play(line: socket.socket) -> None:
        for answer in answers:
            request = heard(line)
            if requests is not None:
                requests.append(request)
            line.sendall(answer)

    return play
