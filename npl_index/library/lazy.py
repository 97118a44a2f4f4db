"""Sequences whose items are worked out when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """Items that are worked out each time they are asked for: an answer shows few of many documents.

    :param size: number of items.
    :param at: returns the item with a number.
    """

    def __init__(self, size: int, at: Callable[[int], T]) -> None:
        self._size, self._at = size, at

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> T:  # type: ignore[override]
        return self._at(range(self._size)[index])
