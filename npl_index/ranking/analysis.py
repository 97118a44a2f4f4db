"""Text to the terms of the index, and a caller's context to keywords.

A *term* is what sections and queries are compared by. Words are normalised
(Unicode NFKC, case folded, accents of Latin, Greek, Cyrillic, Hebrew and Arabic
letters removed) and stemmed with the Snowball stemmer for English. An identifier
gives its parts and itself: ``maxRetries`` gives ``max``, ``retri`` and
``maxretries``, ``--force`` gives ``forc`` and ``--force``. Scripts written
without spaces give overlapping pieces: single characters and pairs for Han,
kana and Hangul, triples for Thai, Lao, Khmer, Burmese and Tibetan. Symbols
such as ``⌜`` ``⟪`` ``🎯`` are terms of their own.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain, groupby, pairwise, repeat
from math import log
from sys import intern
from typing import NamedTuple

import Stemmer

logger = logging.getLogger(__name__)

MAX_ANALYSED = 40_000
"""Characters of a context that are analysed; of a longer one its beginning and its end, in equal parts."""

MAX_SHOWN = 60
"""Characters of a word that an answer names."""

MAX_QUERY_TERMS = 48
"""Terms a query may have; the heaviest are kept."""

RARE = 0.002
"""Share of sections assumed to hold a word that is not in the list of common words."""

QUESTION_WEIGHT = 0.5
"""Weight in a query of a word that says how a question is asked ("explain"), not what it is about."""

_CHUNK = re.compile(r"""[^\s\x00-\x1f!"$%&()*,/:;<=>?@\[\\\]^`{|}~\x7f]+""")
_SPACES = {code: " " for code in range(128) if _CHUNK.match(chr(code)) is None}
_ESCAPE = re.compile(r"\\[nrt](?![a-z])")
_JOINT = re.compile(r"[-._#+']+")
_SPLITS = re.compile(r"[-._#+'][^-._#+']|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|[A-Za-z][0-9]|[0-9][A-Za-z]{2}")
_IDENTIFIER = re.compile(r"^--|[^\W_0-9][._+#][^\W_0-9]|[A-Za-z]-?[0-9]|[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_CAMEL = re.compile("[a-z][A-Z]")
_MARKED = re.compile("[._#+]")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ACCENT = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]"
)
_LONGEST_PHRASE = 4
_VOCABULARY_BONUS = 1.5
_CACHED_WORDS = 1 << 15
_CACHED_LENGTH = 40
_MAX_TERM = 64

# One for all threads: a call holds the interpreter's lock from beginning to end.
_stemmer = Stemmer.Stemmer("english", 0)


@cache
def _data_lines(name: str) -> tuple[str, ...]:
    text = resources.files("npl_index").joinpath("data").joinpath(name).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


@cache
def stop_words() -> frozenset[str]:
    """Return the English words that carry no subject."""
    return frozenset(word for line in _data_lines("stop_words.txt") for word in line.split())


@cache
def _commonness() -> dict[str, float]:
    shares: dict[str, float] = {}
    for line in _data_lines("common_words.txt"):
        share, *words = line.split()
        shares.update(dict.fromkeys(words, float(share) / 1000))
    return shares


def commonness(term: str) -> float:
    """Return the share of sections of ordinary technical prose that hold a term, 0 to 1."""
    return _commonness().get(term, RARE)


def commonnesses(every: Iterable[str]) -> list[float]:
    """Return the same of many terms, in one step."""
    return list(map(_commonness().get, every, repeat(RARE)))


@cache
def _question_terms() -> frozenset[str]:
    return frozenset(_stem(word) for line in _data_lines("question_words.txt") for word in line.split())


def terms(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """Turn text into index terms, in order, repetitions included.

    :param keep_stop_words: keep words that carry no subject, too.
    """
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
    # The same chunks, several times as fast.
    chunks = text.translate(_SPACES).split() if text.isascii() else _CHUNK.findall(text)
    if keep_stop_words:
        return list(chain.from_iterable(_known[raw] or _stopped(raw) for raw in chunks))
    return list(chain.from_iterable(map(_known.__getitem__, chunks)))


def without_compounds(words: Iterable[str]) -> list[str]:
    """Leave out terms like ``table-format``, whose parts are terms, too."""
    found = list(words)
    return [word for word in found if _JOINT.search(word) is None] or found


def _parts(raw: str) -> tuple[str, ...]:
    """Return the terms of one stretch of text without spaces."""
    return tuple(intern(term[:_MAX_TERM]) for term in _split(raw))


class _Known(dict[str, tuple[str, ...]]):
    """Terms of stretches of text: texts repeat their words, and stemming one costs ten times a look."""

    def __missing__(self, raw: str) -> tuple[str, ...]:
        parts = _parts(raw)
        if len(raw) <= _CACHED_LENGTH:  # a long one is hardly ever seen twice
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[raw] = parts
        return parts


_known = _Known()


def _stopped(raw: str) -> tuple[str, ...]:
    word = _without_accents(unicodedata.normalize("NFKC", raw)).strip("-._#+'").lower()
    return (intern(word),) if word in stop_words() else ()


def _split(raw: str) -> Iterable[str]:
    if raw.isascii():
        return _ascii_terms(raw)
    return _unicode_terms(raw)


def _ascii_terms(raw: str) -> list[str]:
    word = raw.strip("-._#+'")
    if len(word) <= 2 and raw.startswith(word) and raw[len(word) : len(word) + 2] in ("++", "#"):
        return [raw.lower()] if word else []
    lower = word.lower()
    if not word or lower in stop_words():
        return []
    if lower.endswith("'s"):
        word, lower = word[:-2], lower[:-2]
    flag = [f"--{lower}"] if raw.startswith("--") else []
    if _SPLITS.search(word) is None:
        return [_stem(lower), *flag]
    bits = [bit for part in _JOINT.split(word) for bit in _PART.findall(part)]
    parts = [bit.lower() for bit in bits if len(bit) > 1]
    found = [_stem(part) for part in parts if part not in stop_words()]
    if flag or lower not in parts:
        # "server.portal" is not "server.port", which its stem would be.
        found += flag or [lower if _MARKED.search(lower) else _stem(lower)]
    return found


def _stem(word: str) -> str:
    """Stem an English word; the stemmer leaves ``gpus`` alone, because of words like ``bus``."""
    return word[:-1] if word.endswith("pus") and len(word) == 4 else _stemmer.stemWord(word)


def _unicode_terms(raw: str) -> list[str]:
    found: list[str] = []
    text = unicodedata.normalize("NFKC", raw.replace("’", "'").replace("﹍", "⌇"))
    for kind, run in groupby(text, _kind):
        chars = "".join(run)
        if kind == "word":
            found += _word_terms(chars)
        elif kind == "pair":
            found += chars
            found += (chars[i : i + 2] for i in range(len(chars) - 1))
        elif kind == "triple":
            found += (chars[i : i + 3] for i in range(max(1, len(chars) - 2)))
        elif kind == "symbol":
            found += chars
    return found


def _without_accents(chars: str) -> str:
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", chars)))


def _word_terms(chars: str) -> list[str]:
    plain = _without_accents(chars)
    if plain.isascii():
        return _ascii_terms(plain)
    words = [word for word in _JOINT.split(plain.casefold()) if word]
    return [_stemmer.stemWord(word) for word in words]


_PAIRED = (
    (0x1100, 0x11FF),
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x3130, 0x318F),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_TRIPLED = ((0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1980, 0x1AAF), (0xA9E0, 0xAA7F))


@cache
def _kind(char: str) -> str:
    """Say how a character is indexed; the cache holds at most all of Unicode."""
    code = ord(char)
    category = unicodedata.category(char)
    if any(low <= code <= high for low, high in _PAIRED):
        return "pair"
    if any(low <= code <= high for low, high in _TRIPLED) and category[0] in "LM":
        return "triple"
    if char in "-._#+'’" or category[0] in "LMN":
        return "" if code in (0xFE0F, 0xFE0E) else "word"
    if char in "⟪⟫" or (category[0] == "S" and not 0x2500 <= code <= 0x259F):
        return "symbol"
    return ""


@dataclass(frozen=True, slots=True)
class Keywords:
    """What a caller's words are about.

    :param words: words and phrases as people write them, best first, each once.
    :param weights: index terms with their weight in a query, in order of appearance. Words that stand
        side by side are neighbours here, too.
    :param pairs: index terms that stand side by side.
    :param parts: index terms that are here only as parts of an identifier, each with the identifier.
    :param written: the words of the text with their terms, each once, without stop words.
    """

    words: tuple[str, ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    written: tuple[Word, ...] = ()


def extract_keywords(text: str, *, limit: int = 20) -> Keywords:
    """Find out what a text is about.

    :param text: a question, a task or an agent's definition; of a very long one the beginning and the end.
    :param limit: at most so many ``words``.
    """
    text = _ESCAPE.sub(" ", _sample(text))
    runs = _runs(text)
    found = [term for run in runs for word in run for term in word.terms]
    if not found:
        found = terms(text, keep_stop_words=True)
    shaping = _question_terms()
    counts = Counter(found)
    weights = {
        term: (1 + log(n)) * (QUESTION_WEIGHT if term in shaping else 1.0) for term, n in counts.items()
    }
    if len(weights) > MAX_QUERY_TERMS:
        kept = set(sorted(weights, key=lambda term: -weights[term] * _rarity(term))[:MAX_QUERY_TERMS])
        weights = {term: weight for term, weight in weights.items() if term in kept}
    pairs = dict.fromkeys((a, b) for a, b in pairwise(found) if a in weights and b in weights)
    shown = _shown(runs, counts)[:limit] or tuple(dict.fromkeys(found))[:limit]
    parts = tuple(one for one in _parts_in(runs).items() if weights.keys() >= set(one))
    written = tuple({word.terms: word for run in runs for word in run}.values())
    keywords = Keywords(shown, tuple(weights.items()), tuple(pairs)[:MAX_QUERY_TERMS], parts, written)
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("keywords %s, terms %s", keywords.words, keywords.weights)
    return keywords


def identifier_parts(texts: Iterable[str]) -> dict[str, str]:
    """Return terms that stand in short texts only as parts of an identifier, each with the identifier."""
    return _parts_in(chain.from_iterable(map(_runs, texts)))


def _parts_in(runs: Iterable[Iterable[Word]]) -> dict[str, str]:
    """Return terms that stand only in identifiers (``py_modules``, ``maxRetries``), each with its identifier.

    Words with hyphens alone are no identifiers: people write "fine-tuning" and "fine tuning". Those with a
    number are, with or without one: who asks for ERR-4711 or quokkaw16 means no other error and no other 16.
    """
    found: dict[str, str] = {}
    others: set[str] = set()
    for run in runs:
        for word in run:
            *parts, whole = word.terms
            if word.identifier:
                found |= dict.fromkeys(parts, whole)
            else:
                others.update(word.terms)
    return {part: whole for part, whole in found.items() if part not in others}


def _sample(text: str) -> str:
    if len(text) <= MAX_ANALYSED:
        return text
    half = MAX_ANALYSED // 2
    return f"{text[:half]} {text[-half:]}"


def cut_word(text: str) -> str:
    """Cut a text of a caller to :data:`MAX_SHOWN` characters, so that naming it costs few tokens."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


class Word(NamedTuple):
    """A word as it stands in the text, and its terms."""

    text: str
    terms: tuple[str, ...]

    @property
    def identifier(self) -> bool:
        """Whether it is an identifier that has parts; the last of its terms is the identifier itself."""
        return len(self.terms) > 1 and _IDENTIFIER.search(self.text) is not None

    @property
    def meant(self) -> tuple[str, ...]:
        """The terms that stand for it: of an identifier itself alone."""
        return self.terms[-1:] if self.identifier else self.terms

    @property
    def shown(self) -> str:
        """The word without the marks around it, cut to :data:`MAX_SHOWN` characters."""
        return cut_word(self.text.rstrip("-.'").lstrip("'"))

    @property
    def size(self) -> int:
        """The words it counts as: a run of a script without spaces holds several."""
        return 1 if self.text.isascii() else len(self.terms)


def _runs(text: str) -> list[list[Word]]:
    """Split a text into runs of words with only spaces between them, stop words left out."""
    runs: list[list[Word]] = [[]]
    last = 0
    for match in _CHUNK.finditer(text):
        if not text[last : match.start()].isspace():
            runs.append([])
        raw = match[0]
        for piece in [raw] if raw.isascii() else _pieces(raw):
            parts = _known[piece]
            alone = not parts or not piece[0].isalnum()
            if alone:
                runs.append([])
            if parts:
                runs[-1].append(Word(piece, parts))
            if alone:
                runs.append([])
        last = match.end() if raw[-1] not in ".'" else -1
    return [run for run in runs if run]


def _pieces(raw: str) -> list[str]:
    """Separate words from the symbols that touch them."""
    found: list[str] = []
    for kind, run in groupby(raw, _kind):
        if kind == "symbol":
            found += run
        elif kind:
            found.append("".join(run))
    return found


def _shown(runs: Sequence[Sequence[Word]], counts: Counter[str]) -> tuple[str, ...]:
    """Choose what to show of a text: its words and phrases, each once, best first.

    A word is worth more the more often it stands in the text and the rarer it is elsewhere. A phrase is a
    run of two to four words (Rose et al., "Automatic keyword extraction from individual documents", 2010),
    or one of the NPL vocabulary.
    """
    worth: dict[tuple[str, ...], float] = {}
    spelling: dict[tuple[str, ...], str] = {}
    vocabulary = _npl_phrases()
    shaping = _question_terms()
    for run in runs:
        for size in range(1, min(len(run), _LONGEST_PHRASE) + 1):
            for begin in range(len(run) - size + 1):
                words = run[begin : begin + size]
                key = tuple(word.terms[-1] for word in words)
                known = key in vocabulary
                if key in worth or (
                    size > 1 and not known and (size != len(run) or not shaping.isdisjoint(key))
                ):
                    continue
                value = sum((1 + log(counts[term])) * _rarity(term) for term in key) / size
                if known:
                    value *= _VOCABULARY_BONUS
                if not shaping.isdisjoint(key):
                    value *= QUESTION_WEIGHT
                worth[key] = value
                spelling[key] = " ".join(map(_spelling, words))
    best = sorted(worth, key=lambda key: -worth[key])
    return tuple(dict.fromkeys(spelling[key] for key in best if len(spelling[key]) <= _MAX_TERM))


def _spelling(word: Word) -> str:
    """Write a word as a keyword: in lower case unless case is part of it, without marks around it."""
    if word.terms[-1][-1] in "+#":
        return word.terms[-1]
    text = word.text.strip("-._#+'") or word.text
    if text.endswith("'s"):
        text = text[:-2]
    return text if _CAMEL.search(text) else text.lower()


def _rarity(term: str) -> float:
    return -log(commonness(term))


@cache
def _npl_phrases() -> frozenset[tuple[str, ...]]:
    """The vocabulary, each entry as the last terms of its words."""
    return frozenset(
        tuple(terms(word)[-1] for word in line.split() if terms(word))
        for line in _data_lines("npl_terms.txt")
    )
