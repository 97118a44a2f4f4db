"""What callers share: places for calls, memory for bodies and for answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from starlette.types import Message, Send

from npl_mcp.server.lanes import Turns


class Shares:
    """Counts what each caller has, and says who may take more.

    One caller may have three quarters of it all. A caller that has little may have that whatever the others
    have: a busy caller is refused before a quiet one is.

    :param most: what there is.
    :param little: what each caller may have while the others have everything.
    :param ceiling: what all callers may have together.
    """

    def __init__(self, most: int, little: int, ceiling: int) -> None:
        self._most, self._little, self._ceiling = most, little, ceiling
        self._own: Counter[Hashable] = Counter()

    def has_room(self, caller: Hashable, amount: int = 1) -> bool:
        """Return whether a caller may take more."""
        own, total = self._own[caller] + amount, sum(self._own.values()) + amount
        if own <= self._little:
            return total <= self._ceiling
        return total <= self._most and own <= self._most - self._most // 4

    def take(self, caller: Hashable, amount: int = 1) -> None:
        """Let a caller have more; a negative amount is given back."""
        self._own[caller] += amount
        self._own += Counter()  # without callers that have nothing


class Place:
    """The place of one call among those in flight, from now on.

    :param places: counts them.
    :param caller: makes the call.
    """

    def __init__(self, places: Shares, caller: Hashable, door: Turns) -> None:
        self._places, self._caller, self._taken, self._door = places, caller, 1, door
        self.has_turn = False
        places.take(caller)

    def begun(self) -> None:
        """Let the next call through the door: this one has arrived at a lane, or answers."""
        if self.has_turn:
            self.has_turn = False
            self._door.end(self._caller)

    def sending(self, send: Send) -> Send:
        """Return what sends the answer. Its first part frees the door: it may be an endless stream."""

        async def begin_and_send(message: Message) -> None:
            self.begun()
            await send(message)

        return begin_and_send

    def leave(self) -> None:
        """Let others have it."""
        self.begun()
        self._places.take(self._caller, -self._taken)
        self._taken = 0
