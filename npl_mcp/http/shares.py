"""Fair shares of limited resources: slots for calls, memory for bodies and for answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class Shares:
    """Counts the amount of each caller, and limits it.

    One caller may have at most three quarters of the resource. A caller may always have a small amount, even
    if the others use everything: a busy caller is refused before a quiet one.

    :param most: the amount of the resource.
    :param little: the guaranteed amount of each caller.
    :param ceiling: the maximum amount of all callers together, including the guaranteed amounts.
    """

    def __init__(self, most: int, little: int, ceiling: int) -> None:
        self.most, self._little, self._ceiling = most, little, ceiling
        self._own: Counter[Hashable] = Counter()

    def has_room(self, caller: Hashable, amount: int = 1) -> bool:
        """Return whether a caller may take an amount more."""
        own, total = self._own[caller] + amount, sum(self._own.values()) + amount
        if own <= self._little:
            return total <= self._ceiling
        return total <= self.most and own <= self.most - self.most // 4

    def take(self, caller: Hashable, amount: int = 1) -> None:
        """Add an amount to a caller's; a negative amount is given back."""
        self._own[caller] += amount
        self._own += Counter()  # drops callers with nothing
