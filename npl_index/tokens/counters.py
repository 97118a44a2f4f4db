"""Count the tokens of a text: exactly where a vocabulary is at hand, by estimate otherwise.

tiktoken downloads a vocabulary when it first needs it, and deletes a cache file whose checksum is wrong.
Here it does neither: a vocabulary is read from the folders the caller names, or not at all. Besides such
a file this module opens the package's own ``data``, and nothing else.

**The estimate.** Both vocabularies first cut a text into pieces (a word with the blank before it, up to
three digits, a run of punctuation, white space) and then each piece into tokens. The estimator cuts into
the same pieces. A piece on its list costs one token: the list holds strings from many texts for which
tiktoken answered 1. Any other piece is cut into the longest listed strings from left to right; a character
that is on no list costs what tiktoken most often answered for it and its neighbours. Each cost is a whole
number, so the estimate of a text is the sum over its pieces. Prompts, documentation and code in English
are met within 10 per cent nineteen times in twenty, and mostly a little too high; everyday prose in other
languages can be up to a fifth too high in ``o200k_base``, whose words of those languages are not all listed.

**Parts.** For ``o200k_base``, ``o200k_harmony`` and ``cl100k_base``, exact or estimated::

    count(a + b) == count(a) + count(b)        unless joins(a, b)

since none of their pieces goes on from a line end to a character that is neither white space nor ``/``.
For the vocabularies older than these it holds where ``a`` ends in a single line end; where ``a`` ends in
several, the whole can have one token more than the parts. Where it does not hold, a token or two differ.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import zlib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from npl_index.errors import InvalidRequestError

VOCABULARIES = ("o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "p50k_edit", "r50k_base", "gpt2")
"""The vocabularies tiktoken knows, newest first."""

"""Those of them that can be counted without their files."""

_DATA = Path(__file__).parents[1] / "data"


class TokenCounter(Protocol):
    """Counts the tokens of texts in one vocabulary. Safe to share between threads."""

    @property
    def name(self) -> str:
        """``tiktoken:<vocabulary>`` where counts are exact, ``estimate:<vocabulary>`` where they are not."""
        ...

    @property
    def exact(self) -> bool:
        """Whether ``count`` gives the true number."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens, or the best estimate of it; special tokens count as plain text."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return ``count`` of each text, in order."""
        ...

    def allow(self, count: int) -> int:
        """Return a number to pack with for a text of this count: what the truth hardly exceeds."""
        ...

    def bound(self, text: str) -> int:
        """Return a number to pack with: ``count`` where it is exact, otherwise one the truth hardly exceeds.

        Where counts of parts add up, the bounds of parts add up to no less than the bound of the whole.
        """
        ...


def joins(left: str, right: str) -> bool:
    """Return whether a token could begin in one text and end in the other when they are put together."""
    return not (
        left == "" or right == "" or (left[-1] == "\n" and not right[0].isspace() and right[0] != "/")
    )


# --- exact ---------------------------------------------------------------------------------------------

# White-space runs of a million characters overflow tiktoken's regular expressions, which then panics, and
# up to version 0.12 its time grows with the square of a piece. So long texts are handed over in windows
# that end where a piece surely ends. Only a window's length without such a place is cut anywhere, which can
# change the count by a token or two.
_WINDOW = 100_000
_WINDOWS = re.compile(
    rf"(?s:.{{1,{_WINDOW}}})(?:\Z|(?<=\S\n)(?=[^\s/])|(?<=\S)(?= \S))|(?s:.{{1,{_WINDOW}}})",
)


class ExactCounter:
    """The counter that :func:`load_vocabulary` gives.

    :param encoding: a ``tiktoken.Encoding``.
    """

    exact = True

    def __init__(self, vocabulary: str, encoding: Any) -> None:
        self.name = f"tiktoken:{vocabulary}"
        self.encoding = encoding
        self._encode = encoding.encode_ordinary

    def count(self, text: str) -> int:
        """Encode the text and count."""
        if len(text) <= _WINDOW:
            return len(self._encode(text))
        return sum(len(self._encode(window)) for window in _WINDOWS.findall(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Count one text after the other: most are too short for tiktoken's threads to pay."""
        return [self.count(text) for text in texts]

    def allow(self, count: int) -> int:
        """Return the count: it is the truth."""
        return count

    def bound(self, text: str) -> int:
        """Return the true count."""
        return self.count(text)


def load_vocabulary(vocabulary: str, folders: Sequence[Path]) -> TokenCounter | None:
    """Return an exact counter if one of the folders holds the vocabulary, else ``None``.

    A vocabulary file has the name it has in tiktoken's own cache (the SHA-1 of its address) and the SHA-256
    that tiktoken expects; a file with another content is passed over and left alone. Nothing is downloaded
    or written. Takes about 0.3 s of processor time and 70 MB of memory for ``o200k_base``.

    :param vocabulary: one of ``VOCABULARIES``.
    :param folders: where to look, in order; those that do not exist count as empty.
    :raises InvalidRequestError: tiktoken knows no such vocabulary; names those spelled alike.
    """
    _check(vocabulary)
    import tiktoken  # costs 20 ms, and many processes never count exactly

    try:
        make_parts = _offline_constructors(folders)[vocabulary]
        return ExactCounter(vocabulary, tiktoken.Encoding(**make_parts()))
    except _MissingFileError:
        return None


class _MissingFileError(Exception):
    """No folder holds a file that a vocabulary consists of."""


_LOADERS = ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks")


def _offline_constructors(folders: Sequence[Path]) -> dict[str, Any]:
    """Return tiktoken's functions that make a vocabulary's parts, in a copy that reads local files only.

    The copy is private, so whoever else uses tiktoken in this process keeps the original.
    """

    def read(address: str, expected_hash: str | None = None) -> bytes:
        name = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
        for folder in folders:
            try:
                content = (folder / name).read_bytes()
            except OSError:
                continue
            if hashlib.sha256(content).hexdigest() == expected_hash:
                return content
        raise _MissingFileError

    loading = vars(_private_copy("tiktoken.load"))
    public = vars(_private_copy("tiktoken_ext.openai_public"))
    if "read_file_cached" not in loading or not all(name in loading for name in _LOADERS):
        raise _MissingFileError  # a tiktoken built otherwise: better no exact count than a download
    loading["read_file_cached"] = read
    public.update((name, loading[name]) for name in _LOADERS)
    constructors: dict[str, Any] = public["ENCODING_CONSTRUCTORS"]
    return constructors


def _private_copy(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise _MissingFileError
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _check(vocabulary: str) -> None:
    if vocabulary not in VOCABULARIES:
        near = get_close_matches(vocabulary, VOCABULARIES, cutoff=0.4) or VOCABULARIES
        hint = "write " + " or ".join(near)
        raise InvalidRequestError(f"there is no vocabulary {vocabulary!r}", parameter="vocabulary", hint=hint)


# --- estimate ------------------------------------------------------------------------------------------

# The classes are those of the Unicode standard, made small: capitals outside the Latin-1, Greek and
# Cyrillic blocks count as small letters, and the marks are those of scripts in wide use.
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
_ASCII = {  # the same for ASCII texts, twice as fast
    "letter": "[A-Za-z]",
    "capital": "[A-Z]",
    "small": "[a-z]",
    "lead": r"[^A-Za-z0-9\r\n]",
    "sign": r"[^\sA-Za-z0-9]",
}
_SHORT = r"'(?:[sdmtSDMT]|ll|ve|re|LL|VE|RE)"
_REST = r"\d{{1,3}}| ?{sign}+[\r\n%s]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# The first branch of each is a short cut for the commonest pieces.
_PIECES = {
    "o200k_base": "[ _]?[a-z]+(?!{small}|{capital}|')"
    rf"|{{lead}}?{{capital}}*{{small}}+(?:{_SHORT})?|{{lead}}?{{capital}}+(?:{_SHORT})?|" + _REST % "/",
    "cl100k_base": f"[ _]?[a-z]+(?!{{letter}})|{_SHORT}|{{lead}}?{{letter}}+|" + _REST % "",
}


def piece_pattern(model: str, *, ascii_only: bool = False) -> re.Pattern[str]:
    """Return the pattern whose matches are the pieces of a text.

    :param model: ``o200k_base`` or ``cl100k_base``.
    :param ascii_only: the texts will be ASCII.
    """
    return re.compile(_PIECES[model].format_map(_ASCII if ascii_only else _UNICODE))


_WORD_END = re.compile(r"(?:[^\W\d_\u0e00-\U0010ffff]|[\u0300-\u0dff])\Z")
_REACH = 24  # characters of the longest listed strings,
_WIDE_REACH = 8  # of those in Chinese, Japanese and Korean,
_RUN_REACH = 128  # and of those that repeat one character
_SAME = re.compile(r"(.)\1*", re.DOTALL)
_REMEMBERED = 200_000  # pieces, the listed ones among them
_LONGEST_REMEMBERED = 64  # characters


class PieceCosts(dict[str, int]):
    """Tokens by piece: 1 for each listed string; those of other pieces are worked out and remembered.

    :param listed: strings that cost one token.
    :param characters: a digit for each 64 code points from U+0000 up: the tokens of a character in that
        block that is not listed. Beyond the last block a character costs 4.
    :param sparse: the list holds only a part of the vocabulary's words of other languages than English.
        Such a word is then cut too often, and costs one token less if it was cut into four or more; in
        the scripts from Hebrew to Sinhala also a short one that was cut into three.
    """

    def __init__(self, listed: Iterable[str], characters: str, sparse: bool) -> None:
        super().__init__(dict.fromkeys(listed, 1))
        self._characters = characters
        self._sparse = sparse

    def __missing__(self, piece: str) -> int:
        cost = self.cut(piece)
        if self._sparse and cost > 2 and not piece.isascii() and _WORD_END.search(piece):
            cost -= cost > 3 or (len(piece) < 6 and piece[-1] >= "\u0590")
        if len(piece) <= _LONGEST_REMEMBERED and len(self) < _REMEMBERED:
            self[piece] = cost
        return cost

    def cut(self, piece: str) -> int:
        """Cut a piece into the longest listed strings from left to right, and add up what they cost."""
        # A blank mostly shares the first token of a character that costs several.
        start = 1 if piece[0] == " " and len(piece) > 1 and self._character(piece[1]) > 1 else 0
        cost = 0
        while start < len(piece):
            stop = self._end_of_listed(piece, start)
            times = _repeated(piece, start, stop)
            cost += times * (1 if stop > start + 1 else self._character(piece[start]))
            start += times * (stop - start)
        return cost

    def _end_of_listed(self, piece: str, start: int) -> int:
        window = piece[start : start + _RUN_REACH]
        run = len(window) - len(window.lstrip(window[0]))
        if run > _REACH:  # tiktoken joins equal characters in pairs, and pairs of pairs
            lengths: Iterable[int] = (1 << power for power in range(run.bit_length() - 1, 0, -1))
        else:
            lengths = range(min(len(window), _REACH if window[0] < "\u2e80" else _WIDE_REACH), 1, -1)
        return start + next((length for length in lengths if self.get(window[:length]) == 1), 1)

    def _character(self, character: str) -> int:
        if character in self:
            return self[character]
        block = ord(character) >> 6
        return int(self._characters[block]) if block < len(self._characters) else 4


def _repeated(piece: str, start: int, stop: int) -> int:
    """Count how often a string follows itself inside a long run of one character."""
    if piece[start : start + _REACH] != piece[start] * _REACH:
        return 1
    run = _SAME.match(piece, start)
    return max(1, (run.end() - start) // (stop - start)) if run else 1


class Estimator:
    """The counter that :func:`estimator` gives.

    :param model: the vocabulary whose way of cutting a text into pieces is taken: ``o200k_base`` or
        ``cl100k_base``.
    """

    exact = False

    def __init__(self, vocabulary: str, model: str, costs: PieceCosts) -> None:
        self.name = f"estimate:{vocabulary}"
        self._costs = costs
        self._ascii_pieces = piece_pattern(model, ascii_only=True).findall
        self._pieces = piece_pattern(model).findall

    def count(self, text: str) -> int:
        """Add up the pieces' costs."""
        pieces = self._ascii_pieces(text) if text.isascii() else self._pieces(text)
        return sum(map(self._costs.__getitem__, pieces))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Add up each text's costs."""
        return [self.count(text) for text in texts]

    def allow(self, count: int) -> int:
        """Return the estimate and 6 per cent more, rounded up."""
        return -(-count * 106 // 100)

    def bound(self, text: str) -> int:
        """Return the estimate of a text and 6 per cent more, rounded up."""
        return self.allow(self.count(text))


def estimator(vocabulary: str = "o200k_base") -> TokenCounter:
    """Return a counter that needs no vocabulary file. Takes about 15 ms and 15 MB of memory.

    :param vocabulary: ``o200k_base``, ``o200k_harmony`` or ``cl100k_base``.
    :raises InvalidRequestError: tiktoken knows no such vocabulary, or it cannot be estimated.
    """
    _check(vocabulary)
    model = "o200k_base" if vocabulary == "o200k_harmony" else vocabulary
    if model not in _PIECES:
        problem = f"the tokens of {vocabulary} can be counted with its file but not estimated"
        raise InvalidRequestError(problem, parameter="vocabulary", hint="write " + " or ".join(_PIECES))
    characters, *own = _read_strings(model)
    costs = PieceCosts(own + _read_strings("both"), characters, sparse=model == "o200k_base")
    return Estimator(vocabulary, model, costs)


def _read_strings(name: str) -> list[str]:
    """Read strings from the package's data: gzip, UTF-8, with a NUL between two strings."""
    packed = (_DATA / f"tokens.{name}.gz").read_bytes()
    return zlib.decompress(packed, wbits=31).decode("utf-8").split("\0")
