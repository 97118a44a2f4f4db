"""A map of documents in few tokens, and the characteristic words of their headings.

Names and headings are foreign text. Headings appear as single words in alphabetical order, and a name that is
not one plain word is in quotes. So none of it reads as an instruction. The result depends only on the
documents, not on the machine: clients cache it, and CI compares it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain, groupby
from math import log, log2
from operator import itemgetter
from typing import NamedTuple

from npl_index.markdown.front_matter import find_front_matter, with_line_feeds
from npl_index.markdown.sections import title_in
from npl_index.ranking.analysis import terms
from npl_index.ranking.wordlists import commonness
from npl_index.selectors.grammar import quoted
from npl_index.selectors.labels import label
from npl_index.tokens.estimated import estimator

MAX_MAP_TOKENS = 1_000
"""Maximum tokens of a map."""

MAX_NAME = 40
"""Maximum characters of a name."""

_MAX_WORD = 24  # bytes, because Chinese characters may be a sentence
_FOR_NAMES = 0.7  # share of a map's tokens for names; words of headings have the rest
_RARE = 0.05  # maximum share of documents with a characteristic word
_TRIES = 4
_WORD = re.compile(r"[^\W\d_]\w*(?:['’.+#-]\w+){0,2}[+#]*")
_PLAIN = re.compile(r"[\w.+@:-]{1,24}(?:/[\w.+@:-]{1,24}){0,3}/?", re.ASCII)  # others may be a sentence
_PART = re.compile(r"[^\W_]+")
_MAX_PARTS = 7  # words of a plain name
_HEADING = re.compile(r"^(?:(```|~~~)|#{1,3}[ \t]+(.+))", re.MULTILINE)
_MARKUP = re.compile(r"\{[^{}]*\}|<[^<>]*>|\]\([^()]*\)")

_Entry = tuple[str, str]  # a folder, and a name in its line


class HeadingWord(NamedTuple):
    """A word that is more frequent in the headings of some documents than in other texts.

    :param text: its most frequent spelling.
    :param term: its index term.
    :param counts: number of headings with it, by document.
    """

    text: str
    term: str
    counts: Counter[int]


def in_quotes(name: str, most: int = MAX_NAME) -> str:
    """Return the beginning of an untrusted name in quotes.

    Characters that would end the quotation or the line, or begin or end a comment, are escaped, and invisible
    characters as well.
    """
    name = label(name)
    return quoted(name if len(name) <= most else f"{name[: most - 1]}…").replace("<!", r"<\!")


def headings_at(text: str) -> list[str]:
    """Return the title and the headings of a text down to level 3, without parsing it; it may be incomplete.

    Comments, in which generated files say so, are no headings.
    """
    text = with_line_feeds(text)
    lines, front = find_front_matter(text)
    titles = [title] if (title := title_in(front)) else []
    fenced = False
    first, *others = "\n".join(text.split("\n")[lines:]).split("<!--")
    shown = first + "".join(other.partition("-->")[2] for other in others)
    for fence, heading in _HEADING.findall(shown):
        fenced ^= bool(fence)
        titles += [_MARKUP.sub(" ", heading)] if heading and not fenced else []
    return titles


def heading_words(documents: Sequence[Sequence[str]]) -> list[HeadingWord]:
    """Return the characteristic words of documents, best first.

    The best words are frequent in these documents and rare in other texts.

    :param documents: headings of each document; the first one, its title, counts three times.
    """
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    spelt: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number, headings in enumerate(documents):
        for word in _WORD.findall("\n".join((*headings[:1], *headings[:1], *headings))):
            if 1 < len(word.encode(errors="replace")) <= _MAX_WORD and (in_word := terms(word)):
                counts[in_word[-1]][number] += 1
                spelt[in_word[-1]][word] += 1

    def worth(term: str) -> float:
        share = len(counts[term]) / len(documents)
        return sum(map(log2, (1 + n for n in counts[term].values()))) * log(share / commonness(term))

    best = sorted((-worth(term), term) for term in counts)
    return [HeadingWord(spelt[t].most_common(1)[0][0], t, counts[t]) for score, t in best if score < 0]


def overview(paths: Sequence[str], headings: Sequence[Sequence[str]]) -> str:
    """Return a map of documents as Markdown: a line of names for each folder, with rare words of headings.

    Names without room are counted. With too many folders, only upper ones have lines.

    :param paths: paths relative to a root, sorted.
    :param headings: headings of each document, its title first; empty for unread documents.
    """
    counter = estimator()

    def cost(text: str) -> int:
        return counter.upper_bound(counter.count(text))

    depth = max((path.count("/") for path in paths), default=0)
    while cost((chart := _Map(paths, depth)).text()) > MAX_MAP_TOKENS // 2 and depth:
        depth -= 1
    names = sorted((counter.count(f", {chart.name(entry)}"), entry) for entry in chart.entries)
    words = [(counter.count(f", {word.text}"), word) for word in heading_words(headings)]
    text = chart.text()
    room = MAX_MAP_TOKENS - cost(text)
    for _ in range(_TRIES):
        chart.fill(names, words, room)
        over = cost(chart.text()) - MAX_MAP_TOKENS
        text = text if over > 0 else chart.text()
        room -= over
    return text


class _Map:
    """Lines of folders with entries: documents, and folders without a line.

    :param paths: paths of all documents.
    :param depth: levels of folders with lines.
    """

    def __init__(self, paths: Sequence[str], depth: int) -> None:
        self.homes: list[_Entry] = []
        for path in paths:
            *above, name = path.split("/")
            below = f"{above[depth]}/" if len(above) > depth else name.removesuffix(".md")
            self.homes.append(("/".join(above[:depth]) or ".", below))
        self.entries = Counter(self.homes)
        self.shown: set[_Entry] = set()
        self.words: defaultdict[_Entry, list[str]] = defaultdict(list)

    def name(self, entry: _Entry) -> str:
        """Return the name of an entry, and for a folder the number of its documents."""
        return _entry_name(entry[1]) + (f" {self.entries[entry]:,}" if entry[1].endswith("/") else "")

    def fill(
        self, names: Sequence[tuple[int, _Entry]], words: Sequence[tuple[int, HeadingWord]], room: int
    ) -> None:
        """Choose names and words; short names come first, so that most are shown.

        :param names: costs of names, and their entries.
        :param words: costs of words, and the words.
        """
        used, most = 0, max(3, _RARE * len(self.homes))
        self.shown.clear()
        self.words.clear()
        for cost, entry in names:
            if used + cost <= room * _FOR_NAMES:
                used += cost
                self.shown.add(entry)
        in_names = {term for folder, _ in self.entries for term in terms(folder)}
        in_names.update(term for _, name in self.shown for term in terms(name))
        for cost, word in words:
            if used + cost <= room and len(word.counts) <= most and word.term not in in_names:
                used += cost
                self.words[self.homes[word.counts.most_common(1)[0][0]]].append(word.text)

    def text(self) -> str:
        """Return the lines."""
        several = "s" * (len(self.homes) != 1)
        title = f"{len(self.homes):,} document{several} for npl_load_tailored; in brackets words of headings"
        lines = [title, ""]
        for folder, entries in groupby(sorted(self.entries), itemgetter(0)):
            below = list(entries)
            parts = [self.name(entry) + self._words_of([entry]) for entry in below if entry in self.shown]
            if others := [entry for entry in below if entry not in self.shown]:
                parts.append(f"{sum(map(self.entries.__getitem__, others)):,} more{self._words_of(others)}")
            lines.append(f"- {_entry_name(folder)}/: {', '.join(parts)}")
        return "\n".join((*lines, ""))

    def _words_of(self, entries: Sequence[_Entry]) -> str:
        words = sorted(chain.from_iterable(self.words.get(entry, ()) for entry in entries), key=str.casefold)
        return f" ({', '.join(words)})" if words else ""


def _entry_name(path: str) -> str:
    is_plain = _PLAIN.fullmatch(path) and len(_PART.findall(path)) <= _MAX_PARTS
    return path if is_plain else in_quotes(path, 2 * MAX_NAME)
