"""A map of documents in few tokens, and the characteristic words of their headings.

Names and headings are foreign text. Headings appear as single words in alphabetical order, and a name that is
not one plain word is in quotes. So none of it reads as an instruction. The result depends only on the
documents, not on the machine: clients cache it, and CI compares it.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import log, log2
from typing import NamedTuple

from npl_index.markdown.front_matter import find_front_matter, with_line_feeds
from npl_index.markdown.sections import title_in
from npl_index.outline.folding import File, Folders, Shown, fitted
from npl_index.outline.nodes import FolderNode, Node
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
_MAX_NAME_TOKENS = 700
_RARE = 0.05  # maximum share of documents with a characteristic word
_WORD = re.compile(r"[^\W\d_]\w*(?:['’.+#-]\w+){0,2}[+#]*")
_PLAIN = re.compile(r"[\w.+@:-]{1,24}(?:/[\w.+@:-]{1,24}){0,3}/?", re.ASCII)  # others may be a sentence
_PART = re.compile(r"[^\W_]+")
_MAX_PARTS = 7  # words of a plain name
_HEADING = re.compile(r"^(?:(```|~~~)|#{1,3}[ \t]+(.+))", re.MULTILINE)
_MARKUP = re.compile(r"\{[^{}]*\}|<[^<>]*>|\]\([^()]*\)")


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

    Folders and documents without room are counted.

    :param paths: paths relative to a root, sorted.
    :param headings: headings of each document, its title first; empty for unread documents.
    """
    counter, form = estimator(), _Map(len(paths))

    def cost(words: Sequence[HeadingWord]) -> int:
        return counter.upper_bound(counter.count(form.text(nodes, words)))

    leaves = [FolderNode(path, 1, 0, 1) for path in paths]  # each document counts as a heading
    folders = Folders(list(map(File, paths)), leaves.__getitem__, patterns=False)
    nodes = fitted(folders, form, _MAX_NAME_TOKENS, counter).nodes
    in_names = {term for node in nodes for term in terms(node.name.removesuffix(".md"))}
    most = max(3, _RARE * len(paths))
    words = [w for w in heading_words(headings) if len(w.counts) <= most and w.term not in in_names]
    number = bisect_right(range(len(words) + 1), MAX_MAP_TOKENS, key=lambda count: cost(words[:count])) - 1
    return form.text(nodes, words[:number])


class _Map:
    """The form of an outline as a map.

    :param documents: number of all documents.
    """

    def __init__(self, documents: int) -> None:
        self._documents = documents

    def answer(self, shown: Shown) -> str:
        """Return the map without words of headings."""
        return self.text(shown.nodes, ())

    def line(self, node: Node, depth: int) -> str:  # noqa: ARG002
        """Return the name of a document, or of a folder with the number of its documents."""
        name = posixpath.basename(node.name.removesuffix("/"))
        if not node.name.endswith("/"):
            return _entry_name(name.removesuffix(".md"))
        return f"{_entry_name(f'{name}/')} {node.more:,}"

    def text(self, nodes: Sequence[Node], words: Iterable[HeadingWord]) -> str:
        """Return the lines.

        :param nodes: the shown documents and folders.
        :param words: the shown words; each stands behind the first node with most of its headings.
        """
        # The documents are sorted, so those of a node stand together, and those without a node at the end.
        homes = [number for number, node in enumerate(nodes) for _ in range(node.more or 0)]
        homes += [len(nodes)] * (hidden := self._documents - len(homes))
        below = defaultdict(list)
        for word in words:
            below[homes[word.counts.most_common(1)[0][0]]].append(word.text)
        lines = defaultdict(list)
        for number, node in enumerate((*nodes, None)):
            folder, name = ".", f"{hidden:,} more"
            if node:
                folder, name = posixpath.dirname(node.name.removesuffix("/")) or ".", self.line(node, 0)
            found = sorted(below[number], key=str.casefold)
            if node or hidden:
                lines[folder].append(f"{name} ({', '.join(found)})" if found else name)
        several = "s" * (self._documents != 1)
        title = f"{self._documents:,} document{several} for npl_load_tailored; in brackets words of headings"
        rows = (f"- {_entry_name(folder)}/: {', '.join(lines[folder])}" for folder in sorted(lines))
        return "\n".join((title, "", *rows, ""))


def _entry_name(path: str) -> str:
    is_plain = _PLAIN.fullmatch(path) and len(_PART.findall(path)) <= _MAX_PARTS
    return path if is_plain else in_quotes(path, 2 * MAX_NAME)
