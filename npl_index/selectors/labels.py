"""Names of headings and documents: the written form, and the folded form for loose comparison."""

from __future__ import annotations

import re
import unicodedata

from npl_index.markdown.headings import without_anchor

NAME_LENGTH = 200
"""Characters of a heading that count in comparisons; longer names do not fit into a selector."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""A control character or a lone surrogate."""

_WORD = re.compile(r"[^\s+#]+[+#]*")


def label(text: str) -> str:
    """Return a name as selectors write it: one line, single spaces, no control characters."""
    return " ".join((text if text.isprintable() else without_controls(text, " ")).split())


def heading_label(text: str) -> str:
    """Return a heading's label without its anchor, at most ``NAME_LENGTH`` characters."""
    return without_anchor(label(text))[:NAME_LENGTH].rstrip()


def without_controls(text: str, mark: str = "\ufffd") -> str:
    """Replace every control character and lone surrogate by a mark."""
    return CONTROL.sub(mark, text)


def is_visible(text: str) -> bool:
    """Return whether a text has a visible character."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in text)


def fold(text: str) -> str:
    """Return the folded form of a name, for loose comparison.

    Case, punctuation, markup, emoji and compatibility forms do not count; ``-`` and ``_`` separate
    words like spaces. ``+`` and ``#`` after a word count (C++, C#). The folded form of a text without
    words is its symbols.
    """
    if text.isascii() and (plain := " ".join(_WORD.findall(text.lower().translate(_ASCII)))):
        return plain  # the same, ten times as fast
    text = unicodedata.normalize("NFKC", text).casefold()
    # Normalised again: an omitted character may have separated a letter and its combining mark.
    words = _WORD.findall(unicodedata.normalize("NFKC", "".join(map(_fold_character, text))))
    return " ".join(words) or "".join(c for c in text if not (c.isspace() or _is_form(c)))


def _fold_character(character: str) -> str:
    if character.isalnum() or character in "+#":
        return character
    if character in "'’ʼ" or _is_form(character):
        return ""
    return character if unicodedata.category(character) in ("Mn", "Mc") else " "


def _is_form(character: str) -> bool:
    """Return whether a character only changes others: a variation selector, joiner or direction mark."""
    return "\ufe00" <= character <= "\ufe0f" or unicodedata.category(character) == "Cf"


_ASCII = {code: _fold_character(chr(code)) for code in range(128)}


def fold_document(name: str) -> str:
    """Return the folded form of a document's name or path; a final ``.md`` does not count."""
    return fold(name.removesuffix(".md"))
