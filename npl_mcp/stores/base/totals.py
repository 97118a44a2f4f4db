"""Totals stored by name, because the time of counting grows with the number of rows."""

from __future__ import annotations

from npl_mcp.stores.base.database import Transaction


def add_total(tx: Transaction, more: int, *names: str) -> None:
    """Add to totals; a missing one starts at 0."""
    sql = (
        "INSERT INTO total (name, value) VALUES (:name, :more)"
        " ON CONFLICT (name) DO UPDATE SET value = total.value + :more"
    )
    tx.run_many(sql, [{"name": name, "more": more} for name in names])


def read_total(tx: Transaction, name: str) -> int:
    """Return a total."""
    return tx.value("SELECT value FROM total WHERE name = :name", name=name) or 0
