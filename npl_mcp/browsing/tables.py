"""Sorting and filtering of tables in memory, by the same rules for all pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from npl_index.errors import InvalidRequestError

T = TypeVar("T")

Cell = str | int | float | None


def cell(value: Any) -> Cell:
    """Return a value in the form for comparisons and exports; a list becomes one text."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return value if isinstance(value, (str, int, float)) else None if value is None else str(value)


def arranged(
    rows: Sequence[T], columns: Sequence[str], sort: str, words: str, read: Callable[[T, str], Any] = getattr
) -> list[T]:
    """Return the rows with all words, ordered by one column; rows without a value come last.

    :param columns: names of the columns to sort and search.
    :param sort: name of a column, with ``-`` before it for the reverse order; empty for the given order.
    :param words: parts of words in any column of texts; case does not count.
    :param read: function that returns the value of a row's column.
    :raises InvalidRequestError: there is no such column.
    """
    wanted = words.casefold().split()

    def has_words(row: T) -> bool:
        texts = (text for name in columns if isinstance(text := cell(read(row, name)), str))
        folded = "\n".join(texts).casefold()
        return all(word in folded for word in wanted)

    kept = list(filter(has_words, rows)) if wanted else list(rows)
    if not sort:
        return kept
    name = sort.removeprefix("-")
    if name not in columns:
        raise InvalidRequestError(f"sort is {sort[:64]!r}", parameter="sort", hint=", ".join(columns))
    full = [row for row in kept if cell(read(row, name)) not in (None, "")]
    empty = [row for row in kept if cell(read(row, name)) in (None, "")]
    return [*sorted(full, key=lambda row: _sort_key(read(row, name)), reverse=sort[0] == "-"), *empty]


def _sort_key(value: Any) -> tuple[bool, Cell]:
    """Return the sort key of a value; numbers come before texts."""
    known = cell(value)
    return isinstance(known, str), known.casefold() if isinstance(known, str) else known
