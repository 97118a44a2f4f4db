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


Columns = Mapping[str, str]
"""Titles of a table's columns by the keys of their values. Phones show the first three."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one page, for its template and for CSV.

    :param page: the rows with ``items``, ``total``, ``limit`` and ``offset``.
    """

    visit: Visit
    columns: Columns
    page: Mapping[str, Any]

    @property
    def sort(self) -> str:
        """The sort column, with ``-`` before it for descending order."""
        return self.visit.text("sort")

    @property
    def filter(self) -> str:
        """The words required in each row."""
        return self.visit.text("filter")

    def state(self, name: str) -> str | None:
        """Return the sort direction of a column, as ARIA names it."""
        return {name: "ascending", f"-{name}": "descending"}.get(self.sort)

    def is_number(self, name: str) -> bool:
        """Return whether a column has numbers."""
        return any(isinstance(row.get(name), (int, float)) for row in self.page["items"])

    def sorted_by(self, name: str) -> str:
        """Return the address of the page sorted by a column; numbers begin with the largest."""
        first, then = ("-", "") if self.is_number(name) else ("", "-")
        return self.visit.here(sort=f"{then if self.sort == first + name else first}{name}", offset=None)

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
        writer.writerow(self.columns.values())
        writer.writerows(map(self._cells, self.page["items"]))
        return lines.getvalue()

    def _cells(self, row: Mapping[str, Any]) -> list[Any]:
        values = (cell(row.get(name)) for name in self.columns)
        return [f"'{one}" if isinstance(one, str) and one.startswith(_FORMULA) else one for one in values]


def part(visit: Visit, limit: int) -> dict[str, Any]:
    """Return the range of a page's rows, as arguments of a tool; all rows for a CSV file."""
    offset, most = (None, MAX_ROWS) if visit.whole else (visit.number("offset"), limit)
    return {"sort": visit.text("sort"), "filter": visit.text("filter"), "offset": offset, "limit": most}


def paged(visit: Visit, rows: Sequence[Mapping[str, Any]], columns: Columns, limit: int) -> dict[str, Any]:
    """Return a page of rows in memory, sorted and filtered by the parameters of the address.

    :raises CallError: the sort column does not exist.
    """
    wanted = part(visit, limit)
    if wanted["sort"] and wanted["sort"].removeprefix("-") not in columns:
        raise CallError(f"sort is {wanted['sort'][:64]!r}; there are {', '.join(columns)}")
    every = arranged(rows, tuple(columns), wanted["sort"], wanted["filter"], lambda row, name: row.get(name))
    offset = wanted["offset"] or 0
    items = every[offset : offset + wanted["limit"]]
    return {"items": items, "total": len(every), "limit": wanted["limit"], "offset": offset}
