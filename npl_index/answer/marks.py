"""Lines that say where a file's text begins, which no text can imitate."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b

from npl_index.errors import escaped

_LIKE_A_MARK = re.compile(r"^[ \t]*(?:> *)?<!--", re.MULTILINE)
_SIZE = 3


def _has_mark(text: str) -> bool:
    """Return whether a line looks like a mark; the expression alone is slow on a text without a comment."""
    return "<!--" in text and _LIKE_A_MARK.search(text) is not None


def tag_for(texts: Sequence[str], has_mark: Callable[[str], object] = _has_mark) -> str:
    """Return what marks need to be told from the texts between them: nothing, or a word that no text holds.

    The texts are somebody else's and stay as they are, byte for byte, so that what looks like a mark in them
    cannot be escaped. Instead the true marks carry a tag then; it is made from the texts, since equal calls
    should have equal answers, and nobody can write a text that holds it.

    :param texts: all that may stand between the marks.
    :param has_mark: returns whether a reader may see a mark in a text.
    """
    if not any(map(has_mark, texts)):
        return ""
    digest = blake2b(digest_size=16)
    while True:
        for text in texts:
            digest.update(text.encode("utf-8", "surrogatepass"))
        tag = digest.hexdigest()[: 2 * _SIZE]
        if not any(tag in text for text in texts):
            return tag


_END = re.compile("--(!?)>")


def in_mark(text: str) -> str:
    """Return a text as a mark holds it: it cannot end it, and shows what nobody can see.

    A selector stays as it is: :func:`npl_index.selectors.grammar.spell` has seen to both.
    """
    return _END.sub(r"--\1 >", escaped(text))


def note(text: str, tag: str) -> str:
    """Return a line of marks.

    :param text: from :func:`in_mark`; the mark begins and ends on lines of their own where it does.
    :param tag: as of :func:`tag_for`.
    """
    end = f"#{tag} -->\n" if tag else "-->\n"
    begin = "<!--" if text.startswith("\n") else "<!-- "
    return f"{begin}{text}{end}" if text.endswith("\n") else f"{begin}{text} {end}"


def mark(path: str, tag: str) -> str:
    """Return the line before a file's text, a comment of HTML; the path cannot end it.

    :param tag: as of :func:`tag_for`.
    """
    name = escaped(path).replace(">", "&gt;")
    return f"<!-- {name} #{tag} -->\n" if tag else f"<!-- {name} -->\n"
