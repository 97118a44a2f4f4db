"""Standard input in either framing: a message on each line, as the protocol says, or behind a header.

Clients of the time before that rule write ``Content-Length: N``, an empty line and N bytes, expect answers in
the same form, and begin without a handshake. The first byte tells which client it is, and the handshake is
made for it; the server itself sees lines only.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any, BinaryIO, cast

_MARK = b"C"
_HELLO_ID = "npl-handshake"
_HELLO = {
    "jsonrpc": "2.0",
    "id": _HELLO_ID,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "content-length", "version": "0"},
    },
}
_READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LONGEST_HEADER = 8_192
_HEADERS = 16


class FramedInput(io.RawIOBase):
    """Messages with headers as lines; the handshake comes first unless the client makes it itself.

    :param source: what the client writes.
    :param limit: bytes of the longest message; at a longer one the input counts as ended.
    """

    def __init__(self, source: BinaryIO, limit: int) -> None:
        self._source = source
        self._limit = limit
        self._rest = b""
        self._begun = False

    def readable(self) -> bool:
        """Say that it is to be read from."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Return what is left of a message, or the beginning of the next; 0 at the end."""
        self._rest = self._rest or self._next()
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def _next(self) -> bytes:
        length = self._length()
        body = b"" if length is None else self._source.read(length)
        if length is None or len(body) < length:
            return b""
        # Outside of strings a line ending is a blank, and in strings there is none.
        line = body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        if not self._begun:
            self._begun = True
            if not _is_hello(body):
                line = _line(_HELLO) + _line(_READY) + line
        return line

    def _length(self) -> int | None:
        """Read the headers of a message, in any order; ``None`` where there are none."""
        length = None
        for _ in range(_HEADERS):
            header = self._source.readline(_LONGEST_HEADER).strip()
            name, _, value = header.partition(b":")
            if not header:
                break
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
        return length if length is not None and length <= self._limit else None


class FramedOutput(io.RawIOBase):
    """Writes each line as a message with a header; the answer to the handshake made here is dropped.

    :param target: what the client reads.
    """

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._rest = b""

    def writable(self) -> bool:
        """Say that it is to be written to."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes; whole lines are sent."""
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("id") != _HELLO_ID:
                # Some of these clients count characters; of ASCII there are as many as bytes.
                body = json.dumps(message, separators=(",", ":")).encode("ascii")
                self._target.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._target.flush()
        return len(data)


def accept_headers(limit: int) -> None:
    """Wait for the first byte of standard input; where it begins a header, put streams of lines in its place.

    :param limit: bytes of the longest message; at a longer one the input counts as ended.
    """
    lines = cast("io.TextIOWrapper", sys.stdin)
    source = cast("io.BufferedReader", lines.buffer)
    if source.peek(1)[:1] != _MARK:
        return
    lines.detach()
    framed = FramedInput(source, limit)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(framed), encoding="utf-8", errors="replace")
    target = os.fdopen(os.dup(1), "wb")
    # What is printed by accident must not stand between two messages.
    os.dup2(2, 1)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(FramedOutput(target)), encoding="utf-8")


def _is_hello(body: bytes) -> bool:
    try:
        message = json.loads(body)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
