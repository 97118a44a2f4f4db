"""The terms of a set of documents: those of its base, and those that came later."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.strings import Strings


class Terms:
    """The terms that living sections hold.

    :param base: terms of the first segment; their rows are the same here.
    :param added: further terms with their rows.
    :param holders: how many living sections hold each row; ``None`` where none is dead.
    """

    def __init__(self, base: Strings, added: Mapping[str, int], holders: NDArray[Any] | None) -> None:
        self._base, self._added, self._holders = base, added, holders
        self._sorted = sorted(added)

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` where no living section holds it."""
        row = self._base.row(term)
        if row is None:
            row = self._added.get(term)
        return row if row is None or self._holders is None or self._holders[row] else None

    def between(self, low: str, high: str, most: int | None = None) -> list[tuple[int, str]]:
        """Return rows and terms from ``low`` up to ``high``, the first ones, in the order of the terms."""
        begin, end = self._base.first(low), self._base.first(high)
        if self._holders is None:
            rows = list(range(begin, end))[:most]
        else:
            rows = (begin + np.flatnonzero(self._holders[begin:end])[:most]).tolist()
        found = list(zip(rows, self._base.texts(rows), strict=True)) if rows else []
        others = self._sorted[bisect_left(self._sorted, low) : bisect_left(self._sorted, high)]
        more = [(self._added[term], term) for term in others if self.row(term) is not None]
        if more:
            found = sorted([*found, *more], key=lambda one: one[1])
        return found[:most]

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the terms of some rows."""
        known = len(self._base)
        other = {row: term for term, row in self._added.items()} if any(row >= known for row in rows) else {}
        return [other[row] if row >= known else self._base.texts([row])[0] for row in rows]

    def all(self) -> list[tuple[int, str]]:
        """Return all rows and terms, in the order of the terms."""
        return self.between("", chr(sys.maxunicode))
