"""Mentions of members in a message: ``@name``, or ``@all``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

MOST_SIGNS = 1_000
"""Maximum ``@`` signs considered in a text: each needs a look-up of names."""

MOST_UNKNOWN = 20
"""Maximum unknown names in a report; a text with more is code."""

EVERYBODY = "all"

# Excludes the sign of an address (me@x.com), of a path (modules/@x) or of a second server (@a@x).
_SIGN = re.compile(r"(?<![\w.+\-@/])@(?=\S)")

# A name ends unless a letter, digit or underscore follows, directly or after hyphens, or an address
# continues.
_END = re.compile(r"(?!-*[\w@])")


_WORD = re.compile(r"\w{1,64}(?:-\w{1,64}){0,3}")


@dataclass(frozen=True, slots=True)
class Mentions:
    """The members mentioned in a text.

    :param members: mentioned members, in order of first appearance, without duplicates.
    :param unknown: other names after an @, in order, without duplicates, at most 20.
    """

    members: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def mentioned(text: str, members: Sequence[str]) -> Mentions:
    """Return the members mentioned in a text.

    The longest name after the sign wins: an exact match, else the first match that differs only in case.
    ``@all`` mentions every member, unless a member has that name.

    :param text: the text.
    :param members: the names of the members, with any characters.
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
