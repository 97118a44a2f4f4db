"""Count the tokens of a text: exactly where a vocabulary is at hand, by estimate otherwise.

tiktoken downloads a vocabulary when it first needs it, and deletes a cache file whose checksum is wrong.
Here it does neither: a vocabulary is read from the folders the caller names, or not at all. Besides such
a file this module opens the package's own ``data``, and nothing else.

**The estimate.** Both vocabularies first cut a text into pieces (a word with the blank before it, up to
three digits, a run of punctuation, white space) and then each piece into tokens. The estimator cuts into
the same pieces. A piece on its list costs one token: the list holds strings from many texts for which
tiktoken answered 1. Any other piece is cut into the longest listed strings from left to right; a character
that is on no list costs what tiktoken most often answered for it and its neighbours. Each cost is a whole
number, so the estimate of a text is the sum over its pieces.

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
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from npl_index.errors import InvalidRequestError

VOCABULARIES = ("o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "p50k_edit", "r50k_base", "gpt2")
"""The vocabularies tiktoken knows, newest first."""

_DATA = Path(__file__).parent / "data"


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
        """Give the number of tokens, or the best estimate of it; special tokens count as plain text."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Give ``count`` of each text, in order."""
        ...

    def bound(self, text: str) -> int:
        """Give a number to pack with: ``count`` where it is exact, otherwise one the truth hardly exceeds.

        The sum of the parts' bounds is never less than the bound of the whole (unless they ``joins``).
        """
        ...


def joins(left: str, right: str) -> bool:
    """Say whether a token could begin in one text and end in the other when they are put together."""
    return not (left == "" or right == "" or (left[-1] == "\n" and not right[0].isspace() and right[0] != "/"))


# --- exact ---------------------------------------------------------------------------------------------

# White-space runs of a million characters overflow tiktoken's regular expressions, which then panics, and
# up to version 0.12 its time grows with the square of a piece. So long texts are handed over in windows
# that end where a piece surely ends. Only a window's length without such a place is cut anywhere, which can
# change the count by a token or two.
_WINDOW = 100_000
_WINDOWS = re.compile(
    rf"(?s:.{{1,{_WINDOW}}})(?:\Z|(?<=\S\n)(?=[^\s/])|(?<=\S)(?= \S))|(?s:.{{1,{_WINDOW}}})",
)


class _ExactCounter:
    exact = True

    def __init__(self, vocabulary: str, encoding: Any) -> None:
        self.name = f"tiktoken:{vocabulary}"
        self.encoding = encoding
        self._encode = encoding.encode_ordinary

    def count(self, text: str) -> int:
        if len(text) <= _WINDOW:
            return len(self._encode(text))
        return sum(len(self._encode(window)) for window in _WINDOWS.findall(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]

    bound = count


def load_vocabulary(vocabulary: str, folders: Sequence[Path]) -> TokenCounter | None:
    """Give an exact counter if one of the folders holds the vocabulary, else ``None``.

    A vocabulary file has the name it has in tiktoken's own cache (the SHA-1 of its address) and the SHA-256
    that tiktoken expects; a file with another content is passed over and left alone. Nothing is downloaded
    or written. Takes about 0.3 s of processor time and 70 MB of memory for ``o200k_base``.

    :param vocabulary: one of ``VOCABULARIES``.
    :param folders: where to look, in order; those that do not exist count as empty.
    :raises InvalidRequestError: tiktoken knows no such vocabulary; names those spelled alike.
    """
    _check(vocabulary)
    import tiktoken  # costs 20 ms, and many processes never count exactly

    constructors = _offline_constructors(folders)
    try:
        return _ExactCounter(vocabulary, tiktoken.Encoding(**constructors[vocabulary]()))
    except _MissingFileError:
        return None


class _MissingFileError(Exception):
    """No folder holds a file that a vocabulary consists of."""


_LOADERS = ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks")


def _offline_constructors(folders: Sequence[Path]) -> dict[str, Any]:
    """Give tiktoken's functions that make a vocabulary's parts, in a copy that reads local files only.

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
_CAPITAL = "A-ZÀ-ÖØ-ÞΑ-ΡΣ-ΫЀ-Я"
_MARK = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7\u0a01-\u0a03"
    "\u0a3c-\u0a51\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04"
    "\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d57\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u102b-\u103e"
    "\u17b4-\u17d3\u20d0-\u20ff\ufe00-\ufe0f"
)
_SMALL = rf"(?:[^\W\d_{_CAPITAL}]|[{_MARK}])"
_LEAD = r"(?:[^\w\r\n]|_)?"
_SHORT = r"'(?:[sdmtSDMT]|ll|ve|re|LL|VE|RE)"
_REST = r"\d{1,3}| ?(?:[^\s\w]|_)+%s|\s*[\r\n]+|\s+(?!\S)|\s+"
# The first alternative of each is a short cut for the commonest pieces.
_O200K_PIECES = (
    rf"[ _]?[a-z]+(?![^\W\d_]|['{_MARK}])|{_LEAD}[{_CAPITAL}]*{_SMALL}+(?:{_SHORT})?"
    rf"|{_LEAD}[{_CAPITAL}]+(?:{_SHORT})?|" + _REST % r"[\r\n/]*"
)
_CL100K_PIECES = rf"[ _]?[a-z]+(?![^\W\d_])|{_SHORT}|{_LEAD}[^\W\d_]+|" + _REST % r"[\r\n]*"
_PIECES = {"o200k_base": _O200K_PIECES, "cl100k_base": _CL100K_PIECES}

_REACH = 24  # no listed string is longer, but for runs of one character
_RUN_REACH = 130
_REMEMBERED = 200_000  # pieces, those on the list included
_LONGEST_REMEMBERED = 64  # characters


class _Costs(dict[str, int]):
    """Tokens by piece: 1 for each listed string, more for those met since."""

    def __init__(self, listed: Sequence[str], characters: str) -> None:
        super().__init__(dict.fromkeys(listed, 1))
        self._characters = characters

    def __missing__(self, piece: str) -> int:
        cost = self._cut(piece)
        if len(piece) <= _LONGEST_REMEMBERED and len(self) < _REMEMBERED:
            self[piece] = cost
        return cost

    def _cut(self, piece: str) -> int:
        """Count the listed strings a piece is cut into."""
        # A blank before a character of several tokens mostly shares the first of them.
        start = 1 if piece[0] == " " and len(piece) > 1 and self._character(piece[1]) > 1 else 0
        cost = 0
        while start < len(piece):
            run = piece[start + 1 : start + _REACH]
            reach = _RUN_REACH if run == piece[start + 1 : start + 2] * (_REACH - 1) else _REACH
            for stop in range(min(len(piece), start + reach), start + 1, -1):
                if self.get(piece[start:stop]) == 1:
                    cost += 1
                    break
            else:
                stop = start + 1
                cost += self._character(piece[start])
            start = stop
        return cost

    def _character(self, character: str) -> int:
        if character in self:
            return self[character]
        block = ord(character) >> 6
        return int(self._characters[block]) if block < len(self._characters) else 4


class _Estimate:
    exact = False

    def __init__(self, vocabulary: str, pieces: re.Pattern[str], costs: _Costs) -> None:
        self.name = f"estimate:{vocabulary}"
        self._pieces = pieces
        self._costs = costs

    def count(self, text: str) -> int:
        return sum(map(self._costs.__getitem__, self._pieces.findall(text)))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]

    def bound(self, text: str) -> int:
        count = self.count(text)
        return count + -(-count * _MARGIN // 100)


_MARGIN = 8  # per cent


def estimator(vocabulary: str = "o200k_base") -> TokenCounter:
    """Give a counter that needs no vocabulary file.

    :raises InvalidRequestError: tiktoken knows no such vocabulary, or there is no estimate for it.
    """
    _check(vocabulary)
    model = vocabulary.replace("harmony", "base")
    if model not in _PIECES:
        raise InvalidRequestError(
            f"tokens of {vocabulary} cannot be estimated, only counted with its file",
            parameter="vocabulary",
            hint="write " + " or ".join(_PIECES),
        )
    characters, *listed = _read_list(model)
    listed += _read_list("both")
    return _Estimate(vocabulary, re.compile(_PIECES[model]), _Costs(listed, characters))


def _read_list(name: str) -> list[str]:
    """Read a list of strings: gzip, UTF-8, a NUL after each but the last."""
    packed = (_DATA / f"tokens.{name}.gz").read_bytes()
    return zlib.decompress(packed, wbits=31).decode("utf-8").split("\0")
