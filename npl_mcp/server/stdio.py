"""The protocol over standard input and output: one message a line, or one behind each header.

The SDK's own streams read lines of any length into memory, take as many requests as come, and drop a message
that they cannot parse. These streams bound what is in memory, and answer such a message with an error.

Clients from before there were tools, which Directive promises to serve, write each message behind a header as
the Language Server Protocol does (``Content-Length: N``, an empty line, N bytes), expect answers in the same
form, and begin without a handshake. The first byte of the input tells which client it is.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastmcp import FastMCP
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from npl_mcp.core.calls import Caller
from npl_mcp.server.fastmcp_private import sdk_server
from npl_mcp.server.messages import LONGEST_END, excess, identity
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
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_CANCELLED = "notifications/cancelled"
_LONGEST_HEADER = 8_192
_HEADERS = 16
_LONGEST_LENGTH = 16
_BLOCK = 1_048_576


class InFlight:
    """The requests that have been read and have no answer yet.

    :param most_bytes: their length together; a single request may be longer.
    :param most: their number.
    """

    def __init__(self, most_bytes: int, most: int = MOST_AT_ONCE) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._requests: list[tuple[str, int]] = []  # FastMCP gives every id as a text
        self._left = anyio.Event()

    async def add(self, request: int | str, size: int) -> None:
        """Wait until there is room for a request, and count it."""
        while not self._has_room(size):
            await self._left.wait()
        self._requests.append((str(request), size))

    def remove(self, request: object) -> None:
        """Stop counting a request: it has its answer, or was cancelled and gets none."""
        found = next((one for one in self._requests if one[0] == str(request)), None)
        if found is not None:
            self._requests.remove(found)
            self._left.set()
            self._left = anyio.Event()

    def caller(self, request: int | str | None) -> Caller:
        """Return who makes a request, which leaves its place when it waits for something new."""
        return Caller(leave=partial(self.remove, request))

    def _has_room(self, size: int) -> bool:
        total = sum(one for _, one in self._requests) + size
        return not self._requests or (len(self._requests) < self._most and total <= self._most_bytes)


IN_FLIGHT: ContextVar[InFlight | None] = ContextVar("npl-in-flight", default=None)
"""The requests of the client over standard streams, if there is one."""


class Lines:
    """One message a line.

    :param source: what the client writes.
    :param target: what the client reads.
    """

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source, self._target = source, target

    def messages(self, limit: int) -> Iterator[bytes]:
        """Yield each message; of one with more bytes than the limit, its beginning and its end."""
        while line := self._source.readline(limit + 1):
            end, last = b"", line
            while len(line) > limit and not last.endswith(b"\n") and (last := self._source.readline(_BLOCK)):
                end = (end + last)[-LONGEST_END:]
            if not line.isspace():
                yield (line + end).removesuffix(b"\n")

    def write(self, message: JSONRPCMessage) -> None:
        """Write a message; end the process as a signal does if the client is gone, which may keep its side of
        standard input open.
        """
        try:
            self._target.write(self._framed(message))
            self._target.flush()
        except ConnectionError:
            os._exit(0)

    def _framed(self, message: JSONRPCMessage) -> bytes:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class Headers(Lines):
    """Each message behind a header; the client need not shake hands."""

    def messages(self, limit: int) -> Iterator[bytes]:
        """Yield each message, as :meth:`Lines.messages` does.

        :raises UnreadableError: a header has no length. It is unknown where the next message begins.
        """
        yield _INITIALIZED
        while (length := self._length()) is not None:
            body = self._source.read(min(length, limit + 1))
            left, end = length - len(body), b""
            while left and (part := self._source.read(min(left, _BLOCK))):
                left, end = left - len(part), (end + part)[-LONGEST_END:]
            if left:
                return
            yield body + end

    def _framed(self, message: JSONRPCMessage) -> bytes:
        # Some of these clients count characters; in ASCII there are as many as bytes.
        body = message.model_dump_json(by_alias=True, exclude_unset=True, ensure_ascii=True).encode()
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    def _length(self) -> int | None:
        """Read the headers of a message, in any order; return ``None`` at the end of the input."""
        length = None
        for number in range(_HEADERS):
            header = self._source.readline(_LONGEST_HEADER)
            if not number and not header:
                return None
            name, _, value = map(bytes.strip, header.partition(b":"))
            if not name:
                break
            if name.lower() == b"content-length" and value.isdigit() and len(value) < _LONGEST_LENGTH:
                length = int(value)
        if length is None:
            problem = "no header says how long the message is; send its Content-Length"
            raise UnreadableError(PARSE_ERROR, problem)
        return length


class UnreadableError(Exception):
    """A message that cannot be read.

    :param code: of the protocol.
    :param problem: what is wrong.
    :param request: its id, as far as it can be told.
    """

    def __init__(self, code: int, problem: str, request: int | str | None = None) -> None:
        super().__init__(problem)
        error = ErrorData(code=code, message=shortened(problem))
        self.answer = JSONRPCError(jsonrpc="2.0", id=request, error=error)


def parsed(content: bytes, limit: int) -> JSONRPCMessage:
    """Return a message.

    :param limit: bytes of the longest message.
    :raises UnreadableError: it is too long, has too many values or is not valid.
    """
    code, problem = INVALID_REQUEST, _NO_REQUEST
    if len(content) > limit:
        problem = f"the message is longer than {limit:,} bytes; set NPL_MCP_MAX_BODY_BYTES to allow more"
        raise UnreadableError(code, problem, identity(content))
    if much := excess(content):
        raise UnreadableError(code, f"the message has {much}", identity(content))
    try:
        message = jsonrpc_message_adapter.validate_json(content, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            code, problem = PARSE_ERROR, f"{first['msg']}; send JSON in UTF-8"
        raise UnreadableError(code, problem, identity(content)) from None
    # A request whose id has a wrong type looks like a notification, which gets no answer.
    if isinstance(message, JSONRPCNotification) and b'"id"' in content and "id" in from_json(content):
        raise UnreadableError(code, problem)
    return message


@asynccontextmanager
async def message_streams(
    client: Lines, limit: int, in_flight: InFlight
) -> AsyncIterator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """Exchange messages with a client: what it sends, and what it gets.

    :param limit: bytes of the longest message.
    :param in_flight: bounds the requests in memory.
    """
    inward, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outward, to_write = anyio.create_memory_object_stream[SessionMessage]()
    contents = client.messages(limit)

    def read() -> tuple[JSONRPCMessage, int] | None:
        with suppress(ConnectionError):  # the client is gone, which is the end
            if (content := next(contents, None)) is not None:
                return parsed(content, limit), len(content)
        return None

    async def receive(refused: MemoryObjectSendStream[SessionMessage]) -> None:
        with suppress(anyio.BrokenResourceError):
            async with inward, refused:
                while True:
                    try:
                        came = await anyio.to_thread.run_sync(read)
                    except UnreadableError as error:
                        await refused.send(SessionMessage(error.answer))
                        continue
                    if came is None:
                        return
                    message, size = came
                    if isinstance(message, JSONRPCRequest):
                        await in_flight.add(message.id, size)
                    elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
                        in_flight.remove((message.params or {}).get("requestId"))
                    await inward.send(SessionMessage(message))

    async def send() -> None:
        async with to_write:
            async for one in to_write:
                await anyio.to_thread.run_sync(client.write, one.message)
                if isinstance(one.message, JSONRPCResponse | JSONRPCError):
                    in_flight.remove(one.message.id)

    async with anyio.create_task_group() as group:
        group.start_soon(receive, outward.clone())
        group.start_soon(send)
        yield received, outward


def connect() -> Lines:
    """Wait for the first byte of standard input; return the client that writes it.

    Programs that this one runs must not read the client's messages, and what is printed by accident must not
    stand between two answers: standard input becomes empty, and standard output becomes standard error.
    """
    source = io.BufferedReader(io.FileIO(os.dup(0), "rb"), _BLOCK)
    target = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is wanted, not a path
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    os.dup2(2, 1)
    return (Headers if source.peek(1)[:1] == _HEADER_BEGINS else Lines)(source, target)


async def serve(server: FastMCP[Any], client: Lines, limit: int) -> None:
    """Serve a client until its input ends.

    :param limit: bytes of the longest message.
    """
    inside, in_flight = sdk_server(server), InFlight(MOST_BODIES * limit)
    IN_FLIGHT.set(in_flight)
    async with message_streams(client, limit, in_flight) as (received, outward):
        await inside.run(received, outward, inside.create_initialization_options())
