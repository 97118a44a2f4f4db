"""Tables of pages: each sorts by every column, filters during typing, and exports CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npl_mcp.browsing.tables import arranged, cell
from npl_mcp.web.visits import CallError, Visit, address

MAX_ROWS = 100_000
"""Maximum rows of a CSV file."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of texts that spreadsheets execute."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    :param name: the key of its values, and its name in addresses.
    :param title: the header.
    :param kind: the class of its cells: ``number``, or ``minor`` for a column hidden on phones.
    """

    name: str
    title: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one page, for its template and for CSV.

    :param page: the rows with ``items``, ``total``, ``limit`` and ``offset``.
    """

    visit: Visit
    columns: Sequence[Column]
    page: Mapping[str, Any]

    @property
    def sort(self) -> str:
        """The sort column, with ``-`` before it for descending order."""
        return self.visit.text("sort")

    @property
    def filter(self) -> str:
        """The words required in each row."""
        return self.visit.text("filter")

    def state(self, column: Column) -> str | None:
        """Return the sort direction of a column, as ARIA names it."""
        return {column.name: "ascending", f"-{column.name}": "descending"}.get(self.sort)

    def sorted_by(self, column: Column) -> str:
        """Return the address of the page sorted by a column; numbers begin with the largest."""
        first, then = ("-", "") if "number" in column.kind else ("", "-")
        lead = then if self.sort == f"{first}{column.name}" else first
        return self.visit.here(sort=f"{lead}{column.name}", offset=None)

    def kept(self) -> list[tuple[str, str]]:
        """Return the parameters of the address that a filter preserves."""
        pairs = self.visit.request.query_params.multi_items()
        return [(name, value) for name, value in pairs if name not in ("filter", "offset")]

    def export(self, suffix: str) -> str:
        """Return the address of the same rows as ``csv`` or ``json``."""
        path, query = self.visit.place, self.visit.request.query_params
        named = {name: query.getlist(name) for name in query if name != "offset"}
        return address(f"{path.rstrip('/') or '/index'}.{suffix}", **named)

    def csv(self) -> str:
        """Return the CSV file: all rows, independent of the current page."""
        lines = io.StringIO()
        writer = csv.writer(lines)
        writer.writerow(column.title for column in self.columns)
        writer.writerows(map(self._cells, self.page["items"]))
        return lines.getvalue()

    def _cells(self, row: Mapping[str, Any]) -> list[Any]:
        values = (cell(row.get(column.name)) for column in self.columns)
        return [f"'{one}" if isinstance(one, str) and one.startswith(_FORMULA) else one for one in values]


def part(visit: Visit, limit: int) -> dict[str, Any]:
    """Return the range of a page's rows, as arguments of a tool; all rows for a CSV file."""
    offset, most = (None, MAX_ROWS) if visit.whole else (visit.number("offset"), limit)
    return {"sort": visit.text("sort"), "filter": visit.text("filter"), "offset": offset, "limit": most}


def paged(
    visit: Visit, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], limit: int
) -> dict[str, Any]:
    """Return a page of rows in memory, sorted and filtered by the parameters of the address.

    :raises CallError: the sort column does not exist.
    """
    wanted = part(visit, limit)
    names = [column.name for column in columns]
    if wanted["sort"] and wanted["sort"].removeprefix("-") not in names:
        raise CallError(f"sort is {wanted['sort'][:64]!r}; there are {', '.join(names)}")
    every = arranged(rows, names, wanted["sort"], wanted["filter"], lambda row, name: row.get(name))
    offset = wanted["offset"] or 0
    items = every[offset : offset + wanted["limit"]]
    return {"items": items, "total": len(every), "limit": wanted["limit"], "offset": offset}
