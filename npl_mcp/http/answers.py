"""Answers on their way: in parts, as fast as each caller reads, within the memory there is for them."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio
from starlette.types import Message, Send

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

Abort = Callable[[], None]


class Answers:
    """The answers that are being sent and have more than one part.

    :param most_bytes: that may wait for their readers.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._sending: set[Answer] = set()

    def begin(self, send: Send, abort: Abort | None) -> Answer:
        """Return a new answer.

        :param send: sends its parts.
        :param abort: ends its connection.
        """
        return Answer(self, send, abort)

    def add(self, answer: Answer) -> bool:
        """Count an answer, and return whether there is room for it."""
        room = max(self._most_bytes - answer.left, 0)
        while answer.left >= LARGE and self._left_beside(answer) > room:
            if not self.drop_stalled():
                return False
        self._sending.add(answer)
        return True

    def _left_beside(self, answer: Answer) -> int:
        return sum(other.left for other in self._sending if other is not answer)

    def remove(self, answer: Answer) -> None:
        """Count an answer no longer."""
        self._sending.discard(answer)

    def drop_stalled(self) -> bool:
        """End the connection of the caller that has read nothing for the longest time, if that is long.

        :returns: whether there was one.
        """
        oldest = min(self._sending, key=lambda answer: answer.moved, default=None)
        if oldest is None or time.monotonic() - oldest.moved < STALLED_SECONDS:
            return False
        oldest.drop()
        return True


class Answer:
    """One answer.

    ``left`` is how many bytes of it are still to be sent, ``moved`` when a part was read last.

    :param among: it is one of these while it is sent.
    :param send: sends its parts.
    :param abort: ends its connection.
    """

    def __init__(self, among: Answers, send: Send, abort: Abort | None) -> None:
        self._among, self._send, self._abort = among, send, abort
        self._start: Message | None = None
        self._dropped = False
        self.left = 0
        self.moved = 0.0
        self.refused = False
        """Whether there is no room for it; nothing of it was sent."""

    async def send(self, message: Message) -> None:
        """Send a message of the application; none any more once the caller is gone."""
        if message["type"] == "http.response.start" and _has_length(message):
            # It goes with the body, for which there may be no room.
            self._start = message
            return
        body = message.get("body", b"")
        if self._start is not None:
            start, self._start = self._start, None
            self.left, self.moved = len(body), time.monotonic()
            if len(body) > PART and not self._among.add(self):
                self.left, self.refused = 0, True
                return
            await self._pass_on(start)
        if self.refused:
            return
        if len(body) <= PART:
            await self._pass_on(message)
        else:
            await self._send_parts(message, body)

    async def _send_parts(self, message: Message, body: bytes) -> None:
        self.left, self.moved = len(body), time.monotonic()
        if not self._among.add(self):
            await self._end()
            return
        try:
            for at in range(0, len(body), PART):
                await self._pass_on({**message, "body": body[at : at + PART], "more_body": True})
                if self._dropped:
                    return
                self.left, self.moved = len(body) - at, time.monotonic()
            # The server sends this one when most of the last part is read.
            await self._pass_on({**message, "body": b""})
        finally:
            self.left = 0
            self._among.remove(self)

    def drop(self) -> None:
        """End the connection."""
        self._dropped, self.left = True, 0
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
