"""What a question names: pages, headings, identifiers.

A question names sections or describes them. A section that is named is an answer; a description is judged by
its words (:mod:`~npl_index.ranking.verdict`). A path or an address names a page and its anchor; a topic names
the section with that heading; an identifier names the few sections that have it, those with it in a heading
first; a whole heading of several words names its section. A common heading ("Usage") names nothing.

A question is first spelt as the documents spell it (:func:`read`): ``--log-level`` is their ``log_level``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice, pairwise
from typing import Any

from npl_index.library.references import MARKDOWN_SUFFIXES
from npl_index.markdown.links import slugs
from npl_index.ranking.analysis import MAX_TERM, respelt, terms
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Passages
from npl_index.ranking.collection import Collection
from npl_index.ranking.keywords import MAX_QUERY_TERMS, Keywords, extract_keywords
from npl_index.ranking.spelling import analysed, folded, parts_of_word, without_compounds
from npl_index.ranking.vocabulary import MIN_PART
from npl_index.ranking.wordlists import RARE, commonness, data_lines
from npl_index.selectors.names import Place

FEW = 8
"""Maximum sections that a name stands for, and number of the first hits that a question may name."""

_FRAME = (
    r'^[ \t]*(?:File "[^"\n]+", line \d+.*(?:\n[ \t]{3,}.*)*|at \S.*[:(][^\s:(]*\d\)?|\d+: +(?:0x)?\w+.*)$'
)
_TIME = re.compile(r"\b(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d\S*")
_ADDRESS = r"""(?:https?://)?[^\s"'`()<>\[\],;!?#|*]+(?:#[^\s"'`()<>\[\],;!?|*]+)?"""
_SUFFIX = re.compile(rf"(?:{'|'.join(map(re.escape, MARKDOWN_SUFFIXES))}|\.html?)\Z", re.IGNORECASE)
_FOLDER_PAGES = frozenset(("index", "_index", "readme"))
_OWNERS = frozenset(("self", "this", "cls"))
_PLAIN_WORD = re.compile(r"(?<!\S)[^\W\d_]+(?!\S)")


@cache
def _function_words() -> frozenset[str]:
    lines = (folded(line).casefold().split()[2:] for line in data_lines("languages.txt"))
    return frozenset(("http", "https", "www")).union(*lines)


def read(text: str, collection: Collection) -> Keywords:
    """Return the keywords of a question as the documents spell it."""
    text, reader = analysed(text), _Reader(collection)
    spelt = re.sub(_ADDRESS, lambda match: reader.address(match[0]), _messages(text))
    spelt = respelt(reader.joined(spelt), reader.spelling)
    keywords = extract_keywords(spelt, known=lambda term: collection.vocabulary.row(term) is not None)
    return replace(keywords, text=text, places=frozenset(reader.places), shortened=tuple(reader.shortened))


def _messages(text: str) -> str:
    """Return a trace without its frames, and a log without its times and with one of similar lines."""
    found = re.sub(_FRAME, "", text, flags=re.MULTILINE)
    if _TIME.search(found):
        lines = _TIME.sub("", found).splitlines()
        found = "\n".join({re.sub(r"\d+", "", line): line for line in reversed(lines)}.values())
    return found if terms(found) else text


class _Reader:
    """The spelling of one question.

    :param collection: documents whose spelling counts.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.places: set[Place] = set()
        self.shortened: list[str] = []

    def spelling(self, raw: str) -> str:
        """Return a word as the documents spell it; nothing for a function word that they do not have."""
        if _whole_term(raw) is None or self._row(raw) is not None:
            return raw
        if folded(raw).strip("-.'").casefold() in _function_words():
            return ""
        spellings = list(_spellings(raw))
        is_word = raw.isalpha() and len(raw) <= MAX_TERM
        cuts = range(MIN_PART, len(raw) - MIN_PART + 1) if is_word else ()
        pairs = [(raw[:cut], raw[cut:]) for cut in cuts]
        self._learn(chain((spelling for spelling, _ in spellings), *pairs))
        for spelling, is_whole in spellings:
            if self._row(spelling) is not None and (is_whole or self._is_rare(spelling)):
                self.shortened += () if is_whole else (raw,)
                return spelling
        return next((" ".join(pair) for pair in pairs if self._are_neighbours(*pair)), raw)

    def joined(self, text: str) -> str:
        """Join two words that the documents write as one: "time zone" and "timezone"."""
        words, pairs = _PLAIN_WORD.findall(text), dict[str, tuple[str, str]]()
        for first, second in pairwise(words if len(words) <= MAX_QUERY_TERMS else ()):
            if min(len(first), len(second)) >= MIN_PART and _whole_term(first) and _whole_term(second):
                pairs[first + second] = first, second
        self._learn((text, *pairs))
        for whole, pair in pairs.items():
            if self._row(whole) is not None and not self._are_neighbours(*pair):
                text = text.replace(" ".join(pair), whole)
        return text

    def address(self, raw: str) -> str:
        """Return the words of a page that a path or an address names; of another address, no host."""
        page, _, anchor = raw.rstrip(".:").partition("#")
        is_address, has_suffix = page.startswith(("https://", "http://")), _SUFFIX.search(page)
        if not (is_address or has_suffix or "/" in page or (anchor and page)):
            return raw
        host, *steps = page.split("/")[2 if is_address else 0 :]
        steps = [step for step in (steps if is_address else (host, *steps)) if step not in ("", ".", "..")]
        found, length = self._pages([_SUFFIX.sub("", step).casefold() for step in steps])
        is_path = is_address or has_suffix or (anchor and length) or length == len(steps) > 1
        if not 0 < len(found) <= FEW or not is_path:
            return raw.partition(host)[2] if is_address and self._row(host) is None else raw
        words = [_SUFFIX.sub("", step) for step in steps[-length:]]
        for number in found:
            sections = self._collection.documents[number].tree.sections
            at = {name: index for index, name in enumerate(slugs(sections[1:]), 1)}.get(anchor.lower())
            words += [] if at is None else [sections[at].name]
            self.places.update((number, index) for index in (range(len(sections)) if at is None else (at,)))
        return f" {' '.join(words)} "

    def _learn(self, texts: Iterable[str]) -> None:
        """Look up the terms of some texts at once, before each is asked for."""
        self._collection.vocabulary.learn(terms(" ".join(texts)), parts=False)

    def _row(self, word: str) -> int | None:
        """Return the row of a word as a whole."""
        term = _whole_term(word)
        return None if term is None else self._collection.vocabulary.row(term)

    def _is_rare(self, word: str) -> bool:
        """Return whether a heading or only a few sections have a word."""
        few = self._collection.vocabulary.counts(np.array([self._row(word)])).own[0] <= FEW
        return bool(few or self._collection.names.headed(" ".join(without_compounds(terms(word)))))

    def _are_neighbours(self, first: str, second: str) -> bool:
        """Return whether two words follow each other in the documents."""
        pair = self._row(first), self._row(second)
        if None in pair:
            return False
        rows = self._collection.passages(terms(f"{first} {second}")).postings.rows
        return bool(((rows[:-1] == pair[0]) & (rows[1:] == pair[1])).any())

    def _pages(self, steps: Sequence[str]) -> tuple[list[int], int]:
        """Return the documents that end with most of the steps of a path, and the number of these steps."""
        lengths: dict[int, int] = {}
        for number, path in enumerate(self._collection.paths if steps else ()):
            if steps[-1] in (folded_path := path.casefold()):
                have = _SUFFIX.sub("", folded_path).split("/")
                if have[-1] in _FOLDER_PAGES and have[-1] != steps[-1]:
                    del have[-1]
                pairs = enumerate(zip(reversed(steps), reversed(have), strict=False))
                lengths[number] = next((at for at, (a, b) in pairs if a != b), min(len(steps), len(have)))
        longest = max(lengths.values(), default=0)
        return [number for number, length in lengths.items() if length == longest > 0], longest


def _spellings(raw: str) -> Iterator[tuple[str, bool]]:
    """Yield other spellings of an identifier, and whether they have all of its parts."""
    bare = raw.strip("-.'+#")
    if re.match(r"[vV]?\d+\.", bare):
        yield bare[1:] if bare[0] in "vV" else f"v{bare}", True
        return
    yield from ((spelling, True) for spelling in _marked(parts_of_word(bare)))
    owner, dot, last = bare.partition(".")
    if bare.isupper() and not dot:  # with the prefix of an environment variable
        last = bare.partition("_")[2]
    parts = [last] if "." in last else parts_of_word(last)
    if last and (owner in _OWNERS or "." in last or len(parts) > 1):
        yield from ((spelling, False) for spelling in (last, *_marked(parts)))


def _whole_term(word: str) -> str | None:
    """Return the term of a word as a whole; ``None`` without one."""
    return next(reversed(terms(word)), None)


def _marked(parts: Sequence[str]) -> Iterator[str]:
    """Yield the spellings of an identifier with several parts."""
    return (mark.join(parts).lower() for mark in ("_", "-", ".", "") if len(parts) > 1)


def headed_alone(fitting: Mapping[Place, tuple[float, float]], collection: Collection) -> list[Place]:
    """Return the sections whose heading is a topic as spelt, if no other section has the heading.

    :param fitting: the fits of topics, see :func:`~npl_index.ranking.topics.topic_fit`.
    """
    heading_of = {place: collection.names.name(place)[1] for place, (fit, _) in fitting.items() if fit == 1}
    times = Counter(heading_of.values())
    return [place for place, heading in heading_of.items() if times[heading] == 1]


def named_by(
    keywords: Keywords,
    collection: Collection,
    passages: Passages,
    numbers: NDArray[Any],
    *,
    bodies: bool,
) -> Iterator[int]:
    """Yield those of some sections, by their numbers among the passages, that the text of a question names.

    :param bodies: whether an identifier may name sections that have it only in their text.
    """
    places = dict(zip(numbers.tolist(), zip(*passages.locate(numbers), strict=True), strict=True))
    for word in keywords.written:
        if not (word.is_name or len(word.terms) > 1):
            continue
        whole = (_whole_term(spelling) for spelling, is_whole in _spellings(word.text) if is_whole)
        spelt = dict.fromkeys((word.terms[-1], *whole))
        rows = [row for term in spelt if term and (row := collection.vocabulary.row(term)) is not None]
        _, holders, in_heading, _, in_body = passages.postings.find(rows)
        have = {*holders[in_heading > 0].tolist()}
        if not have and bodies and word.is_name and any(map(str.isalpha, word.text)):
            have = {*holders[in_body > 0].tolist()}
        held = places.keys() & have
        if not word.is_name:  # a hyphenated word names only what is in code marks
            nodes = {number: collection.documents[places[number][0]].tree for number in held}
            code = f"`{word.text}`"
            yield from (at for at in held if code in nodes[at].sections[places[at][1]].heading)
        elif len(have) <= FEW:
            yield from held
    headings = [collection.sections(place[0]).field(place[1], 0).tolist() for place in places.values()]
    texts = iter(collection.vocabulary.texts([*chain.from_iterable(headings)]))
    for number, rows in zip(places, headings, strict=True):
        words = without_compounds(list(islice(texts, len(rows))))
        is_pair = len(words) == 2 and any(commonness(word) <= RARE for word in words)
        heading = " ".join(words) if is_pair or len(words) > 2 else ""
        is_said = heading and f" {heading} " in f" {keywords.said} "
        if is_said and len(collection.names.headed(heading)) <= FEW:
            yield number
