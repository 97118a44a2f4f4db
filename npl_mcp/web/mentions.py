"""Whom a message mentions, marked where it does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from npl_mcp.web.visible import visible

_NAME = re.compile(r"(?<![\w.+\-@/])@([\w-]{1,64})")


def named(text: str, names: Sequence[str] = ()) -> Markup:
    """Return a text in which the names that a sign stands before are marked.

    :param names: of members that it mentions.
    """
    known = {"all", *(name.lower() for name in names)} if names else set()
    parts: list[Markup] = []
    at = 0
    for found in _NAME.finditer(text):
        if found[1].lower() in known:
            parts += escape(visible(text[at : found.start()])), Markup("<mark>{}</mark>").format(found[0])
            at = found.end()
    return Markup("").join([*parts, escape(visible(text[at:]))])
