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
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache, partial
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter
from sys import intern

from npl_index.ranking.spelling import (
    HIDDEN,
    INSIDE,
    folded,
    kind_of,
    parts_of_word,
    shown_mark,
    shown_to_ask,
)
from npl_index.ranking.wordlists import forms_of, stem, stop_words

logger = logging.getLogger(__name__)

_SIGNS = rf"""\s\x00-\x1f!"$%&()*,/:;<=>?@\[\\\]^`{{|}}~\x7f{HIDDEN}"""
CHUNK = re.compile(f"[^{_SIGNS}]+")
_SPACES = bytes(code if code > 127 or CHUNK.match(chr(code)) else ord(" ") for code in range(256))
_WIDE_SIGNS = re.compile(f"[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000{HIDDEN}]")
ESCAPE = re.compile(r"\\[nrt](?![a-z])")
_SPLITS = re.compile(r"[-._#+'][^-._#+']|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|[A-Za-z][0-9]|[0-9][A-Za-z]{2}")
MARKS = "-._#+'"
_UNMARKED = str.maketrans("", "", MARKS)
_FLAG = re.compile(r"[._#+']*--")
LANGUAGE = re.compile(r"[-._#+']*([^\W_]{1,2}(?:\+\+|#))(?:'s)?[-._']*")  # C++
_LANGUAGE_INSIDE = re.compile(r"(?<![^\W_])[^\W_]{1,2}(?:\+\+|#)(?![^\W_])")
SEGMENT = re.compile(r"^[vV](?=[0-9]+\.)|[^-._#+']+")  # v2.4.1 has 2.4.1
_MARKED = re.compile("[._#+]")
_PLAIN = re.compile(r"[A-Za-z0-9]+\.*")
MAX_INNER = 5
_MAX_CACHED_WORDS = 1 << 15
_MAX_CACHED_LENGTH = 40
MAX_TERM = 64


def terms(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """Return the terms of a text, in order, repetitions included.

    :param keep_stop_words: keep words without a subject, too.
    """
    chunks = _chunks(text)
    if keep_stop_words:
        return [term for raw in chunks for term in _terms_asked[raw] or _stopped(raw)]
    return list(chain.from_iterable(map(_terms_asked.__getitem__, chunks)))


def all_terms(text: str) -> tuple[list[str], list[str]]:
    """Return the terms of a text, and the further ones by which it is found, each once, sorted."""
    chunks = _chunks(text)
    counted = list(chain.from_iterable(map(_terms_asked.__getitem__, chunks)))
    return counted, _further_terms(text, chunks, counted)


def _further_terms(text: str, chunks: list[str], counted: list[str]) -> list[str]:
    # A plain word has no further terms.
    marked = [raw for raw in set(chunks) if not (raw.isalnum() and raw.isascii())]
    further = set[str]().union(
        *map(_terms_stored.__getitem__, marked), *map(itemgetter(1), _shown_words(text))
    )
    return sorted(further.difference(counted))


def searched_terms(text: str) -> list[str]:
    """Return all terms by which a text is found, stop words included."""
    chunks = _chunks(text)
    own = [term for raw in chunks for term in _terms_asked[raw] or _stopped(raw)]
    return own + _further_terms(text, chunks, own)


def locate(text: str, wanted: Collection[str], most: int) -> list[tuple[int, str]]:
    """Return offset and term of each place of some terms in a text, in no order.

    :param most: number of the first places of each spelling to return.
    """
    if "\\" in text:
        text = ESCAPE.sub("  ", text)
    wanted, spaced = frozenset(wanted), f" {_spaced(text)} "
    chunks = set(spaced.split())
    known = _terms_stored.keys() & chunks
    known.update(_holding(chunks - known, _begins(wanted)))
    terms_of = ((raw, wanted.intersection(_terms_stored[raw])) for raw in known)
    inside = {
        raw: [(0, term) for term in held] if raw.isascii() else [at for at in _terms_at(raw) if at[1] in held]
        for raw, held in terms_of
        if held
    }
    found = ((begin, raw) for raw in inside for begin in islice(_places_of(f" {raw} ", spaced), most))
    result = [(begin + at, term) for begin, raw in found for at, term in inside[raw]]
    result += ((begin, term) for begin, shown in _shown_words(text) for term in shown if term in wanted)
    return result


@lru_cache
def _begins(wanted: frozenset[str]) -> tuple[str, ...]:
    """Return the beginnings of the words with some terms: the last two letters of a term may be others."""
    forms = chain(forms_of(wanted), (f"{form[0]}y" for form in wanted if form[1:] == "ie"))  # dying
    return tuple({form[: max(2, len(form) - 2)] for form in forms if form.isascii()})


def _holding(chunks: Collection[str], begins: tuple[str, ...]) -> Iterator[str]:
    """Yield the chunks that may have words with some beginnings; their terms would take longer."""
    longer = tuple(begin for begin in begins if begin[1:])
    for raw in chunks:
        if not raw.isascii() or (not raw.isalnum() and raw.translate(_UNMARKED).lower().startswith(longer)):
            yield raw
    text = f" {' '.join(filter(str.isascii, chunks))} "
    lower = text.lower()
    for begin in begins:
        at = lower.find(begin)
        while at >= 0:
            is_inside = text[at].islower() and text[at - 1].islower()
            if is_inside or (begin not in longer and text[at + 1].islower()):
                at += 1
            else:
                start, at = text.rfind(" ", 0, at) + 1, text.find(" ", at)
                yield text[start:at]
            at = lower.find(begin, at)


def _places_of(chunk: str, spaced: str) -> Iterator[int]:
    """Yield the offsets of a chunk between spaces."""
    at = -1
    while (at := spaced.find(chunk, at + 1)) >= 0:
        yield at


def _spaced(text: str) -> str:
    """Return a text with a space for each sign between chunks."""
    if "\\" in text:
        text = ESCAPE.sub("  ", text)
    # Bytes are translated several times as fast as characters.
    spaced = text.encode("utf-8", "surrogatepass").translate(_SPACES).decode("utf-8", "surrogatepass")
    return spaced if text.isascii() else _WIDE_SIGNS.sub(" ", spaced)


def _chunks(text: str) -> list[str]:
    """Return the parts of a text between spaces and signs."""
    return [text] if text.isalnum() and text.isascii() else _spaced(text).split()


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
            before = CHUNK.match(text[max(0, mark.start() - MAX_TERM) : mark.start()][::-1])
            word = before[0][::-1] if before else ""
            begin = mark.start() - len(word)
        after = CHUNK.match(text, mark.end())
        word += shown_mark(mark) + (after[0] if after else "")
        end = after.end() if after else mark.end()


@lru_cache(_MAX_CACHED_WORDS)
def _shown_terms(source: str, word: str) -> tuple[str, ...]:
    source_terms = {term for raw in _chunks(source) for term in _terms_stored[raw]}
    return tuple(term for raw in _chunks(word) for term in _terms_stored[raw] if term not in source_terms)


def respelt(text: str, spell: Callable[[str], str]) -> str:
    """Return a question with its words spelt in another way.

    :param spell: returns the spelling of a word, possibly nothing.
    """
    return CHUNK.sub(lambda match: spell(match[0]), INSIDE.sub(shown_to_ask, text))


class _TermCache(dict[str, tuple[str, ...]]):
    """Terms by chunk of text without spaces: texts repeat their words, and stemming takes ten lookups.

    :param inner: whether runs of parts of an identifier are terms.
    """

    def __init__(self, *, inner: bool) -> None:
        super().__init__()
        self._inner = inner

    def __missing__(self, raw: str) -> tuple[str, ...]:
        result = self._terms_of(raw)
        if len(raw) <= _MAX_CACHED_LENGTH:  # longer ones are rarely repeated
            if len(self) >= _MAX_CACHED_WORDS:
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
        return tuple([intern(term[:MAX_TERM]) for term in result])


_terms_asked = _TermCache(inner=False)
_terms_stored = _TermCache(inner=True)


def _stopped(raw: str) -> tuple[str, ...]:
    word = folded(raw).strip(MARKS).lower()
    return (intern(word),) if word in stop_words() else ()


def _bare(raw: str) -> str:
    """Return a word without marks around it and a possessive "s"; empty for a stop word."""
    word = raw.strip(MARKS)
    lower = word.casefold()
    if lower in stop_words():
        return ""
    return word[:-2].rstrip(MARKS) if lower.endswith("'s") else word


def _word_terms(raw: str) -> list[str]:
    """Return the terms of a word: its parts, itself, and as a flag with its hyphens."""
    if language := LANGUAGE.fullmatch(raw):
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
    """Return the further terms of a word: those of the runs of its parts, up to :data:`MAX_INNER` parts."""
    if language := LANGUAGE.fullmatch(raw):
        plain = language[1].lower().rstrip("+#")
        return [stem(plain)] if len(plain) > 1 else []
    word = _bare(raw)
    if _SPLITS.search(word) is None:
        return []
    joined = stem("".join(parts_of_word(word)).casefold())  # e-mail is also email, max_retries maxRetries
    spans = [segment.span() for segment in SEGMENT.finditer(word)]
    runs = (word[begin:end] for at, (begin, _) in enumerate(spans) for _, end in spans[at : at + MAX_INNER])
    inner = (_whole(run.casefold()) for run in runs if len(run) < len(word) and _SPLITS.search(run))
    languages = _LANGUAGE_INSIDE.findall(raw) if "#" in raw or "++" in raw else ()
    return [*dict.fromkeys((*inner, joined)), *map(str.lower, languages)]


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


_terms_at = lru_cache(_MAX_CACHED_WORDS >> 3)(partial(_unicode_terms, inner=True))
