"""Digests of texts that occur several times, alike or nearly so."""

from __future__ import annotations

import re
from hashlib import blake2b

MIN_COPY = 8
"""Minimum words of a text that counts as a copy of an equal one: an answer has it once."""

SIMILAR = 16
"""Low bits of the digest of a copy in which similar texts differ."""

_MARKS = re.compile(r"^[ \t]*(?:[#>]+(?=\s)|[-+*](?=[ \t]))[ \t]*", re.MULTILINE)
# Patterns that begin with a character, not with what stands before it, are searched several times faster.
_STRONG = re.compile(r"\*\*(?<![^\s(]\*\*)(?=\S)([^*\n`]+)(?<=\S)\*\*")
_FOLDER = re.compile(r"(\]\((?![a-z]+:))[^()\s]*/(?=[^()\s/])")
_WORD = re.compile(r"(?:[^\s`]+|`[^`]*`?[^\s`]*)(?:`[^`]*`?[^\s`]*)*")  # code is one word, as written
_NEEDLESS = re.compile(
    r"\0(?:please|the(?!\0(?:few|less|little|more|most|one|only)\b))(?=\0[a-z])"
    r"|\.(?<=[^\W\d_]{3}\.)(?=\0[A-Z]|\Z)"
)
"""An article, a courtesy, or a full stop, in words behind NULs; the words around them show that it is one."""


def copy_digest(text: str, *, is_code: bool) -> int:
    """Return a number that texts with the same words in the same order share; 0 for a text of a few words.

    Marks of headings, lists, quotations and emphasis do not count, nor the folders of relative links, which
    differ between copies. Texts that differ only in articles, courtesies and full stops have different
    bits :data:`SIMILAR`; each other word may be the answer.

    :param is_code: whether the text has a block of code; it then counts as written.
    """
    plain = text if is_code else _STRONG.sub(r"\1", _FOLDER.sub(r"\1", _MARKS.sub("", text)))
    words = _WORD.findall(plain) if "`" in plain else plain.split()
    if len(words) < MIN_COPY:
        return 0
    whole = text.lstrip("\n# ") if is_code else "\0".join(["", *words])
    digests = (
        blake2b(part.encode("utf-8", "surrogatepass"), digest_size=bits // 8).digest()
        for part, bits in ((whole, SIMILAR), (_NEEDLESS.sub("", whole), 64 - SIMILAR))
    )
    return int.from_bytes(b"".join(digests), "little", signed=True)
