"""The fields of a docstring."""

from __future__ import annotations

import inspect
import re


def parameters(thing: object) -> dict[str, str]:
    """Return the meanings of the parameters that a docstring documents, each on one line."""
    text = inspect.getdoc(thing) or ""
    found = re.findall(r"^:param (\w+): (.*?)(?=^:|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: " ".join(meaning.split()).replace("``", "`") for name, meaning in found}
