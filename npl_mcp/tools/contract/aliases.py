"""Former names of tools. They are accepted, but listed only with the setting ``exact-names``."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FILE = Path(__file__).parents[2] / "data" / "former_names.json"


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


ALIASES: Mapping[str, Alias] = {
    old: Alias(**row) for old, row in json.loads(FILE.read_text(encoding="utf-8")).items()
}
"""All former names. Unlike the new names, they may have characters that some model providers refuse."""


def usable_aliases(tools: Collection[str]) -> dict[str, Alias]:
    """Return the former names of a server's tools.

    :param tools: names of its tools.
    """
    return {old: alias for old, alias in ALIASES.items() if alias.new in tools}
