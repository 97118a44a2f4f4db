"""Terms of a text, and keywords of a caller's context.

Sections and queries are compared by *terms*. Words are normalized (Unicode NFKC, case folding, no accents on
Latin, Greek, Cyrillic, Hebrew and Arabic letters) and stemmed with the Snowball stemmer for English. The
terms of an identifier are its parts and itself: ``maxRetries`` gives ``max``, ``retri`` and ``maxretries``;
``--force`` gives ``forc`` and ``--force``. Scripts without spaces give overlapping pieces: single characters
and pairs for Han, kana and Hangul, triples for Thai, Lao, Khmer, Burmese and Tibetan. Symbols such as ``⌜``
``⟪`` ``🎯`` are separate terms.
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
from itertools import chain, groupby, pairwise
from math import log
from sys import intern
from typing import NamedTuple

import Stemmer

logger = logging.getLogger(__name__)

MAX_ANALYSED = 40_000
"""Maximum analysed characters of a context: a longer one counts with its beginning and its end, in equal
parts.
"""

MAX_SHOWN = 60
"""Maximum characters of a word in an answer."""

MAX_QUERY_TERMS = 48
"""Maximum terms of a query; the heaviest are kept."""

RARE = 0.002
"""Assumed share of sections with a word that is not in the list of common words."""

QUESTION_WEIGHT = 0.5
"""Weight in a query of a word about the form of a question ("explain"), not about its subject."""

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
_MAX_PHRASE = 4
_VOCABULARY_BONUS = 1.5
_MAX_CACHED_WORDS = 1 << 15
_MAX_CACHED_LENGTH = 40
_MAX_TERM = 64

# One for all threads, because a call keeps the interpreter's lock.
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
    """Return the share of sections with a term in ordinary technical prose, 0 to 1."""
    return _commonness().get(term, RARE)


@cache
def _question_terms() -> frozenset[str]:
    return frozenset(_stem(word) for line in _data_lines("question_words.txt") for word in line.split())


def terms(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """Return the index terms of a text, in order, repetitions included.

    :param keep_stop_words: keep words without a subject, too.
    """
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
    # The same chunks, but several times faster.
    chunks = text.translate(_SPACES).split() if text.isascii() else _CHUNK.findall(text)
    if keep_stop_words:
        return list(chain.from_iterable(_known[raw] or _stopped(raw) for raw in chunks))
    return list(chain.from_iterable(map(_known.__getitem__, chunks)))


def without_compounds(words: Iterable[str]) -> list[str]:
    """Drop terms like ``table-format``, whose parts are terms, too; if all are like that, keep them."""
    found = list(words)
    return [word for word in found if _JOINT.search(word) is None] or found


class _TermCache(dict[str, tuple[str, ...]]):
    """Terms by chunk of text without spaces: texts repeat their words, and stemming takes ten lookups."""

    def __missing__(self, raw: str) -> tuple[str, ...]:
        found = _ascii_terms(raw) if raw.isascii() else _unicode_terms(raw)
        parts = tuple(intern(term[:_MAX_TERM]) for term in found)
        if len(raw) <= _MAX_CACHED_LENGTH:  # longer ones are rarely repeated
            if len(self) >= _MAX_CACHED_WORDS:
                self.clear()
            self[raw] = parts
        return parts


_known = _TermCache()


def _stopped(raw: str) -> tuple[str, ...]:
    word = _without_accents(unicodedata.normalize("NFKC", raw)).strip("-._#+'").lower()
    return (intern(word),) if word in stop_words() else ()


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
        # The stem of "server.portal" would be "server.port".
        found += flag or [lower if _MARKED.search(lower) else _stem(lower)]
    return found


def _stem(word: str) -> str:
    """Stem an English word, also words like ``gpus``, which the stemmer treats like ``bus``."""
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


_PAIRED = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_TRIPLED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1980-\u1aaf\ua9e0-\uaa7f]")


@cache
def _kind(char: str) -> str:
    """Return the kind of a character for the index; the cache has at most one entry per character."""
    category = unicodedata.category(char)
    if _PAIRED.match(char):
        return "pair"
    if _TRIPLED.match(char) and category[0] in "LM":
        return "triple"
    if char in "-._#+'’" or category[0] in "LMN":
        return "" if char in "\ufe0f\ufe0e" else "word"
    if char in "⟪⟫" or (category[0] == "S" and not "\u2500" <= char <= "\u259f"):
        return "symbol"
    return ""


@dataclass(frozen=True, slots=True)
class Keywords:
    """The subject of a caller's text.

    :param words: distinct words and phrases in normal spelling, best first.
    :param weights: index terms with their weights in a query, in order of appearance.
    :param pairs: neighbouring index terms.
    :param parts: index terms that occur only as parts of an identifier, each with the identifier.
    :param written: different words of the text with their terms, without stop words.
    """

    words: tuple[str, ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    written: tuple[Word, ...] = ()


def extract_keywords(text: str, *, limit: int = 20) -> Keywords:
    """Return the keywords of a text.

    :param text: a question, a task or an agent's definition; at most :data:`MAX_ANALYSED` characters count.
    :param limit: maximum number of ``words``.
    """
    if len(text) > MAX_ANALYSED:
        text = f"{text[: MAX_ANALYSED // 2]} {text[-(MAX_ANALYSED // 2) :]}"
    text = _ESCAPE.sub(" ", text)
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
    shown = _best_words(runs, counts)[:limit] or tuple(dict.fromkeys(found))[:limit]
    parts = tuple(one for one in _parts_in(runs).items() if weights.keys() >= set(one))
    written = tuple({word.terms: word for run in runs for word in run}.values())
    keywords = Keywords(shown, tuple(weights.items()), tuple(pairs)[:MAX_QUERY_TERMS], parts, written)
    logger.debug("keywords %s, terms %s", keywords.words, keywords.weights)
    return keywords


def identifier_parts(texts: Iterable[str]) -> dict[str, str]:
    """Return the terms of short texts that occur only as parts of an identifier, each with the identifier."""
    return _parts_in(chain.from_iterable(map(_runs, texts)))


def _parts_in(runs: Iterable[Iterable[Word]]) -> dict[str, str]:
    """Return the terms that occur only in identifiers (``py_modules``, ``maxRetries``), with the identifier.

    A hyphen alone is not enough, because "fine-tuning" is also "fine tuning". A number does, with or
    without a hyphen: ERR-4711 stands for no other error, and quokkaw16 for no other 16.
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


def cut_word(text: str) -> str:
    """Shorten a caller's text to :data:`MAX_SHOWN` characters, so that it costs few tokens in an answer."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


class Word(NamedTuple):
    """A word as written, and its terms."""

    text: str
    terms: tuple[str, ...]

    @property
    def identifier(self) -> bool:
        """Whether it is an identifier with parts; its last term is the whole identifier."""
        return len(self.terms) > 1 and _IDENTIFIER.search(self.text) is not None

    @property
    def meant(self) -> tuple[str, ...]:
        """The terms for its meaning: of an identifier, only the whole."""
        return self.terms[-1:] if self.identifier else self.terms

    @property
    def shown(self) -> str:
        """The word without surrounding marks, shortened to :data:`MAX_SHOWN` characters."""
        return cut_word(self.text.rstrip("-.'").lstrip("'"))

    @property
    def size(self) -> int:
        """The number of words: text in a script without spaces has several."""
        return 1 if self.text.isascii() else len(self.terms)


def _runs(text: str) -> list[list[Word]]:
    """Split a text into runs of words with only spaces between them, without stop words."""
    runs: list[list[Word]] = [[]]
    last = 0
    for match in _CHUNK.finditer(text):
        if not text[last : match.start()].isspace():
            runs.append([])
        raw = match[0]
        for piece in [raw] if raw.isascii() else _words_and_symbols(raw):
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


def _words_and_symbols(raw: str) -> list[str]:
    """Separate words from adjacent symbols."""
    found: list[str] = []
    for kind, run in groupby(raw, _kind):
        if kind == "symbol":
            found += run
        elif kind:
            found.append("".join(run))
    return found


def _best_words(runs: Sequence[Sequence[Word]], counts: Counter[str]) -> tuple[str, ...]:
    """Return the distinct words and phrases of a text, best first.

    A frequent word of the text that is rare elsewhere is best. A phrase is a run of two to four words (Rose
    et al., "Automatic keyword extraction from individual documents", 2010), or a phrase of the NPL
    vocabulary.
    """
    worth: dict[tuple[str, ...], float] = {}
    spelling: dict[tuple[str, ...], str] = {}
    vocabulary = _npl_phrases()
    shaping = _question_terms()
    for run in runs:
        for size in range(1, min(len(run), _MAX_PHRASE) + 1):
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
    """Return a word as a keyword: in lower case unless it is camel case, without surrounding marks."""
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
    """Return the NPL vocabulary, each phrase as the last terms of its words."""
    return frozenset(
        tuple(terms(word)[-1] for word in line.split() if terms(word))
        for line in _data_lines("npl_terms.txt")
    )
