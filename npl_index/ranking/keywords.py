"""Keywords of a caller's context: its words and identifiers, and the terms that ask for them."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from math import log
from operator import itemgetter
from statistics import fmean
from typing import NamedTuple

from npl_index.ranking.analysis import CHUNK, ESCAPE, LANGUAGE, MARKS, MAX_INNER, MAX_TERM, SEGMENT, terms
from npl_index.ranking.spelling import (
    INSIDE,
    MAX_ANALYSED,
    MAX_SHOWN,
    analysed,
    cut_word,
    folded,
    kind_of,
    shown_to_ask,
    without_compounds,
    words_and_symbols,
)
from npl_index.ranking.wordlists import question_terms, rarity, stop_word_parts, unspaced_words

logger = logging.getLogger(__name__)

MAX_QUERY_TERMS = 48
"""Maximum terms of a query; the heaviest are kept."""

QUESTION_WEIGHT = 0.5
"""Weight in a query of a word about the form of a question ("explain"), not about its subject."""

_IDENTIFIER = re.compile(
    r"^--|^\.[^\W_0-9]|[^\W_0-9][._+#][^\W_0-9]|[A-Za-z]-?[0-9]|[0-9][-._+][0-9]|[a-z][A-Z]|[A-Z]{2}[a-z]{2}"
)
_NAME = re.compile(r"[^\W_]-[^\W_]+-[^\W_]")  # read-only-mode
_CAMEL = re.compile("[a-z][A-Z]")
_LETTER_LAST = re.compile(r"[0-9][A-Za-z]\Z")
_PHRASE = range(2, 5)
_LETTERS = {"pair": (2, 2), "triple": (3, 4)}  # of a term, and about those of a word
_HIRAGANA = re.compile("[ぁ-ゟ]+")


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


def extract_keywords(text: str, *, known: Callable[[str], bool] = lambda _: True) -> Keywords:
    """Return the keywords of a text.

    :param text: a question, a task or an agent's definition; at most :data:`MAX_ANALYSED` characters count.
    :param known: whether the documents have a term; of a long text, these are kept first.
    """
    text = analysed(text)
    # A character may stand for a sentence.
    most = max(len(text), MAX_ANALYSED)
    text = text[: len(text) * most // max(most, len(folded(text)))]
    plain = INSIDE.sub(shown_to_ask, ESCAPE.sub(" ", text))
    runs = _runs(plain) or _runs(plain, words_and_symbols)
    every = terms(plain) or terms(plain, keep_stop_words=True)
    occurrences = [term for run in runs for word in run for term in word.terms] or every
    counts = Counter(occurrences)
    share_of = {term: word.share for word in chain.from_iterable(runs) for term in word.terms}
    weights = {term: (1 + log(n)) * share_of.get(term, 1.0) for term, n in counts.items()}
    weights |= {term: weight * QUESTION_WEIGHT for term, weight in weights.items() if shapes(term)}
    if len(weights) > MAX_QUERY_TERMS:
        worth = {term: (not known(term), -weight * rarity(term)) for term, weight in weights.items()}
        kept = set(sorted(weights, key=worth.__getitem__)[:MAX_QUERY_TERMS])
        weights = {term: weight for term, weight in weights.items() if term in kept}
    pairs = dict.fromkeys((a, b) for a, b in pairwise(occurrences) if a in weights and b in weights)
    shown = _best_words(runs, counts) or tuple(dict.fromkeys(occurrences))
    parts = tuple(pair for pair in _parts_in(runs).items() if weights.keys() >= set(pair))
    written = tuple({word.terms: word for run in runs for word in run}.values())
    said = " ".join(without_compounds(every))
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
        language = LANGUAGE.fullmatch(self.text)
        text = language[1] if language else folded(self.text).strip(MARKS)
        least = {"word": 2, "triple": 3}.get(kind_of(text[:1] or "-"), 1)
        few = len(text) > MAX_SHOWN or len(SEGMENT.findall(text)) <= MAX_INNER
        # "3d" is a term, but pool-3d has other parts.
        whole = len(self.terms) > 1 or not _LETTER_LAST.search(text)
        return few and whole and len(text) >= least and text.lower() not in stop_word_parts()

    @property
    def shown(self) -> str:
        """The word without surrounding marks, shortened to :data:`MAX_SHOWN` characters."""
        return cut_word(self.text.rstrip("-.'").lstrip("'"))

    @property
    def size(self) -> float:
        """The number of words: text without spaces has several."""
        letters = _LETTERS.get(kind_of(self.text[0]))
        # A text of n characters has n - 1 pairs, or n - 2 triples.
        return (len(self.terms) + letters[0] - 1) / letters[1] if letters else 1.0

    @property
    def share(self) -> float:
        """The weight of each term: overlapping terms of a text without spaces weigh together as its words."""
        return self.size / len(self.terms) if kind_of(self.text[0]) in _LETTERS else 1.0


def _pieces(raw: str) -> Iterator[str]:
    """Yield the words of a chunk; of a text without spaces, the parts between words without a subject.

    Empty pieces stand for these words.
    """
    for piece in words_and_symbols(raw):
        yield from (part or "" for part in _between().split(piece))


@cache
def _between() -> re.Pattern[str]:
    return re.compile(_words_between())


def _words_between() -> str:
    single = "".join(word for word in unspaced_words() if len(word) == 1)
    several = "|".join(word for word in unspaced_words() if len(word) > 1)
    # A character with one other is a word, as in 目的. Hiragana mostly spell grammar.
    other = f"[^{single}ぁ-ゟ]"
    return rf"{several}|(?:\A|(?<={other}{other}))[{single}]+(?={other}.|\Z)|({_HIRAGANA.pattern})"


def _runs(text: str, split: Callable[[str], Iterable[str]] = _pieces) -> list[list[Word]]:
    """Split a text into runs of words with only spaces between them, without stop words."""
    runs: list[list[Word]] = [[]]
    last = 0
    for match in CHUNK.finditer(text):
        if not text[last : match.start()].isspace():
            runs.append([])
        raw = match[0]
        for piece in [raw] if raw.isascii() else split(raw):
            parts = _terms_of(piece) if piece else ()
            alone = not parts or not piece[0].isalnum()
            if alone:
                runs.append([])
            if parts:
                runs[-1].append(Word(piece, parts))
            if alone:
                runs.append([])
        last = match.end() if raw[-1] not in ".'" else -1
    return [run for run in runs if run]


def _terms_of(piece: str) -> tuple[str, ...]:
    """Return the terms of a word; of several characters with pairs, only the pairs."""
    parts = tuple(terms(piece))
    return (kind_of(piece[0]) == "pair" and tuple(part for part in parts if len(part) > 1)) or parts


def shapes(term: str) -> bool:
    """Return whether a term shapes a question and is not its subject."""
    return term in question_terms() or _HIRAGANA.match(term) is not None


def _best_words(runs: Sequence[Sequence[Word]], counts: Counter[str]) -> tuple[str, ...]:
    """Return the distinct words and phrases of a text, best first.

    A frequent word of the text that is rare elsewhere is best. A phrase is a run of two to four words (Rose
    et al., "Automatic keyword extraction from individual documents", 2010).
    """
    best: dict[tuple[str, ...], tuple[float, str]] = {}
    for run in runs:
        is_phrase = len(run) in _PHRASE and not any(shapes(word.terms[-1]) for word in run)
        for words in (*([word] for word in run), *([run] if is_phrase else ())):
            key = tuple(word.terms[-1] for word in words)
            weight = QUESTION_WEIGHT if any(map(shapes, key)) else 1.0
            worth = weight * fmean((1 + log(counts[term])) * rarity(term) for term in key)
            best.setdefault(key, (-worth, " ".join(map(_spelling, words))))
    ordered = sorted(best.values(), key=itemgetter(0))
    return tuple(dict.fromkeys(text for _, text in ordered if len(text) <= MAX_TERM))


def _spelling(word: Word) -> str:
    """Return a word as a keyword: in lower case unless it is camel case, without surrounding marks."""
    if word.terms[-1][-1] in "+#":
        return word.terms[-1]
    text = word.text.strip(MARKS) or word.text
    if text.endswith("'s"):
        text = text[:-2]
    return text if _CAMEL.search(text) else text.lower()
