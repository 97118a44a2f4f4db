"""Members that a message mentions: ``@name``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

MOST_SIGNS = 1_000
"""Further signs of a text are ignored, since names are looked up at each."""

# Not the sign of an address (me@x.com), of a path (modules/@x) or of a second server (@a@x).
_SIGN = re.compile(r"(?<![\w.+\-@/])@(?=\S)")

# A name ends where no letter, digit or underscore follows, directly or after hyphens, and no address goes on.
_END = re.compile(r"(?!-*[\w@])")


def mentioned(text: str, members: Sequence[str]) -> tuple[str, ...]:
    """Return the members a text mentions, in order of first appearance, each once.

    After the sign the longest name that the text goes on with counts: one in the same case, else the first
    that differs in case only.

    :param text: any text.
    :param members: names; they may hold any characters.
    """
    if "@" not in text:
        return ()
    exact = frozenset(members)
    folded = {name.lower(): name for name in reversed(members)}
    lengths = sorted({len(name) for name in members}, reverse=True)

    def name_at(start: int) -> str | None:
        for length in lengths:
            written = text[start : start + length]
            name = written if written in exact else folded.get(written.lower())
            if name is not None and _END.match(text, start + length):
                return name
        return None

    found = (name_at(sign.end()) for sign in islice(_SIGN.finditer(text), MOST_SIGNS))
    return tuple(dict.fromkeys(name for name in found if name is not None))
