"""Answers on their way: in parts, as fast as each caller reads, within the memory there is for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

import anyio
from starlette.types import Message, Send

from npl_mcp.http.shares import Shares

WRITE_SECONDS = 10.0
"""How long a caller may take to read the next part of an answer."""

PART = 64 * 1024
"""Bytes of a part. About two of them are left in memory of an answer that nobody reads any more."""

LARGE = 1024 * 1024
"""Bytes from which on an answer has to find room. Tools that write answer with less: once they have written,
nobody may be told to try again.
"""

STALLED_SECONDS = 0.5
"""After this time without a part read, an answer makes room for others that need it."""

ABORT_KEY = "npl.abort"
"""Key of the scope of a request with a function that ends its connection at once."""

STREAM_KEY = "npl.stream"
"""Key of the state of a request whose answer is a stream that has begun, with its body."""

Abort = Callable[[], None]


class Answers:
    """The answers that are being sent and have more than one part.

    :param most_bytes: that may wait for their readers.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._room = most_bytes, Shares(most_bytes, 0, most_bytes)
        self._sending: dict[Answer, int] = {}

    def begin(self, send: Send, abort: Abort | None, caller: Hashable) -> Answer:
        """Return a new answer.

        :param send: sends its parts.
        :param abort: ends its connection.
        :param caller: gets it.
        """
        return Answer(self, send, abort, caller)

    def add(self, answer: Answer, size: int) -> bool:
        """Count an answer of some bytes, and return whether there is room for it."""
        large = min(size, self._most_bytes // 2) if size >= LARGE else 0
        while large and not self._room.has_room(answer.caller, large):
            if not self.drop_stalled(answer.caller):
                return False
        self._room.take(answer.caller, large)
        self._sending[answer] = large
        return True

    def remove(self, answer: Answer) -> None:
        """Count an answer no longer."""
        self._room.take(answer.caller, -self._sending.pop(answer, 0))

    def drop_stalled(self, caller: Hashable) -> bool:
        """End the connection on which nothing was read for the longest time, if that is long.

        :param caller: needs what the answer takes; it loses one of its own if it has any.
        :returns: whether there was one.
        """
        own = [answer for answer in self._sending if answer.caller == caller]
        oldest = min(own or self._sending, key=lambda answer: answer.moved, default=None)
        if oldest is None or time.monotonic() - oldest.moved < STALLED_SECONDS:
            return False
        oldest.drop()
        return True


class Answer:
    """One answer.

    ``moved`` says when a part was read last.

    :param among: it is one of these while it is sent.
    :param send: sends its parts.
    :param abort: ends its connection.
    :param caller: gets it.
    """

    def __init__(self, among: Answers, send: Send, abort: Abort | None, caller: Hashable) -> None:
        self._among, self._send, self._abort, self.caller = among, send, abort, caller
        self._start: Message | None = None
        self._dropped = False
        self.moved = 0.0
        self.refused = False
        """Whether there is no room for it; nothing of it was sent."""

    async def send(self, message: Message) -> None:
        """Send a message of the application; none any more once the caller is gone."""
        if message["type"] == "http.response.start" and _has_length(message):
            # It goes with the body, for which there may be no room.
            self._start = message
            return
        body, start, self._start = message.get("body", b""), self._start, None
        self.moved = time.monotonic()
        if self.refused or self._dropped:
            return
        if len(body) > PART and not self._among.add(self, len(body)):
            self.refused = start is not None
            if not self.refused:
                await self._end()
            return
        if start is not None:
            await self._pass_on(start)
        if len(body) <= PART:
            await self._pass_on(message)
        else:
            await self._send_parts(message, body)

    async def _send_parts(self, message: Message, body: bytes) -> None:
        try:
            for at in range(0, len(body), PART):
                await self._pass_on({**message, "body": body[at : at + PART], "more_body": True})
                if self._dropped:
                    return
                self.moved = time.monotonic()
                await anyio.sleep(0)  # others are served, and the end of the connection is noted
            # The server sends this one when most of the last part is read.
            await self._pass_on({**message, "body": b""})
        finally:
            self._among.remove(self)

    def drop(self) -> None:
        """End the connection."""
        self._dropped = True
        self._among.remove(self)
        if self._abort is not None:
            self._abort()

    async def _pass_on(self, message: Message) -> None:
        if self._dropped:
            return
        with anyio.move_on_after(WRITE_SECONDS) as limit:
            await self._send(message)
        if limit.cancelled_caught:
            await self._end()

    async def _end(self) -> None:
        self.drop()
        # The server notes the end of the connection in its next step.
        await anyio.sleep(0)


def _has_length(message: Message) -> bool:
    return any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
