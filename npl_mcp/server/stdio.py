"""The protocol over standard input and output: one message per line, or one after each header.

The SDK's streams read lines of any length into memory and drop a message that they cannot parse. The classes
of this module replace them: they limit a message, and answer an unreadable one with an error.

Directive promises to serve clients older than tools. These write each message after a header, like the
Language Server Protocol (``Content-Length: N``, an empty line, N bytes), expect answers in the same form, and
begin without a handshake. The first byte of the input distinguishes the two kinds of clients.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, BinaryIO, TypeVar

import anyio
import anyio.to_thread
import mcp_types as protocol
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from fastmcp import FastMCP
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import from_json

from npl_mcp.calls.messages import MAX_END, exceeded, request_id
from npl_mcp.server.fastmcp_private import sdk_server
from npl_mcp.tools.contract.error_codes import shortened

T = TypeVar("T")

_NO_REQUEST = (
    'not a JSON-RPC message: "jsonrpc" must be "2.0", "method" a string, "id" a string or an integer, '
    '"params" an object'
)

LAST_SECONDS = 60.0
"""Maximum seconds for the answers to calls in flight at the end of the input; a call may wait as long."""

CANCELLED = "notifications/cancelled"
"""The method of the message that a client no longer wants an answer."""

_HEADER_BEGINS = b"C"
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_MAX_HEADER = 8_192
_HEADERS = 16
_MAX_LENGTH = 16
_BLOCK = 1_048_576


class UnreadableError(Exception):
    """An unreadable message.

    :param code: the protocol's error code.
    :param problem: the mistake in the message.
    :param request: the id of the request; ``None`` if it is unknown.
    """

    def __init__(self, code: int, problem: str, request: int | str | None = None) -> None:
        super().__init__(problem)
        error = protocol.ErrorData(code=code, message=shortened(problem))
        self.answer = protocol.JSONRPCError(jsonrpc="2.0", id=request, error=error)


def check(content: bytes, limit: int) -> protocol.JSONRPCMessage:
    """Parse a message.

    :param limit: the maximum bytes of a message.
    :raises UnreadableError: the message is too long, has too many values or is not valid.
    """
    code, problem = protocol.INVALID_REQUEST, _NO_REQUEST
    if len(content) > limit:
        problem = f"the message is longer than {limit:,} bytes; set NPL_MCP_MAX_BODY_BYTES to allow more"
        raise UnreadableError(code, problem, request_id(content))
    if surplus := exceeded(content):
        raise UnreadableError(code, f"the message has {surplus}", request_id(content))
    try:
        message = protocol.jsonrpc_message_adapter.validate_json(content, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            code, problem = protocol.PARSE_ERROR, f"{first['msg']}; send JSON in UTF-8"
        raise UnreadableError(code, problem, request_id(content)) from None
    # A request with an id of a wrong type looks like a notification, which gets no answer.
    is_notification = isinstance(message, protocol.JSONRPCNotification)
    if is_notification and b'"id"' in content and "id" in from_json(content):
        raise UnreadableError(code, problem)
    return message


class Lines(ObjectReceiveStream[SessionMessage], ObjectSendStream[SessionMessage]):
    """A client with one message per line, as the stream of its messages and of the answers.

    The SDK ends all calls at the end of the input, which is therefore delayed until they have their answers.

    :param source: the client's output.
    :param target: the client's input.
    :param limit: the maximum bytes of a message.

    ``gone`` is called when the client reads no more; it may keep its output open.
    """

    def __init__(self, source: BinaryIO, target: BinaryIO, limit: int) -> None:
        self._source, self._target, self._limit = source, target, limit
        self._contents = self._read()
        self._unanswered: set[object] = set()
        self._sending = anyio.Lock()
        self.gone: Callable[[], object] = partial(os._exit, 0)

    async def receive(self) -> SessionMessage:
        """Return the next message that can be parsed; answer any other."""
        while (message := await in_thread(self._next)) is not None:
            if not isinstance(message, UnreadableError):
                return SessionMessage(message)
            await self.send(SessionMessage(message.answer))
        with anyio.move_on_after(LAST_SECONDS):
            while self._unanswered:
                await anyio.sleep(0.01)
        raise anyio.EndOfStream

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        try:
            async with self._sending:
                await in_thread(self._write, item.message)
        finally:
            if isinstance(item.message, protocol.JSONRPCResponse | protocol.JSONRPCError):
                self._unanswered.discard(item.message.id)

    async def aclose(self) -> None:
        """Do nothing: every message is sent already."""

    def _next(self) -> protocol.JSONRPCMessage | UnreadableError | None:
        try:
            content = next(self._contents, None)
            message = None if content is None else check(content, self._limit)
        except UnreadableError as error:
            return error
        except ConnectionError:  # the client is gone, which is the end
            return None
        if isinstance(message, protocol.JSONRPCRequest):
            self._unanswered.add(message.id)
        elif isinstance(message, protocol.JSONRPCNotification) and message.method == CANCELLED:
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, int | str):
                self._unanswered.discard(cancelled)
        return message

    def _read(self) -> Iterator[bytes]:
        """Yield the bytes of each message; of a message above the limit, only its beginning and end."""
        while line := self._source.readline(self._limit + 1):
            end, last, is_long = b"", line, len(line) > self._limit
            while is_long and not last.endswith(b"\n") and (last := self._source.readline(_BLOCK)):
                end = (end + last)[-MAX_END:]
            if not line.isspace():
                yield (line + end).removesuffix(b"\n")

    def _write(self, message: protocol.JSONRPCMessage) -> None:
        try:
            self._target.write(self._framed(message))
            self._target.flush()
        except ConnectionError:
            self.gone()

    def _framed(self, message: protocol.JSONRPCMessage) -> bytes:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class Headers(Lines):
    """A client with a header before each message; the handshake is optional."""

    def _read(self) -> Iterator[bytes]:
        """Yield messages like :class:`Lines`.

        :raises UnreadableError: a header has no length, so the beginning of the next message is unknown.
        """
        yield _INITIALIZED
        while (length := self._length()) is not None:
            body = self._source.read(min(length, self._limit + 1))
            left, end = length - len(body), b""
            while left and (part := self._source.read(min(left, _BLOCK))):
                left, end = left - len(part), (end + part)[-MAX_END:]
            if left:
                return
            yield body + end

    def _framed(self, message: protocol.JSONRPCMessage) -> bytes:
        # Some of these clients count characters; in ASCII, each is one byte.
        values = message.model_dump(mode="json", by_alias=True, exclude_unset=True)
        body = json.dumps(values, separators=(",", ":")).encode()
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    def _length(self) -> int | None:
        """Read the headers of a message, in any order; return ``None`` at the end of the input."""
        length = None
        for number in range(_HEADERS):
            header = self._source.readline(_MAX_HEADER)
            if not number and not header:
                return None
            name, _, value = map(bytes.strip, header.partition(b":"))
            if not name:
                break
            if name.lower() == b"content-length" and value.isdigit() and len(value) < _MAX_LENGTH:
                length = int(value)
        if length is None:
            problem = "no header says how long the message is; send its Content-Length"
            raise UnreadableError(protocol.PARSE_ERROR, problem)
        return length


def connect(limit: int) -> Lines:
    """Wait for the first byte of standard input; return its client.

    Child processes must not read the client's messages, and accidental prints must not come between two
    answers: standard input becomes empty, and standard output becomes standard error.

    :param limit: the maximum bytes of a message.
    """
    source = io.BufferedReader(io.FileIO(os.dup(0), "rb"), _BLOCK)
    target = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as empty:  # noqa: PTH123 - a descriptor is wanted, not a path
        os.dup2(empty.fileno(), sys.stdin.fileno())
    os.dup2(2, 1)
    return kind_of(source)(source, target, limit)


def kind_of(source: Any) -> type[Lines]:
    """Wait for the first byte of a client; return its kind.

    :param source: the client's output, buffered.
    """
    return Headers if source.peek(1)[:1] == _HEADER_BEGINS else Lines


async def in_thread(work: Callable[..., T], *given: Any) -> T:
    """Return the result of a function that waits for a client; each client has a thread of its own."""
    free: Any = nullcontext()  # clients that wait must not take the threads of others
    return await anyio.to_thread.run_sync(work, *given, limiter=free)


async def serve(server: FastMCP[Any], client: Lines) -> None:
    """Serve a client until its input ends."""
    inside = sdk_server(server)
    await inside.run(client, client, inside.create_initialization_options())
