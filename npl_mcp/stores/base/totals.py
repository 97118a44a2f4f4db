"""Totals that are kept by name, because counting rows takes longer the more there are."""

from __future__ import annotations

from npl_mcp.stores.base.database import Transaction


def add_total(tx: Transaction, name: str, more: int) -> None:
    """Add to a total; one that does not exist begins with 0."""
    tx.run(
        "INSERT INTO total (name, value) VALUES (:name, :more)"
        " ON CONFLICT (name) DO UPDATE SET value = total.value + :more",
        name=name,
        more=more,
    )


def read_total(tx: Transaction, name: str) -> int:
    """Return a total."""
    return tx.value("SELECT value FROM total WHERE name = :name", name=name) or 0
