"""Standard input and output as the protocol's SDK wants them: one message a line.

Two things come between. Lines have a greatest length, since the SDK would read one of any length into memory.
And clients of the time before tools, which Directive promises to serve, write each message behind a header as
the Language Server Protocol does (``Content-Length: N``, an empty line, N bytes), expect answers in the same
form, and begin without a handshake. The first byte tells which client it is.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any, BinaryIO

_HEADER_BEGINS = b"C"
_HANDSHAKE_ID = "npl-handshake"
_HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": _HANDSHAKE_ID,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "content-length", "version": "0"},
    },
}
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LONGEST_HEADER = 8_192
_HEADERS = 16
_SKIPPED_BYTES = 65_536


class LineInput(io.RawIOBase):
    """A message on each line; a line above the limit is cut off, after which it is no message any more.

    :param source: what the client writes.
    :param limit: bytes of the longest line.
    """

    def __init__(self, source: BinaryIO, limit: int) -> None:
        self._source = source
        self._limit = limit
        self._message = io.BytesIO()

    def readable(self) -> bool:
        """Return ``True``."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with what is left of a message, or the beginning of the next; return 0 at the end."""
        count = self._message.readinto(buffer)
        if not count:
            self._message = io.BytesIO(self._next())
            count = self._message.readinto(buffer)
        return count

    def _next(self) -> bytes:
        line = rest = self._source.readline(self._limit)
        while rest and not rest.endswith(b"\n"):
            rest = self._source.readline(_SKIPPED_BYTES)
        return line + b"\n" if rest and not line.endswith(b"\n") else line


class HeaderInput(LineInput):
    """Messages behind headers, as lines; the handshake is put first unless the client makes it itself.

    A message above the limit, or one whose headers cannot be read, ends the input.
    """

    _begun = False

    def _next(self) -> bytes:
        length = self._length()
        body = b"" if length is None else self._source.read(length)
        if length is None or len(body) < length:
            return b""
        # Outside of strings a line ending is white space, and inside of strings JSON has none.
        line = body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        if not self._begun:
            self._begun = True
            if not _is_handshake(body):
                line = _line(_HANDSHAKE) + _line(_INITIALIZED) + line
        return line

    def _length(self) -> int | None:
        """Read the headers of a message, in any order; return ``None`` where none says its length."""
        length = None
        for _ in range(_HEADERS):
            header = self._source.readline(_LONGEST_HEADER).strip()
            name, _, value = header.partition(b":")
            if not header:
                break
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
        return length if length is not None and length <= self._limit else None


class HeaderOutput(io.RawIOBase):
    """Writes each line as a message behind a header; the answer to the handshake made here is dropped.

    :param target: what the client reads.
    """

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._rest = b""

    def writable(self) -> bool:
        """Return ``True``."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes and send the lines that are complete."""
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("id") != _HANDSHAKE_ID:
                # Some of these clients count characters; in ASCII there are as many as bytes.
                body = json.dumps(message, separators=(",", ":")).encode("ascii")
                self._target.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._target.flush()
        return len(data)


def open_streams(limit: int) -> None:
    """Wait for the first byte of standard input, then put streams of lines in the place of the standard ones.

    :param limit: bytes of the longest message.
    """
    stdin = sys.stdin.fileno()
    source = io.BufferedReader(io.FileIO(os.dup(stdin), "rb"))
    # Programs that this one runs must not read the client's messages.
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is wanted, not a path
        os.dup2(nothing.fileno(), stdin)
    headers = source.peek(1)[:1] == _HEADER_BEGINS
    lines = HeaderInput(source, limit) if headers else LineInput(source, limit)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(lines), encoding="utf-8", errors="replace")
    if headers:
        target = os.fdopen(os.dup(1), "wb")
        # What is printed by accident must not stand between two messages.
        os.dup2(2, 1)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(HeaderOutput(target)), encoding="utf-8")


def _is_handshake(body: bytes) -> bool:
    try:
        message = json.loads(body)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
