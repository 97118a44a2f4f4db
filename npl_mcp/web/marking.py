"""Words of a question, marked in the texts found with them."""

from __future__ import annotations

import re
from collections.abc import Collection

from markupsafe import Markup, escape

from npl_index.ranking.analysis import terms as terms_of
from npl_mcp.web.visible import visible

_WORD = re.compile(r"[\w-]{2,}")
_SHORTEST = 4
"""Minimum characters of a term that also matches within a longer word."""


def sought(*texts: str) -> frozenset[str]:
    """Return the terms of texts."""
    return frozenset(term for text in texts for term in terms_of(text))


def marked(text: str, terms: Collection[str]) -> Markup:
    """Return a text with marks at the words that equal a term, or contain a long one."""
    parts, last = [], 0
    long = [term for term in terms if len(term) >= _SHORTEST]
    for found in _WORD.finditer(text):
        lower = found[0].lower()
        if any(one in terms for one in terms_of(found[0])) or any(one in lower for one in long):
            between = visible(text[last : found.start()])
            parts.append(Markup("{}<mark>{}</mark>").format(between, found[0]))
            last = found.end()
    return Markup("").join([*parts, escape(visible(text[last:]))])
