"""Differences between two texts, as lines of one column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npl_mcp.stores.artifact.comparing import compare
from npl_mcp.tools.contract.responses import as_dict

Row = dict[str, Any]
"""A line: its numbers ``old`` and ``new``, its ``sign`` (empty for an equal line) and its ``text``."""


def rows_of(hunk: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return pairs of lines as one column: removed lines above their replacements."""
    rows: list[Row] = []
    added: list[Row] = []
    for pair in hunk:
        old, new, before, after = (pair.get(name) for name in ("old", "new", "before", "after"))
        if old and new and after is None:
            rows += [*added, {"old": old, "new": new, "sign": "", "text": before}]
            added = []
            continue
        if old:
            rows.append({"old": old, "new": None, "sign": "−", "text": before})
        if new:
            added.append({"old": None, "new": new, "sign": "+", "text": after})
    return rows + added


def differences(old: str, new: str) -> list[list[Row]]:
    """Return the changes between two texts, each with lines around it."""
    return [rows_of(hunk) for hunk in as_dict(compare(old, new).hunks)]
