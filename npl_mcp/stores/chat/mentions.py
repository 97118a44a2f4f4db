"""Members that a message mentions: ``@name``, or ``@all``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

MOST_SIGNS = 1_000
"""Further signs of a text are ignored, since names are looked up at each."""

MOST_UNKNOWN = 20
"""Names of nobody that are told; a text with more is code."""

EVERYBODY = "all"

# Not the sign of an address (me@x.com), of a path (modules/@x) or of a second server (@a@x).
_SIGN = re.compile(r"(?<![\w.+\-@/])@(?=\S)")

# A name ends where no letter, digit or underscore follows, directly or after hyphens, and no address goes on.
_END = re.compile(r"(?!-*[\w@])")


_WORD = re.compile(r"\w{1,64}(?:-\w{1,64}){0,3}")


@dataclass(frozen=True, slots=True)
class Mentions:
    """Whom a text mentions.

    :param members: in order of first appearance, each once.
    :param unknown: what stands after a sign and is no member, in order, each once, at most 20.
    """

    members: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def mentioned(text: str, members: Sequence[str]) -> Mentions:
    """Return whom a text mentions.

    After the sign the longest name that the text goes on with counts: one in the same case, else the first
    that differs in case only. ``@all`` mentions every member, unless one has that name.

    :param text: any text.
    :param members: names; they may hold any characters.
    """
    if "@" not in text:
        return Mentions()
    exact = frozenset(members)
    folded = {name.lower(): name for name in reversed(members)}
    lengths = sorted({len(name) for name in members}, reverse=True)
    known: dict[str, None] = {}
    unknown: dict[str, None] = {}

    def name_at(start: int) -> str | None:
        for length in lengths:
            written = text[start : start + length]
            name = written if written in exact else folded.get(written.lower())
            if name is not None and _END.match(text, start + length):
                return name
        return None

    for sign in islice(_SIGN.finditer(text), MOST_SIGNS):
        name = name_at(sign.end())
        word = None if name is not None else _WORD.match(text, sign.end())
        if name is not None:
            known[name] = None
        elif word is not None and word[0].lower() == EVERYBODY:
            known |= dict.fromkeys(members)
        elif word is not None and len(unknown) < MOST_UNKNOWN:
            unknown[word[0]] = None
    return Mentions(tuple(known), tuple(unknown))
