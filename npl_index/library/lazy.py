"""Sequences with computed items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """Items that are computed at each access, because an answer shows few of many documents.

    :param size: number of items.
    :param at: returns the item at an index.
    """

    def __init__(self, size: int, at: Callable[[int], T]) -> None:
        self._size, self._at = size, at

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        places = range(self._size)[index]
        return self._at(places) if isinstance(places, int) else tuple(map(self._at, places))
