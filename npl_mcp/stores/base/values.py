"""Helpers for the values of stores: dataclasses from rows, columns and conditions of SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def fill(kind: type[T], source: Any, /, **more: object) -> T:
    """Create a dataclass from the equally named values of a source.

    :param source: a row, or another dataclass.
    :param more: the values of all other or different fields.
    """
    values = source if isinstance(source, Mapping) else values_of(source)
    return kind(**{**{name: values[name] for name in _names(kind) if name in values}, **more})


def values_of(source: Any) -> dict[str, Any]:
    """Return the values of a dataclass by the names of its fields."""
    return {name: getattr(source, name) for name in _names(source.__class__)}


_names: Callable[[Any], tuple[str, ...]] = cache(lambda kind: tuple(field.name for field in fields(kind)))


def columns(kind: type[Any]) -> str:
    """Return the names of a dataclass's fields as a column list of SQL."""
    return ", ".join(_names(kind))


def insertion(table: str, names: Iterable[str]) -> str:
    """Return the statement that inserts a row with some columns."""
    listed = tuple(names)
    return f"INSERT INTO {table} ({', '.join(listed)}) VALUES ({', '.join(f':{name}' for name in listed)})"


def conditions(**named: tuple[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a condition of SQL and its parameters.

    :param named: a condition for each parameter, and the parameter's value; ``None`` omits the condition.
    """
    used = {name: part for name, part in named.items() if part[1] is not None}
    where = " AND ".join(f"({sql})" for sql, _ in used.values()) or "TRUE"
    return where, {name: value for name, (_, value) in used.items()}
