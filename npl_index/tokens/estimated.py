"""Token counts estimated without a vocabulary file.

Both vocabularies first cut a text into pieces (a word with the space before it, up to three digits, a run of
punctuation, white space) and then each piece into tokens. The estimator cuts a text into the same pieces. A
listed piece costs one token: the list contains strings from many texts that tiktoken encodes as one token.
Any other piece is cut into the longest listed strings from left to right; in ASCII also from right to left
and after a leading punctuation mark. The lowest cost counts. An unlisted character has the most frequent cost
that tiktoken gave to its block of characters. Each cost is a whole number, so the estimate of a text is the
sum over its pieces. ``benchmarks/train_tokens.py`` makes the lists.

For sections of English documentation and code, 99 of 100 estimates are within 10 per cent, too high as often
as too low. Estimates of everyday prose in other languages can be up to 20 per cent too high in
``o200k_base``, because the list does not contain all of its words of those languages.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import cache
from itertools import repeat
from pathlib import Path

from npl_index.tokens.counting import TokenCounter, base_vocabulary

_DATA = Path(__file__).parents[1] / "data"

# The character classes of the Unicode standard, simplified: capitals outside the Latin-1, Greek and Cyrillic
# blocks count as small letters, and only the marks of widely used scripts are included.
_CAPITALS = "A-ZÀ-ÖØ-ÞΑ-ΡΣ-ΫЀ-Я"
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7\u0a01-\u0a03"
    "\u0a3c-\u0a51\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04"
    "\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d57\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u102b-\u103e"
    "\u17b4-\u17d3\u20d0-\u20ff\ufe00-\ufe0f"
)
_UNICODE = {
    "letter": r"[^\W\d_]",
    "capital": f"[{_CAPITALS}]",
    "small": rf"(?:[^\W\d_{_CAPITALS}]|[{_MARKS}])",
    "lead": r"(?:[^\w\r\n]|_)",
    "sign": r"(?:[^\s\w]|_)",
}
_ASCII = {  # the same classes for ASCII texts, twice as fast
    "letter": "[A-Za-z]",
    "capital": "[A-Z]",
    "small": "[a-z]",
    "lead": r"[^A-Za-z0-9\r\n]",
    "sign": r"[^\sA-Za-z0-9]",
}
_SHORT = r"'(?:[sdmtSDMT]|ll|ve|re|LL|VE|RE)"
_REST = r"\d{{1,3}}| ?{sign}+[\r\n%s]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# The first branch of each matches the commonest pieces early.
_PIECES = {
    "o200k_base": "[ _]?[a-z]+(?!{small}|{capital}|')"
    rf"|{{lead}}?{{capital}}*{{small}}+(?:{_SHORT})?|{{lead}}?{{capital}}+(?:{_SHORT})?|" + _REST % "/",
    "cl100k_base": f"[ _]?[a-z]+(?!{{letter}})|{_SHORT}|{{lead}}?{{letter}}+|" + _REST % "",
}


def piece_pattern(model: str, *, ascii_only: bool = False) -> re.Pattern[str]:
    """Return the pattern that matches the pieces of a text.

    :param model: ``o200k_base`` or ``cl100k_base``.
    :param ascii_only: the texts contain only ASCII.
    """
    return re.compile(_PIECES[model].format_map(_ASCII if ascii_only else _UNICODE))


_WORD_END = re.compile(r"(?:[^\W\d_\u0e00-\U0010ffff]|[\u0300-\u0dff])\Z")
_MAX_LISTED = 24  # characters of a listed string,
_MAX_WIDE = 8  # of one in Chinese, Japanese or Korean,
_MAX_RUN = 128  # and of one that repeats a single character
_SAME = re.compile(r"(.)\1*", re.DOTALL)
_MAX_PIECES = 200_000  # in the cache, listed strings included
_MAX_CACHED = 64  # characters of a cached piece


class PieceCosts(dict[str, int]):
    """Tokens by piece: 1 for each listed string; the costs of other pieces are computed and cached.

    :param listed: strings that cost one token.
    :param characters: one digit for each block of 64 code points from U+0000 up: the tokens of an unlisted
        character in that block. Beyond the last block a character costs 4.
    :param sparse: the list contains only some of the vocabulary's words in languages other than English.
        Such a word is then cut too often. It costs one token less if it was cut into four or more strings;
        in the scripts from Hebrew to Sinhala, a short word also if it was cut into three.
    """

    def __init__(self, listed: Iterable[str], characters: str, sparse: bool) -> None:
        super().__init__(zip(listed, repeat(1)))
        self._characters = characters
        self._sparse = sparse

    def __missing__(self, piece: str) -> int:
        cost = self.cut(piece)
        if cost > 2 and piece.isascii() and len(piece) <= _MAX_CACHED:
            cost = min(cost, self._cut_from_end(piece))
        if cost > 2 and not piece[0].isalnum() and piece[1:].isalpha():
            # A punctuation mark before a word is usually a separate token.
            cost = min(cost, self._character(piece[0]) + self[piece[1:]])
        if self._sparse and cost > 2 and not piece.isascii() and _WORD_END.search(piece):
            cost -= cost > 3 or (len(piece) < 6 and piece[-1] >= "\u0590")
        if len(piece) <= _MAX_CACHED and len(self) < _MAX_PIECES:
            self[piece] = cost
        return cost

    def cut(self, piece: str) -> int:
        """Cut a piece into the longest listed strings from left to right, and add up their costs."""
        # A space usually shares the first token of a character that costs several.
        start = 1 if piece[0] == " " and len(piece) > 1 and self._character(piece[1]) > 1 else 0
        cost = 0
        while start < len(piece):
            stop = self._end_of_listed(piece, start)
            times = _repeated(piece, start, stop)
            cost += times * (1 if stop > start + 1 else self._character(piece[start]))
            start += times * (stop - start)
        return cost

    def _cut_from_end(self, piece: str) -> int:
        """Cut an ASCII piece into the longest listed strings from right to left, and add up their costs.

        For words with a common ending, tiktoken cuts this way.
        """
        stop, cost, get = len(piece), 0, self.get
        while stop:
            for start in range(max(0, stop - _MAX_LISTED), stop - 1):
                if get(piece[start:stop]) == 1:
                    cost += 1
                    break
            else:
                start = stop - 1
                cost += self._character(piece[start])
            stop = start
        return cost

    def _end_of_listed(self, piece: str, start: int) -> int:
        window = piece[start : start + _MAX_RUN]
        run = len(window) - len(window.lstrip(window[0]))
        if run > _MAX_LISTED:  # tiktoken joins equal characters in pairs, and pairs of pairs
            lengths: Iterable[int] = (1 << power for power in range(run.bit_length() - 1, 0, -1))
        else:
            longest = _MAX_LISTED if window[0] < "\u2e80" else _MAX_WIDE
            lengths = range(min(len(window), longest), 1, -1)
        get = self.get
        for length in lengths:
            if get(window[:length]) == 1:
                return start + length
        return start + 1

    def _character(self, character: str) -> int:
        if character in self:
            return self[character]
        block = ord(character) >> 6
        return int(self._characters[block]) if block < len(self._characters) else 4


def _repeated(piece: str, start: int, stop: int) -> int:
    """Count the consecutive repetitions of a string inside a long run of one character."""
    if piece[start : start + _MAX_LISTED] != piece[start] * _MAX_LISTED:
        return 1
    run = _SAME.match(piece, start)
    return max(1, (run.end() - start) // (stop - start)) if run else 1


@cache
def estimator(vocabulary: str = "o200k_base") -> TokenCounter:
    """Return a counter that needs no vocabulary file; each call returns the same one.

    The first call takes about 25 ms and 15 MB of memory.

    :param vocabulary: one of :data:`~npl_index.choices.VOCABULARIES`.
    :raises InvalidRequestError: there is no such vocabulary.
    """
    model = base_vocabulary(vocabulary)
    characters, *strings = _read_strings(model)
    costs = PieceCosts(strings + _read_strings("both"), characters, sparse=model == "o200k_base")
    return estimating(vocabulary, model, costs)


def estimating(vocabulary: str, model: str, costs: PieceCosts) -> TokenCounter:
    """Return a counter that adds up the costs of the pieces of a text.

    :param model: the vocabulary whose pattern cuts a text into pieces: ``o200k_base`` or ``cl100k_base``.
    """
    ascii_pieces, pieces = piece_pattern(model, ascii_only=True).findall, piece_pattern(model).findall

    def count(text: str) -> int:
        return sum(map(costs.__getitem__, ascii_pieces(text) if text.isascii() else pieces(text)))

    return TokenCounter(f"estimate:{vocabulary}", count, margin=6)


def _read_strings(name: str) -> list[str]:
    """Read strings from the package's data: gzip, UTF-8, with a NUL between two strings."""
    packed = (_DATA / f"tokens.{name}.gz").read_bytes()
    return zlib.decompress(packed, wbits=31).decode("utf-8").split("\0")
