r"""Terms of a text, and keywords of a caller's context.

Sections and queries are compared by *terms*. Words are normalized (Unicode NFKC, case folding, no accents on
Latin, Greek, Cyrillic, Hebrew and Arabic letters, ``ł`` as ``l``) and stemmed with the Snowball stemmer for
English and a list of irregular forms. The terms of an identifier are its parts and itself: ``maxRetries``
gives ``max``, ``retri`` and ``maxretri``; ``--force`` gives ``forc`` and ``--force``. Scripts without spaces
give overlapping pieces: single characters and pairs for Han, kana and Hangul, triples for Thai, Lao, Khmer,
Burmese and Tibetan. Symbols such as ``⌜`` ``⟪`` ``🎯`` are separate terms.

A text that is searched has further terms (:func:`all_terms`), by which a query finds its parts: runs of
parts of an identifier (``linalg.norm`` in ``numpy.linalg.norm``, ``2.4`` in ``v2.4.1``), and words with
markup inside as a page shows them (``max\_retries``, ``M&uuml;ller``, ``H<sub>2</sub>O``). They do not count
for the length of the text.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, compress, groupby, pairwise
from math import log
from operator import not_
from sys import intern
from typing import NamedTuple

from npl_index.ranking.spelling import (
    HIDDEN,
    INSIDE,
    MAX_ANALYSED,
    MAX_SHOWN,
    analysed,
    cut_word,
    folded,
    kind_of,
    parts_of_word,
    shown_mark,
    shown_to_ask,
    without_compounds,
    words_and_symbols,
)
from npl_index.ranking.wordlists import (
    data_lines,
    question_terms,
    rarity,
    stem,
    stop_word_parts,
    stop_words,
)

logger = logging.getLogger(__name__)

MAX_QUERY_TERMS = 48
"""Maximum terms of a query; the heaviest are kept."""

QUESTION_WEIGHT = 0.5
"""Weight in a query of a word about the form of a question ("explain"), not about its subject."""

_CHUNK = re.compile(rf"""[^\s\x00-\x1f!"$%&()*,/:;<=>?@\[\\\]^`{{|}}~\x7f{HIDDEN}]+""")
_SPACES = {code: " " for code in range(128) if _CHUNK.match(chr(code)) is None}
_ESCAPE = re.compile(r"\\[nrt](?![a-z])")
_SPLITS = re.compile(r"[-._#+'][^-._#+']|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|[A-Za-z][0-9]|[0-9][A-Za-z]{2}")
_IDENTIFIER = re.compile(
    r"^--|^\.[^\W_0-9]|[^\W_0-9][._+#][^\W_0-9]|[A-Za-z]-?[0-9]|[0-9][-._+][0-9]|[a-z][A-Z]|[A-Z]{2}[a-z]{2}"
)
_NAME = re.compile(r"[^\W_]-[^\W_]+-[^\W_]")  # read-only-mode
_MARKS = "-._#+'"
_FLAG = re.compile(r"[._#+']*--")
_LANGUAGE = re.compile(r"[-._#+']*([^\W_]{1,2}(?:\+\+|#))(?:'s)?[-._']*")  # C++
_LANGUAGE_INSIDE = re.compile(r"(?<![^\W_])[^\W_]{1,2}(?:\+\+|#)(?![^\W_])")
_SEGMENT = re.compile(r"^[vV](?=[0-9]+\.)|[^-._#+']+")  # v2.4.1 has 2.4.1
_CAMEL = re.compile("[a-z][A-Z]")
_MARKED = re.compile("[._#+]")
_PLAIN = re.compile(r"[A-Za-z0-9]+\.*")
_MAX_PHRASE = 4
_MAX_INNER = 5
_MANY = 40  # more chunks are found faster all together
_PHRASE_BONUS = 1.5
_MAX_CACHED_WORDS = 1 << 15
_MAX_CACHED_LENGTH = 40
_MAX_TERM = 64


def terms(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """Return the terms of a text, in order, repetitions included.

    :param keep_stop_words: keep words without a subject, too.
    """
    chunks = _chunks(text)
    if keep_stop_words:
        return list(chain.from_iterable(_terms_asked[raw] or _stopped(raw) for raw in chunks))
    return list(chain.from_iterable(map(_terms_asked.__getitem__, chunks)))


def all_terms(text: str) -> tuple[list[str], list[str]]:
    """Return the terms of a text, and the further ones by which it is found, each once, sorted."""
    chunks = _chunks(text)
    counted = list(chain.from_iterable(map(_terms_asked.__getitem__, chunks)))
    # A plain word has no further terms.
    marked = [raw for raw in set(chunks) if not (raw.isalnum() and raw.isascii())]
    further = set[str]().union(
        *map(_terms_stored.__getitem__, marked), *(shown for _, shown in _shown_words(text))
    )
    return counted, sorted(further.difference(counted))


def searched_terms(text: str) -> list[str]:
    """Return all terms by which a text is found, stop words included."""
    return terms(text, keep_stop_words=True) + all_terms(text)[1]


def locate(text: str, wanted: Collection[str], most: int) -> list[tuple[int, str]]:
    """Return offset and term of each place of some terms in a text, in no order.

    :param most: number of the first places of each spelling to return.
    """
    if "\\" in text:
        text = _ESCAPE.sub("  ", text)
    wanted = frozenset(wanted)
    chunks = list(set(_chunks(text)))
    holding = compress(chunks, map(not_, map(wanted.isdisjoint, map(_terms_stored.__getitem__, chunks))))
    inside = {raw: [pair for pair in _unicode_terms(raw, inner=True) if pair[1] in wanted] for raw in holding}
    spots = _find_chunks(text, inside, most)
    result = [(begin + at, term) for begin, raw in spots for at, term in inside[raw]]
    result += ((begin, term) for begin, shown in _shown_words(text) for term in shown if term in wanted)
    return result


def _find_chunks(text: str, wanted: Collection[str], most: int) -> Iterator[tuple[int, str]]:
    """Yield the places of some chunks of a text, a number of each at least."""
    if len(wanted) > _MANY:
        yield from ((match.start(), match[0]) for match in _CHUNK.finditer(text) if match[0] in wanted)
        return
    for raw in wanted:
        at, remaining = text.find(raw), most
        while at >= 0 and remaining:
            end = at + len(raw)
            if _separates(text[end : end + 1]) and (not at or _separates(text[at - 1])):
                yield at, raw
                remaining -= 1
            at = text.find(raw, end)


@cache
def _separates(char: str) -> bool:
    return _CHUNK.match(char) is None


def _chunks(text: str) -> list[str]:
    """Return the parts of a text between spaces and signs."""
    if "\\" in text:
        text = _ESCAPE.sub("  ", text)
    # The same chunks, but several times faster.
    return text.translate(_SPACES).split() if text.isascii() else _CHUNK.findall(text)


def _shown_words(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the offset of each word with markup inside, and the terms that only the word as shown has."""
    word, begin, end = "", 0, -1
    for mark in chain(INSIDE.finditer(text), (None,)):
        if mark is None or mark.start() != end:
            if word:
                is_long = end - begin > _MAX_CACHED_LENGTH
                shown = _shown_terms.__wrapped__ if is_long else _shown_terms
                yield begin, shown(text[begin:end], word)
            if mark is None:
                return
            before = _CHUNK.match(text[max(0, mark.start() - _MAX_TERM) : mark.start()][::-1])
            word = before[0][::-1] if before else ""
            begin = mark.start() - len(word)
        after = _CHUNK.match(text, mark.end())
        word += shown_mark(mark) + (after[0] if after else "")
        end = after.end() if after else mark.end()


@lru_cache(1 << 12)
def _shown_terms(source: str, word: str) -> tuple[str, ...]:
    source_terms = {term for raw in _chunks(source) for term in _terms_stored[raw]}
    return tuple(term for raw in _chunks(word) for term in _terms_stored[raw] if term not in source_terms)


def respelt(text: str, spell: Callable[[str], str]) -> str:
    """Return a question with its words spelt in another way.

    :param spell: returns the spelling of a word, possibly nothing.
    """
    return _CHUNK.sub(lambda match: spell(match[0]), INSIDE.sub(shown_to_ask, text))


class _TermCache(dict[str, tuple[str, ...]]):
    """Terms by chunk of text without spaces: texts repeat their words, and stemming takes ten lookups.

    :param inner: whether runs of parts of an identifier are terms.
    """

    def __init__(self, *, inner: bool) -> None:
        super().__init__()
        self._inner = inner
        self._former: dict[str, tuple[str, ...]] = {}

    def __missing__(self, raw: str) -> tuple[str, ...]:
        result = self._former.get(raw) or self._terms_of(raw)
        if len(raw) <= _MAX_CACHED_LENGTH:  # longer ones are rarely repeated
            if len(self) >= _MAX_CACHED_WORDS:
                self._former = dict(self)  # common words come back from there
                self.clear()
            self[raw] = result
        return result

    def _terms_of(self, raw: str) -> tuple[str, ...]:
        if self._inner and _PLAIN.fullmatch(raw):
            return _terms_asked[raw]
        if not raw.isascii():
            result = [term for _, term in _unicode_terms(raw, inner=self._inner)]
        else:
            result = [*_terms_asked[raw], *_inner_terms(raw)] if self._inner else _word_terms(raw)
        return tuple([intern(term[:_MAX_TERM]) for term in result])


_terms_asked = _TermCache(inner=False)
_terms_stored = _TermCache(inner=True)


def _stopped(raw: str) -> tuple[str, ...]:
    word = folded(raw).strip(_MARKS).lower()
    return (intern(word),) if word in stop_words() else ()


def _bare(raw: str) -> str:
    """Return a word without marks around it and a possessive "s"; empty for a stop word."""
    word = raw.strip(_MARKS)
    lower = word.casefold()
    if lower in stop_words():
        return ""
    return word[:-2].rstrip(_MARKS) if lower.endswith("'s") else word


def _word_terms(raw: str) -> list[str]:
    """Return the terms of a word: its parts, itself, and as a flag with its hyphens."""
    if language := _LANGUAGE.fullmatch(raw):
        return [language[1].lower()]
    word = _bare(raw)
    if not word:
        return []
    lower = word.casefold()
    flag = [f"--{lower}"] if _FLAG.match(raw) else []
    if _SPLITS.search(word) is None:
        return [stem(lower), *flag]
    parts = [bit.casefold() for bit in parts_of_word(word) if len(bit) > 1]
    result = [stem(part) for part in parts if part not in stop_words()]
    if lower not in parts:
        result.append(_whole(lower))
    return result + flag


def _inner_terms(raw: str) -> list[str]:
    """Return the further terms of a word: those of the runs of its parts, up to :data:`_MAX_INNER` parts."""
    if language := _LANGUAGE.fullmatch(raw):
        plain = language[1].lower().rstrip("+#")
        return [stem(plain)] if len(plain) > 1 else []
    word = _bare(raw)
    if _SPLITS.search(word) is None:
        return []
    joined = stem("".join(parts_of_word(word)).casefold())  # e-mail is also email, max_retries maxRetries
    spans = [segment.span() for segment in _SEGMENT.finditer(word)]
    runs = (word[begin:end] for at, (begin, _) in enumerate(spans) for _, end in spans[at : at + _MAX_INNER])
    inner = (_whole(run.casefold()) for run in runs if len(run) < len(word) and _SPLITS.search(run))
    return [*dict.fromkeys((*inner, joined)), *map(str.lower, _LANGUAGE_INSIDE.findall(raw))]


def _whole(lower: str) -> str:
    """Return the term of an identifier."""
    # The stem of "server.portal" would be "server.port".
    return lower if _MARKED.search(lower) else stem(lower)


def _unicode_terms(raw: str, *, inner: bool) -> list[tuple[int, str]]:
    """Return the terms of a chunk with their offsets."""
    result: list[tuple[int, str]] = []
    end = 0
    for kind, run in groupby(raw, kind_of):
        chars = "".join(run)
        begin, end = end, end + len(chars)
        plain = folded(chars)
        if kind and plain != chars and set(map(kind_of, plain)) != {kind}:  # of characters like ½ and ™
            result += ((begin, term) for _, term in _unicode_terms(plain, inner=inner))
        elif kind == "word":
            further = _inner_terms(plain) if inner else []
            result += ((begin, term) for term in (*_word_terms(plain), *further))
        elif kind == "pair":
            result += enumerate(plain, begin)
            result += enumerate(map("".join, pairwise(plain)), begin)
        elif kind == "triple":
            result += ((begin + at, plain[at : at + 3]) for at in range(max(1, len(plain) - 2)))
        elif kind == "symbol":
            result += enumerate(plain, begin)
    return result


@dataclass(frozen=True, slots=True)
class Keywords:
    """The subject of a caller's text.

    :param words: distinct words and phrases in normal spelling, best first.
    :param weights: index terms with their weights in a query, in order of appearance.
    :param pairs: neighbouring index terms.
    :param parts: index terms that occur only as parts of an identifier, each with the identifier.
    :param written: different words of the text with their terms, without stop words.
    :param said: its terms in order, without compounds, joined by spaces.
    :param text: the text.
    :param places: sections that its paths and addresses name, see :func:`~npl_index.ranking.naming.read`.
    :param shortened: identifiers of which the documents have only the last parts.
    """

    words: tuple[str, ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    written: tuple[Word, ...] = ()
    said: str = ""
    text: str = ""
    places: frozenset[tuple[int, int]] = frozenset()
    shortened: tuple[str, ...] = ()


def extract_keywords(
    text: str, *, limit: int = 20, known: Callable[[str], bool] = lambda _: True
) -> Keywords:
    """Return the keywords of a text.

    :param text: a question, a task or an agent's definition; at most :data:`MAX_ANALYSED` characters count.
    :param limit: maximum number of ``words``.
    :param known: whether the documents have a term; of a long text, these are kept first.
    """
    text = analysed(text)
    # A character may stand for a sentence.
    most = max(len(text), MAX_ANALYSED)
    text = text[: len(text) * most // max(most, len(folded(text)))]
    runs = _runs(INSIDE.sub(shown_to_ask, _ESCAPE.sub(" ", text)))
    occurrences = [term for run in runs for word in run for term in word.terms]
    occurrences = occurrences or terms(text, keep_stop_words=True)
    shaping = question_terms()
    counts = Counter(occurrences)
    weights = {
        term: (1 + log(n)) * (QUESTION_WEIGHT if term in shaping else 1.0) for term, n in counts.items()
    }
    if len(weights) > MAX_QUERY_TERMS:
        worth = {term: (not known(term), -weight * rarity(term)) for term, weight in weights.items()}
        kept = set(sorted(weights, key=worth.__getitem__)[:MAX_QUERY_TERMS])
        weights = {term: weight for term, weight in weights.items() if term in kept}
    pairs = dict.fromkeys((a, b) for a, b in pairwise(occurrences) if a in weights and b in weights)
    shown = _best_words(runs, counts)[:limit] or tuple(dict.fromkeys(occurrences))[:limit]
    parts = tuple(pair for pair in _parts_in(runs).items() if weights.keys() >= set(pair))
    written = tuple({word.terms: word for run in runs for word in run}.values())
    said = " ".join(without_compounds(occurrences))
    first_pairs = tuple(pairs)[:MAX_QUERY_TERMS]
    keywords = Keywords(shown, tuple(weights.items()), first_pairs, parts, written, said, text)
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
    whole_of: dict[str, str] = {}
    others: set[str] = set()
    for run in runs:
        for word in run:
            *parts, whole = word.terms
            if word.identifier:
                whole_of |= dict.fromkeys(parts, whole)
            else:
                others.update(word.terms)
    return {part: whole for part, whole in whole_of.items() if part not in others}


class Word(NamedTuple):
    """A word as written, and its terms."""

    text: str
    terms: tuple[str, ...]

    @property
    def identifier(self) -> bool:
        """Whether it is an identifier with parts; its last term is the whole identifier."""
        return len(self.terms) > 1 and _IDENTIFIER.search(self.text) is not None

    @property
    def is_name(self) -> bool:
        """Whether it is spelt like a name: with marks, digits, capitals inside, or two hyphens."""
        return _IDENTIFIER.search(self.text) is not None or _NAME.search(self.text) is not None

    @property
    def meant(self) -> tuple[str, ...]:
        """The terms for its meaning: of an identifier, only the whole."""
        return self.terms[-1:] if self.identifier else self.terms

    @property
    def is_certain(self) -> bool:
        """Whether each text with the word has its terms, unlike single letters and ``isn`` of ``isn't``."""
        language = _LANGUAGE.fullmatch(self.text)
        text = language[1] if language else folded(self.text).strip(_MARKS)
        least = {"word": 2, "triple": 3}.get(kind_of(text[:1] or "-"), 1)
        few = len(text) > MAX_SHOWN or len(_SEGMENT.findall(text)) <= _MAX_INNER
        return few and len(text) >= least and text.lower() not in stop_word_parts()

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
        for piece in [raw] if raw.isascii() else words_and_symbols(raw):
            parts = _terms_asked[piece]
            alone = not parts or not piece[0].isalnum()
            if alone:
                runs.append([])
            if parts:
                runs[-1].append(Word(piece, parts))
            if alone:
                runs.append([])
        last = match.end() if raw[-1] not in ".'" else -1
    return [run for run in runs if run]


def _best_words(runs: Sequence[Sequence[Word]], counts: Counter[str]) -> tuple[str, ...]:
    """Return the distinct words and phrases of a text, best first.

    A frequent word of the text that is rare elsewhere is best. A phrase is a run of two to four words (Rose
    et al., "Automatic keyword extraction from individual documents", 2010), or a phrase of the NPL
    vocabulary.
    """
    worth: dict[tuple[str, ...], float] = {}
    spelling: dict[tuple[str, ...], str] = {}
    phrases = _npl_phrases()
    shaping = question_terms()
    for run in runs:
        for size in range(1, min(len(run), _MAX_PHRASE) + 1):
            for begin in range(len(run) - size + 1):
                words = run[begin : begin + size]
                key = tuple(word.terms[-1] for word in words)
                is_phrase = key in phrases
                if key in worth or (
                    size > 1 and not is_phrase and (size != len(run) or not shaping.isdisjoint(key))
                ):
                    continue
                value = sum((1 + log(counts[term])) * rarity(term) for term in key) / size
                if is_phrase:
                    value *= _PHRASE_BONUS
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
    text = word.text.strip(_MARKS) or word.text
    if text.endswith("'s"):
        text = text[:-2]
    return text if _CAMEL.search(text) else text.lower()


@cache
def _npl_phrases() -> frozenset[tuple[str, ...]]:
    """Return the NPL vocabulary, each phrase as the last terms of its words."""
    return frozenset(
        tuple(terms(word)[-1] for word in line.split() if terms(word)) for line in data_lines("npl_terms.txt")
    )
