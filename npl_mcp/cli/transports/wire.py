"""One request to this machine over HTTP, by hand: the packages that could do it take longer to load than the
answer takes. Requests to other machines are made by :mod:`npl_mcp.cli.transports.far`.

Reads what RFC 9112 says an answer may look like, and no more: a status line, headers, a body with its length,
in chunks, or up to the end of the connection.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping
from typing import NamedTuple

from npl_mcp import __version__

CONNECT = 0.25
"""Seconds to connect on this machine."""

CONNECT_FAR = 1.0
"""Seconds to connect to another machine."""

LONGEST_HEAD = 16 * 1024
LONGEST_BODY = 64 * 1024 * 1024
"""Bytes of an answer; the largest artifact fits in several times."""

LOCAL = ("127.0.0.1", "localhost", "::1")
"""Hosts that are this machine."""

_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(/[^\s?#]*)?")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BLOCK = 64 * 1024


class WireError(Exception):
    """A server was not reached, or did not answer as it should.

    :param problem: what is wrong.
    :param sent: the call was sent whole, and may have been carried out.
    :param absent: nothing is there that could answer.
    """

    def __init__(self, problem: str, *, sent: bool = False, absent: bool = False) -> None:
        self.problem, self.sent, self.absent = problem, sent, absent
        super().__init__(problem)


class Address(NamedTuple):
    """Where a server is.

    :param name: as the user would write it.
    :param host: its name or number; empty for a socket.
    :param port: its port.
    :param path: of the socket.
    :param prefix: what stands before ``/mcp`` in the URL.
    :param secure: TLS is asked for.
    """

    name: str
    host: str
    port: int
    path: str = ""
    prefix: str = ""
    secure: bool = False

    @property
    def local(self) -> bool:
        """Whether it is on this machine, without TLS."""
        return self.host in ("", *LOCAL) and not self.secure

    def same_as(self, *others: Address | None) -> bool:
        """Whether it is that of one of the others, however it is written."""
        return any(other is not None and self[1:] == other[1:] for other in others)


def address(text: str) -> Address | None:
    """Read the address of a server; ``None`` if it is none.

    :param text: ``http://host:port``, with ``/mcp`` at its end or not, ``https://…``, or ``unix:/path``.
    """
    if text.startswith("unix:"):
        usable = bool(text[5:]) and hasattr(socket, "AF_UNIX")  # which not every system has
        return Address(text, "", 0, path=text[5:]) if usable else None
    found = _URL.fullmatch(text)
    if found is None:
        return None
    scheme, host, port, path = found.groups()
    number = int(port) if port else {"http": 80, "https": 443}[scheme]
    if not 0 < number < 65536:
        return None
    before = (path or "").rstrip("/").removesuffix("/mcp").rstrip("/")
    return Address(text, host.strip("[]").lower(), number, prefix=before, secure=scheme == "https")


class Answer(NamedTuple):
    """What a server sent.

    :param status: its code.
    :param headers: by name in small letters.
    :param body: its bytes.
    """

    status: int
    headers: dict[str, str]
    body: bytes


class Line:
    """A connection to a server.

    :param where: its address.
    :raises WireError: nobody is there.
    """

    def __init__(self, where: Address) -> None:
        self._where = where
        self._rest = b""
        self._end = 0.0
        try:
            self._socket = _connected(where, CONNECT)
        except TimeoutError:
            raise WireError(f"does not answer within {CONNECT:g} s") from None
        except (OSError, ValueError) as error:  # ValueError: a name that cannot be one, a path with a NUL
            reason = getattr(error, "strerror", None) or str(error)
            raise WireError(f"cannot be reached: {reason}", absent=True) from None

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def ask(
        self, method: str, path: str, headers: Mapping[str, bytes], body: bytes, seconds: float
    ) -> Answer:
        """Send a request and read the answer.

        :param headers: beside those that every request needs; values without control characters.
        :param seconds: time for both.
        :raises WireError: no answer came, or one that cannot be read.
        """
        self._end = time.monotonic() + seconds
        data = _request(self._where, method, path, headers, body)
        sent = False
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(data)
            sent = method != "GET"  # which changes nothing
            return self._answer()
        except TimeoutError:
            raise WireError(f"does not answer within {seconds:g} s", sent=sent) from None
        except OSError as error:
            raise WireError(f"ended the connection: {error.strerror or error}", sent=sent) from None
        except _Garbage as error:
            raise WireError(str(error), sent=sent) from None

    def _answer(self) -> Answer:
        while True:
            head = self._until(b"\r\n\r\n", LONGEST_HEAD)
            first, *rest = head.split(b"\r\n")
            found = _STATUS.fullmatch(first)
            if found is None:
                raise _Garbage("does not speak HTTP")
            status = int(found[1])
            if status >= 200:  # before it there may be remarks that are no answer
                break
        headers = _headers(rest)
        return Answer(status, headers, self._body(status, headers))

    def _body(self, status: int, headers: dict[str, str]) -> bytes:
        length, coding = headers.get("content-length"), headers.get("transfer-encoding")
        if coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise _Garbage("sends an answer of unknown length")
            return self._chunks()
        if status in (204, 304):
            return b""
        if length is None:
            return self._to_the_end()
        if not length.isascii() or not length.isdigit() or len(length) > 15:
            raise _Garbage("sends an answer of unknown length")
        if int(length) > LONGEST_BODY:
            raise _Garbage(f"answers with more than {LONGEST_BODY >> 20} MiB")
        return self._exactly(int(length))

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        total = 0
        while True:
            size = self._until(b"\r\n", 1024).partition(b";")[0].strip()
            if re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size) is None:
                raise _Garbage("sends an answer of unknown length")
            count = int(size, 16)
            total += count
            if total > LONGEST_BODY:
                raise _Garbage(f"answers with more than {LONGEST_BODY >> 20} MiB")
            if count == 0:
                break
            parts.append(self._exactly(count))
            if self._exactly(2) != b"\r\n":
                raise _Garbage("sends an answer of unknown length")
        for _ in range(64):
            if not self._until(b"\r\n", 1024):
                return b"".join(parts)
        raise _Garbage("sends an answer without end")

    def _to_the_end(self) -> bytes:
        parts = [self._rest]
        total = len(self._rest)
        while block := self._receive():
            parts.append(block)
            total += len(block)
            if total > LONGEST_BODY:
                raise _Garbage(f"answers with more than {LONGEST_BODY >> 20} MiB")
        return b"".join(parts)

    def _exactly(self, count: int) -> bytes:
        parts = [self._rest[:count]]
        self._rest = self._rest[count:]
        missing = count - len(parts[0])
        while missing:
            block = self._some()
            parts.append(block[:missing])
            self._rest = block[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    def _until(self, mark: bytes, most: int) -> bytes:
        """Read up to a mark, which is not given."""
        data = self._rest
        while (at := data.find(mark)) < 0:
            if len(data) > most:
                raise _Garbage("does not speak HTTP")
            data += self._some()
        self._rest = data[at + len(mark) :]
        return data[:at]

    def _some(self) -> bytes:
        block = self._receive()
        if not block:
            raise _Garbage("ended the connection before its answer was complete")
        return block

    def _receive(self) -> bytes:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket.recv(_BLOCK)


def _connected(where: Address, seconds: float) -> socket.socket:
    if not where.host:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.settimeout(seconds)
            line.connect(where.path)
        except BaseException:
            line.close()
            raise
        return line
    return socket.create_connection((where.host, where.port), seconds)


class _Garbage(Exception):  # noqa: N818 - becomes a WireError at once
    """What a server sent cannot be an answer."""


def _request(where: Address, method: str, path: str, headers: Mapping[str, bytes], body: bytes) -> bytes:
    host = f"[{where.host}]" if ":" in where.host else where.host
    lines = [
        f"{method} {path} HTTP/1.1".encode("ascii"),
        f"Host: {host}:{where.port}".encode("ascii") if host else b"Host: localhost",
        f"User-Agent: npl-cli/{__version__}".encode("ascii"),
        *(name.encode("ascii") + b": " + value for name, value in headers.items()),
    ]
    if method == "POST":
        lines.append(f"Content-Length: {len(body)}".encode("ascii"))
    return b"\r\n".join([*lines, b"", body])


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or _NAME.fullmatch(name) is None:
            raise _Garbage("does not speak HTTP")
        key, text = name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")
        if key in ("content-length", "transfer-encoding") and headers.get(key, text) != text:
            raise _Garbage("sends an answer of unknown length")
        headers[key] = text
    return headers
