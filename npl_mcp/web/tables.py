"""Tables of pages: each sorts by every column, filters during typing, and exports CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npl_mcp.tools.contract.responses import sendable
from npl_mcp.web.visits import CallError, Visit

MAX_ROWS = 100_000
"""Maximum rows of a CSV file."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of texts that spreadsheets execute."""


Columns = Mapping[str, str]
"""Titles of a table's columns by the keys of their values. Phones show the first three."""

Rows = Sequence[Mapping[str, Any]]


def columns(*names: str, **titles: str) -> Columns:
    """Return columns: those with their own names as titles, then those with others."""
    return {**{name: name.capitalize() for name in names}, **titles}


Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one page, for its template and for CSV.

    :param page: the rows with ``items``, ``total``, ``limit`` and ``offset``.
    """

    visit: Visit
    columns: Columns
    page: Mapping[str, Any]

    @property
    def shown(self) -> Columns:
        """The columns with a value in any row of the page; the first is the name of a row."""
        first, rows = next(iter(self.columns)), self.page["items"]
        used = {name for name in self.columns if any(cell(row.get(name)) not in (None, "") for row in rows)}
        return {name: title for name, title in self.columns.items() if name in used | {first}}

    @property
    def numbers(self) -> frozenset[str]:
        """The columns with numbers."""
        cells = ((name, row.get(name)) for row in self.page["items"] for name in self.columns)
        return frozenset(name for name, value in cells if isinstance(value, (int, float)))

    def csv(self) -> str:
        """Return the CSV file: all rows, independent of the current page."""
        lines = io.StringIO()
        writer = csv.writer(lines)
        writer.writerow(self.columns.values())
        for row in self.page["items"]:
            values = (cell(row.get(name)) for name in self.columns)
            writer.writerow(
                f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
                for value in values
            )
        return sendable(lines.getvalue())


def cell(value: Any) -> Cell:
    """Return a value in the form for comparisons and exports; a list becomes one text."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return value if isinstance(value, (str, int, float)) else None if value is None else str(value)


def paged(visit: Visit, rows: Rows, columns: Columns, limit: int) -> dict[str, Any]:
    """Return a page of rows and its table, filtered and sorted by the parameters of the address.

    :param limit: the rows of a page; a CSV file has all rows.
    :raises CallError: the sort column does not exist.
    """
    offset, most = (0, MAX_ROWS) if visit.all_rows else (visit.number("offset") or 0, limit)
    every = _sorted([row for row in rows if _has_words(row, columns, visit)], columns, visit.text("sort"))
    page = {"items": every[offset : offset + most], "total": len(every), "limit": most, "offset": offset}
    return {**page, "_table": Table(visit, columns, page)}


def _has_words(row: Mapping[str, Any], columns: Columns, visit: Visit) -> bool:
    """Return whether the texts of a row contain all words of the filter; case does not count."""
    texts = (text for name in columns if isinstance(text := cell(row.get(name)), str))
    folded = "\n".join(texts).casefold()
    return all(word in folded for word in visit.text("filter").casefold().split())


def _sorted(rows: Rows, columns: Columns, sort: str) -> Rows:
    """Return rows ordered by a column, with ``-`` before it in reverse; rows without a value come last."""
    name = sort.removeprefix("-")
    if not sort:
        return rows
    if name not in columns:
        raise CallError(f"sort is {sort[:64]!r}; there are {', '.join(columns)}")
    full = [row for row in rows if cell(row.get(name)) not in (None, "")]
    empty = [row for row in rows if cell(row.get(name)) in (None, "")]
    return [*sorted(full, key=lambda row: _sort_key(row[name]), reverse=sort[0] == "-"), *empty]


def _sort_key(value: Any) -> tuple[bool, Cell]:
    """Return the sort key of a value; numbers come before texts."""
    known = cell(value)
    return isinstance(known, str), known.casefold() if isinstance(known, str) else known
