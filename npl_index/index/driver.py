"""SQLite driver of this Python."""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import closing
from functools import cache
from typing import Any

FTS5_REMEDY = "pip install pysqlite3, or use a Python whose SQLite has FTS5"
"""Remedy for an SQLite without full-text search."""


@cache
def driver() -> Any:
    """Return the SQLite driver: the package ``pysqlite3`` if it is installed, else Python's own."""
    # Loaded at its first use, because some calls need neither an index nor a store.
    name = "pysqlite3" if importlib.util.find_spec("pysqlite3") else "sqlite3"
    return importlib.import_module(f"{name}.dbapi2")


@cache
def missing_search() -> str | None:
    """Return the deficiency of this SQLite; ``None`` if it has full-text search."""
    with closing(driver().connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE word USING fts5 (body)")
        except driver().Error:
            return f"SQLite {driver().sqlite_version} of this Python lacks FTS5, which the index needs"
    return None
