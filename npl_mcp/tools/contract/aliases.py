"""Former names of tools: they are accepted, but listed only with the setting ``exact-names``. A call of a
removed tool answers NOT_FOUND with its replacement.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "data" / "former_names.json"
"""By former name, the fields of :class:`Alias`; of a removed tool, a sentence without a full stop."""

_ROWS: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Alias:
    """The replacement of a former name.

    :param new: tool that replaces it.
    :param listed: whether to list this name, if the tool had several.
    :param fixed: arguments that the former name implies.
    """

    new: str
    listed: bool = True
    fixed: Mapping[str, object] = field(default_factory=dict)


ALIASES = {old: Alias(**row) for old, row in _ROWS.items() if isinstance(row, dict)}
"""All former names. Unlike the new names, they may have characters that some model providers refuse."""

REMOVED_TOOLS = {old: advice for old, advice in _ROWS.items() if isinstance(advice, str)}
"""The replacements of removed tools, by name."""


def usable_aliases(tools: Collection[str]) -> dict[str, Alias]:
    """Return the former names of a server's tools.

    :param tools: names of its tools.
    """
    return {old: alias for old, alias in ALIASES.items() if alias.new in tools}
