"""Fields of docstrings."""

from __future__ import annotations

import inspect
import re


def parameters(thing: object) -> dict[str, str]:
    """Return the texts of a docstring's ``:param:`` fields by parameter, each on one line."""
    text = inspect.getdoc(thing) or ""
    fields = re.findall(r"^:param (\w+): (.*?)(?=^:|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: " ".join(meaning.split()).replace("``", "`") for name, meaning in fields}
