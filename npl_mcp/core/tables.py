"""Order and filter of a table in memory: one rule for all tables that people look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from npl_index.errors import InvalidRequestError

T = TypeVar("T")

Cell = str | int | float | None


def cell(value: Any) -> Cell:
    """Return a value as a table compares and exports it; a list becomes its words."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return value if isinstance(value, (str, int, float)) else None if value is None else str(value)


def arranged(
    rows: Sequence[T], columns: Sequence[str], sort: str, words: str, read: Callable[[T, str], Any] = getattr
) -> list[T]:
    """Return the rows that hold all words, in the order of one column; rows without a value come last.

    :param columns: names of those that are compared and searched.
    :param sort: name of a column, with ``-`` before it for the reverse order; empty for the given order.
    :param words: parts of words, in any column of texts; case does not count.
    :param read: returns the value of a column.
    :raises InvalidRequestError: there is no such column.
    """
    wanted = words.casefold().split()
    kept = [row for row in rows if not wanted or _holds([cell(read(row, name)) for name in columns], wanted)]
    if not sort:
        return kept
    name = sort.removeprefix("-")
    if name not in columns:
        raise InvalidRequestError(f"sort is {sort[:64]!r}", parameter="sort", hint=", ".join(columns))
    full = [row for row in kept if cell(read(row, name)) not in (None, "")]
    empty = [row for row in kept if cell(read(row, name)) in (None, "")]
    return [*sorted(full, key=lambda row: _key(read(row, name)), reverse=sort[0] == "-"), *empty]


def _holds(cells: Sequence[Cell], words: Sequence[str]) -> bool:
    folded = "\n".join(one for one in cells if isinstance(one, str)).casefold()
    return all(word in folded for word in words)


def _key(value: Any) -> tuple[bool, Cell]:
    """Return the place of a value: numbers before texts."""
    known = cell(value)
    return isinstance(known, str), known.casefold() if isinstance(known, str) else known
