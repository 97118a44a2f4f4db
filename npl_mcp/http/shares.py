"""What callers share: places for calls, memory for bodies and for answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class Shares:
    """Counts what each caller has, and says who may take more.

    One caller may have three quarters of it all. A caller that has little may have that whatever the others
    have: a busy caller is refused before a quiet one is.

    :param most: what there is.
    :param little: what each caller may have while the others have everything.
    :param ceiling: what all callers may have together.
    """

    def __init__(self, most: int, little: int, ceiling: int) -> None:
        self.most, self._little, self._ceiling = most, little, ceiling
        self._own: Counter[Hashable] = Counter()

    def has_room(self, caller: Hashable, amount: int = 1) -> bool:
        """Return whether a caller may take more."""
        own, total = self._own[caller] + amount, sum(self._own.values()) + amount
        if own <= self._little:
            return total <= self._ceiling
        return total <= self.most and own <= self.most - self.most // 4

    def take(self, caller: Hashable, amount: int = 1) -> None:
        """Let a caller have more; a negative amount is given back."""
        self._own[caller] += amount
        self._own += Counter()  # without callers that have nothing
