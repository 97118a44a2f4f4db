"""Mentions in a message: ``@name``, or ``@all``; a name in code or in a quotation mentions no one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from unicodedata import normalize

from npl_index.markdown.front_matter import with_line_feeds
from npl_index.markdown.prose import without_code

MAX_SIGNS = 1_000
"""Maximum ``@`` signs considered in a text: each needs a look-up of names."""

MAX_UNKNOWN = 20
"""Maximum unknown names in a report; a text with more is code."""

EVERYBODY = "all"

SIGNS = frozenset("@\uff20")
"""Characters before a name."""

# In these scripts no blank separates words: Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u318f\u31f0-\u31ff\u3400-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)

# Excludes the sign of an address (me@x.com), of a path (modules/@x) or of a second server (@a@x).
_SIGN = rf"(?:(?<=[{_UNSPACED}])|(?<![\w.+\-@/]))@(?=\S)"

# A name ends unless a letter, digit or underscore follows, directly or after hyphens, or an address
# continues.
_END = rf"(?!-*(?![{_UNSPACED}])[\w@])"

_QUOTATION = re.compile(r"^ {0,3}>.*", re.MULTILINE)

_EMPHASIS = re.compile(r"(?<![\w@])(_{1,3})(?=\S)(.{1,200}?)(?<=\S)\1(?!\w)")

_WORD = rf"[^\W{_UNSPACED}]{{1,64}}(?:-[^\W{_UNSPACED}]{{1,64}}){{0,3}}|\w{{1,64}}"


def mention_of(members: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern of a sign, with the name of a member or else the word after it."""
    names = "|".join(map(re.escape, sorted(members, key=len, reverse=True)))
    return re.compile(rf"{_SIGN}(?:({names}){_END}|({_WORD}))?", re.IGNORECASE)


def mentions_in(text: str, members: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the members mentioned in a text outside of code and quotations, and at most 20 other names
    after an @.

    Both are in order of first appearance, without duplicates.

    The longest name after the sign wins: an exact match, else the first match that differs only in case.
    ``@all`` mentions every member, unless a member has that name.

    :param text: the text.
    :param members: the names of the members, with any characters.
    """
    text = normalize("NFC", with_line_feeds(text)).replace("\uff20", "@")
    text = _EMPHASIS.sub(r" \2 ", _QUOTATION.sub("", without_code(text)))
    folded = dict(zip(map(str.lower, reversed(members)), reversed(members), strict=True))
    known, unknown = dict[str, None](), dict[str, None]()
    for name, word in (sign.groups() for sign in islice(mention_of(members).finditer(text), MAX_SIGNS)):
        if name:
            known[name if name in members else folded[name.lower()]] = None
        elif word and word.lower() == EVERYBODY:
            known |= dict.fromkeys(members)
        elif word and len(unknown) < MAX_UNKNOWN:
            unknown[word] = None
    return tuple(known), tuple(unknown)
