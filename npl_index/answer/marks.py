"""Marks above passages, which no text can imitate."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b

from npl_index.errors import escaped

_SIZE = 3


def _has_mark(text: str) -> bool:
    """Return whether a text contains the beginning of a mark: readers may overlook what stands before it."""
    return "<!--" in text


def tag_for(texts: Sequence[str], has_mark: Callable[[str], object] = _has_mark) -> str:
    """Return the nonce of marks: ``""``, or if a text contains mark-like lines, a word in none of the texts.

    Texts are shown unchanged, so mark-like lines in them cannot be escaped. The nonce is made from the texts,
    so that equal calls have equal answers, and no text can contain it intentionally.

    :param texts: all texts between the marks.
    :param has_mark: returns whether a text contains a mark-like line.
    """
    if not any(map(has_mark, texts)):
        return ""
    digest = blake2b(digest_size=_SIZE)
    while True:
        for text in texts:
            digest.update(text.encode("utf-8", "surrogatepass"))
        tag = digest.hexdigest()
        if not any(tag in text for text in texts):
            return tag


_END = re.compile("--(!?)>")


def in_mark(text: str) -> str:
    """Return a text that is safe inside a mark: it cannot end the mark, and invisible characters are escaped.

    Selectors are unchanged, because of :func:`npl_index.selectors.grammar.spell`.
    """
    return _END.sub(r"--\1 >", escaped(text))


def mark(text: str, tag: str) -> str:
    """Return a mark.

    :param text: its text, from :func:`in_mark`; line feeds at its ends separate the mark's start and end.
    :param tag: result of :func:`tag_for`.
    """
    end = f"#{tag} -->\n" if tag else "-->\n"
    begin = "<!--" if text.startswith("\n") else "<!-- "
    return f"{begin}{text}{end}" if text.endswith("\n") else f"{begin}{text} {end}"


def change_marks(selectors: Sequence[str]) -> str:
    """Return the marks that name sections which have changed since the caller read them."""
    return "".join(mark(f"changed since you read it: {in_mark(selector)}", "") for selector in selectors)


def file_mark(path: str, tag: str) -> str:
    """Return the line before a file's text, an HTML comment; the path cannot end it.

    :param tag: result of :func:`tag_for`.
    """
    return mark(escaped(path).replace(">", "&gt;"), tag)
