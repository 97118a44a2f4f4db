"""Standard input and output as the protocol's SDK wants them: one message a line.

Three things come between. The SDK reads lines of any length, and as many as come, into memory. It says
nothing to a message that it cannot read. So each message is measured and read here first: what cannot be read
is answered with an error, and the next one waits while there is much to do. And clients of the time before
tools, which Directive promises to serve, write each message behind a header as the Language Server Protocol
does (``Content-Length: N``, an empty line, N bytes), expect answers in the same form, and begin without a
handshake. The first byte tells which client it is.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from npl_mcp.server.messages import excess, identity
from npl_mcp.tools.errors import shortened

MOST_AT_ONCE = 12
"""Requests that are worked on at one time: each may hold an answer as long as the largest artifact, which a
client that does not read leaves in memory.
"""

MOST_BODIES = 3
"""Requests of the greatest length that are worked on at one time; several copies of each are made."""

_NO_REQUEST = (
    'not a message of JSON-RPC: "jsonrpc" is "2.0", "method" a text, "id" a text or a whole number, '
    '"params" an object'
)

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
_LONGEST_LENGTH = 16
_BLOCK = 1_048_576
_HEAD = 512
_LONGEST_ID = 200
_ANSWER_BEGINS = b'{"jsonrpc":"2.0","id":'


class InFlight:
    """The requests that have been read and not been answered.

    :param most: their number.
    :param most_bytes: their length together; a single one may be longer.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        # FastMCP tells every id as a text; two that are then alike share what they take.
        self._bytes: dict[str, list[int]] = {}
        self._count = self._total = 0
        self._changed = threading.Condition()

    def add(self, request: int | str, size: int) -> None:
        """Wait until there is room for a request, and count it."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(size))
            self._bytes.setdefault(str(request), []).append(size)
            self._count += 1
            self._total += size

    def remove(self, request: int | str | None) -> None:
        """Count a request no longer: it is answered, or it was cancelled and gets no answer."""
        with self._changed:
            sizes = None if request is None else self._bytes.get(str(request))
            if sizes:
                self._total -= sizes.pop()
                self._count -= 1
                if not sizes:
                    del self._bytes[str(request)]
                self._changed.notify()

    def place(self, request: int | str | None) -> RequestPlace:
        """Return the place of a request; one that waits for something new is not worked on."""
        return RequestPlace(self, request)

    def _has_room(self, size: int) -> bool:
        return not self._count or (self._count < self._most and self._total + size <= self._most_bytes)


@dataclass(frozen=True, slots=True)
class RequestPlace:
    """A request's place among those in flight."""

    in_flight: InFlight
    request: int | str | None

    def begun(self) -> None:
        """Do nothing: there is no door, since messages arrive one after the other."""

    def leave(self) -> None:
        """Count the request no longer."""
        self.in_flight.remove(self.request)


class LineOutput(io.RawIOBase):
    """Writes each message on a line, whole, whoever writes at the same time.

    :param target: what the client reads.
    :param in_flight: told what is answered.
    """

    def __init__(self, target: BinaryIO, in_flight: InFlight) -> None:
        self._target, self._in_flight = target, in_flight
        self._parts: list[bytes] = []
        self._lock = threading.Lock()

    def writable(self) -> bool:
        """Return ``True``."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes and send the lines that are complete."""
        *lines, rest = bytes(data).split(b"\n")
        for line in lines:
            whole = b"".join((*self._parts, line))
            self._parts.clear()
            self.send(whole)
            self._in_flight.remove(_answered(whole))
        self._parts.append(rest)
        return len(data)

    def send(self, message: bytes) -> None:
        """Send a message; end the process as a signal does if the client is gone, which may keep its side of
        standard input open.
        """
        with self._lock:
            try:
                self._put(message)
                self._target.flush()
            except ConnectionError:
                os._exit(0)

    def _put(self, message: bytes) -> None:
        self._target.write(message)
        self._target.write(b"\n")


class HeaderOutput(LineOutput):
    """Writes each message behind a header; the answer to the handshake made here is dropped."""

    def _put(self, message: bytes) -> None:
        content = json.loads(message)
        if content.get("id") != _HANDSHAKE_ID:
            # Some of these clients count characters; in ASCII there are as many as bytes.
            body = json.dumps(content, separators=(",", ":")).encode("ascii")
            self._target.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)


class LineInput(io.RawIOBase):
    """The messages that can be read, each on a line; all others are answered here.

    :param source: what the client writes.
    :param limit: bytes of the longest message.
    :param output: where errors go.
    :param in_flight: told what is asked.
    """

    def __init__(self, source: BinaryIO, limit: int, output: LineOutput, in_flight: InFlight) -> None:
        self._source, self._limit = source, limit
        self._output, self._in_flight = output, in_flight
        self._messages = self._read()
        self._message = io.BytesIO()

    def readable(self) -> bool:
        """Return ``True``."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with what is left of a message, or the beginning of the next; return 0 at the end."""
        count = self._message.readinto(buffer)
        if not count:
            with suppress(ConnectionError):  # the client is gone, which is the end
                self._message = io.BytesIO(next(self._messages, b""))
            count = self._message.readinto(buffer)
        return count

    def _read(self) -> Iterator[bytes]:
        """Yield the lines with messages that can be read."""
        while line := self._source.readline(self._limit + 1):
            if line.endswith(b"\n") or len(line) <= self._limit:
                yield from self._checked(line)
            else:
                self._refuse_long(line, self._end_of_line())

    def _end_of_line(self) -> bytes:
        """Skip the rest of a line and return its last bytes."""
        end = b""
        while part := self._source.readline(_BLOCK):
            end = (end + part)[-_HEAD:]
            if part.endswith(b"\n"):
                break
        return end

    def _checked(self, line: bytes) -> Iterator[bytes]:
        """Yield a message that the SDK can read; answer any other."""
        if line.isspace():
            return
        if problem := excess(line):
            self._refuse(INVALID_REQUEST, f"the message has {problem}", identity(line))
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            if first["type"] == "json_invalid":
                self._refuse(PARSE_ERROR, f"{first['msg']}; send JSON in UTF-8", identity(line))
            else:
                self._refuse(INVALID_REQUEST, _NO_REQUEST, identity(line))
            return
        if isinstance(message, JSONRPCRequest):
            self._in_flight.add(message.id, len(line))
        elif isinstance(message, JSONRPCNotification):
            # With an id of a wrong type it is taken for a notification, which nobody answers.
            if b'"id"' in line and "id" in from_json(line):
                self._refuse(INVALID_REQUEST, _NO_REQUEST, None)
                return
            if message.method == "notifications/cancelled":
                self._in_flight.remove(_request_id(message.params))
        yield line if line.endswith(b"\n") else line + b"\n"

    def _refuse_long(self, start: bytes, end: bytes) -> None:
        problem = (
            f"the message is longer than {self._limit:,} bytes; set NPL_MCP_MAX_BODY_BYTES to allow more"
        )
        self._refuse(INVALID_REQUEST, problem, identity(start, end))

    def _refuse(self, code: int, problem: str, request: int | str | None) -> None:
        error = {"code": code, "message": shortened(problem)}
        self._output.send(_line({"jsonrpc": "2.0", "id": request, "error": error}))


class HeaderInput(LineInput):
    """Messages behind headers, as lines; the handshake is put first unless the client makes it itself.

    Headers that cannot be read end the input: nobody knows where the next message begins.
    """

    def _read(self) -> Iterator[bytes]:
        begun = False
        while (length := self._length()) is not None:
            if length > self._limit:
                self._skip(length)
                continue
            body = self._source.read(length)
            if len(body) < length:
                return
            if not begun:
                begun = True
                if not _is_handshake(body):
                    yield _line(_HANDSHAKE) + b"\n" + _line(_INITIALIZED) + b"\n"
            # Outside of strings a line ending is white space, and inside of strings JSON has none.
            yield from self._checked(body.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")

    def _skip(self, length: int) -> None:
        start = self._source.read(self._limit)
        end, left = b"", length - len(start)
        while left > 0 and (part := self._source.read(min(left, _BLOCK))):
            end, left = (end + part)[-_HEAD:], left - len(part)
        self._refuse_long(start, end)

    def _length(self) -> int | None:
        """Read the headers of a message, in any order; return ``None`` where none says its length."""
        length = None
        for number in range(_HEADERS):
            header = self._source.readline(_LONGEST_HEADER)
            if not number and not header:
                return None
            name, _, value = header.strip().partition(b":")
            if not name:
                break
            value = value.strip()
            if name.strip().lower() == b"content-length" and value.isdigit() and len(value) < _LONGEST_LENGTH:
                length = int(value)
        if length is None:
            self._refuse(PARSE_ERROR, "no header says how long the message is; send its Content-Length", None)
        return length


def requests_in_flight(limit: int) -> InFlight:
    """Return what counts the requests of a client.

    :param limit: bytes of the longest message.
    """
    return InFlight(MOST_AT_ONCE, MOST_BODIES * limit)


def open_streams(limit: int, in_flight: InFlight) -> None:
    """Wait for the first byte of standard input, then put streams of lines in the place of the standard ones.

    :param limit: bytes of the longest message.
    :param in_flight: told of requests and answers.
    """
    stdin = sys.stdin.fileno()
    source = io.BufferedReader(io.FileIO(os.dup(stdin), "rb"), _BLOCK)
    target = os.fdopen(os.dup(1), "wb")
    # Programs that this one runs must not read the client's messages, and what is printed by accident must
    # not stand between two answers.
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is wanted, not a path
        os.dup2(nothing.fileno(), stdin)
    os.dup2(2, 1)
    headers = source.peek(1)[:1] == _HEADER_BEGINS
    output = (HeaderOutput if headers else LineOutput)(target, in_flight)
    lines = (HeaderInput if headers else LineInput)(source, limit, output, in_flight)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(lines, _BLOCK), encoding="utf-8", errors="replace")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8")


def _answered(line: bytes) -> int | str | None:
    """Return the id of the request that an answer belongs to; ``None`` for other messages."""
    if not line.startswith(_ANSWER_BEGINS):
        return None
    # The SDK writes the id before all that may be long.
    start = line[: len(_ANSWER_BEGINS) + 6 * _LONGEST_ID + 2].decode("utf-8", "replace")
    found, _ = json.JSONDecoder().raw_decode(start, len(_ANSWER_BEGINS))
    return found if isinstance(found, int | str) else None


def _request_id(params: dict[str, Any] | None) -> int | str | None:
    found = (params or {}).get("requestId")
    return found if isinstance(found, int | str) else None


def _is_handshake(body: bytes) -> bool:
    try:
        message = json.loads(body)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("method") == "initialize"


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("utf-8", "replace")
