"""Spellings of words: characters that stand for others, scripts, and markup inside a word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from html import unescape
from itertools import chain, groupby

HIDDEN = "\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
"""Characters without a shape, such as the soft hyphen, as part of a pattern."""

_ACCENT = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u20d0-\u20ff]"
)
_SIGNS = str.maketrans(dict.fromkeys("’‘‛ʼʻʹ′´ˈ", "'") | dict.fromkeys("‐‑", "-") | {"﹍": "⌇"})
"""Signs that are written for others: apostrophes, hyphens."""

_TAG = (
    r"/?(?i:a|abbr|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub"
    r"|sup|tt|u|var|wbr)(?:\s[^<>]*)?/?>"
)
_ENTITY = "#?[A-Za-z0-9]{2,31};"
# A search is fast, because the first character is one of a few.
INSIDE = re.compile(
    rf"[,*~`<&\\{HIDDEN}](?:(?<=[0-9],)(?=[0-9]{{3}}(?![0-9]))|(?<=&){_ENTITY}|(?<=\\)[-._#+']|(?<=[-\w;>*~`+#.'{HIDDEN}].)"
    rf"(?:(?<=<){_TAG}|(?<=[*~`{HIDDEN}])[*~`{HIDDEN}]*)(?=[-+#.']*[\w<&\\*~`{HIDDEN}]))"
)
"""Markup inside a word, which divides it in the source, but not on the page."""

_LINK = r"\[\^[^\[\]\s]+\]|\](?:\([^()\s]*\)|\[[^\[\]\n]*\])?|\["
_MARKUP = rf"(?m){_LINK}|&{_ENTITY}|\\[!-/:-@\[-`{{-~]|<{_TAG}|[*`{HIDDEN}]|~~|^[ \t>]*>"


class _Letters(dict[int, str]):
    """Basic letters by code, also for letters with a stroke, which Unicode does not decompose."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char.isdecimal():
            self[code] = digit = str(unicodedata.decimal(char))
            return digit
        name = _LETTER.fullmatch(unicodedata.name(char, ""))
        basic = char if name is None else name[2] if name[1] == "CAPITAL" else name[2].lower()
        self[code] = basic
        return basic


_LETTER = re.compile("LATIN (CAPITAL|SMALL) (?:LETTER|LIGATURE) (?:DOTLESS )?([A-Z]{1,2})(?: WITH [A-Z ]+)?")
_letters = _Letters(
    {ord("ß"): "ss", ord("ẞ"): "SS", ord("ð"): "d", ord("Ð"): "D", ord("þ"): "th"}
    | dict(zip(map(ord, "ىیک"), "ييك", strict=True))
)


def folded(text: str) -> str:
    """Return a text in NFKC without accents, with basic Latin letters and signs."""
    if text.isascii():
        return text
    basic = _ACCENT.sub("", unicodedata.normalize("NFKD", text.translate(_SIGNS)))
    return unicodedata.normalize("NFC", basic.translate(_letters))


_JOINT = re.compile(r"[-._#+']+")
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
MAX_ANALYSED = 40_000
"""Maximum analysed characters of a context; of a longer one, equal parts from its beginning and its end."""

MAX_SHOWN = 60
"""Maximum characters of a word in an answer."""

_PAIRED = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\uffa0-\uffdc\U00020000-\U0003ffff"
)
_TRIPLED = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1980-\u1aaf\ua9e0-\uaa7f"
_UNSPACED = re.compile(f"[{_PAIRED}{_TRIPLED}]")
_IS_PAIRED = re.compile(f"[{_PAIRED}]")


@cache
def kind_of(char: str) -> str:
    """Return the kind of a character for the index; the cache has at most one entry per character."""
    category = unicodedata.category(char)
    if _IS_PAIRED.match(char):
        return "pair"
    if _UNSPACED.match(char) and category[0] in "LM":
        return "triple"
    if char in "-._#+'’‘‛ʼʻʹ′´ˈ‐‑" or category[0] in "LMN":
        return "word"
    if char in "⟪⟫﹍" or (category[0] == "S" and not "\u2500" <= char <= "\u259f"):
        return "symbol"
    return ""


def words_and_symbols(raw: str) -> list[str]:
    """Separate words from adjacent symbols."""
    pieces: list[str] = []
    for kind, run in groupby(raw, kind_of):
        if kind == "symbol":
            pieces += run
        elif kind:
            pieces.append("".join(run))
    return pieces


def analysed(text: str) -> str:
    """Return the characters of a context that count."""
    half = MAX_ANALYSED // 2
    return text if len(text) <= MAX_ANALYSED else f"{text[:half]} {text[-half:]}"


def cut_word(text: str) -> str:
    """Shorten a caller's text to :data:`MAX_SHOWN` characters, so that it costs few tokens in an answer."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def parts_of_word(word: str) -> list[str]:
    """Return the parts of an identifier."""
    if word.isascii():
        return PART.findall(word)
    parts = (PART.findall(part) if part.isascii() else [part] for part in _JOINT.split(word))
    return list(chain.from_iterable(parts))


def without_compounds(words: Iterable[str]) -> list[str]:
    """Drop terms like ``table-format``, whose parts are terms, too; if all are like that, keep them."""
    words = list(words)
    return [word for word in words if _JOINT.search(word) is None] or words


def shown_mark(mark: re.Match[str]) -> str:
    """Return the text that a page shows for markup."""
    if mark[0][0] == "&":
        return re.sub(f"[{HIDDEN}]", "", unescape(mark[0]))
    return mark[0][1:] if mark[0][0] == "\\" else ""


def shown_to_ask(mark: re.Match[str]) -> str:
    """Return the text that markup in a question stands for."""
    # In a question, "width*height" is two words.
    return mark[0] if mark[0][0] in "*~`" else shown_mark(mark)


def shown(text: str) -> str:
    """Return a text without marks of emphasis, code and quotes, links, tags, escapes and entities."""
    return re.sub(_MARKUP, shown_mark, text)


def plain(text: str) -> str:
    """Return a text for comparison: on one line, without differences of case, accents and like signs."""
    return " ".join((text if text.isascii() else folded(text)).casefold().split())


def holds(text: str, phrase: str) -> bool:
    """Return whether a text contains a phrase, in the source or as a page shows it."""
    wanted = re.compile(pattern(plain(shown(phrase))))
    return any(wanted.search(plain(form)) for form in (text, shown(text)))


def pattern(text: str) -> str:
    """Return the pattern of a text between other characters than those of its words.

    In a script without spaces, words may follow each other.
    """
    before = "" if _UNSPACED.match(text) else rf"(?<![^\W{_PAIRED}{_TRIPLED}])"
    after = "" if _UNSPACED.match(text[-1:]) else rf"(?![^\W{_PAIRED}{_TRIPLED}])"
    return f"{before}{re.escape(text)}{after}"
