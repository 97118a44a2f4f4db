"""Values that are worked out when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Later(Sequence[T]):
    """As many values as a set has documents, of which most answers need a few; each is worked out once.

    :param size: how many there are.
    :param work: returns the one at a place.
    """

    def __init__(self, size: int, work: Callable[[int], T]) -> None:
        self._size, self._work = size, work
        self._known: dict[int, T] = {}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: int) -> T:  # type: ignore[override]
        at = range(self._size)[place]
        if at not in self._known:
            self._known[at] = self._work(at)
        return self._known[at]
