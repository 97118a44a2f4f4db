"""Token counts of all sections of a document, made once and added up ever after.

Text is handed over as whole sections joined by blank lines. The pre-tokenisers of the vocabularies never
join a line end with a following character that is neither white space nor ``/``; so the tokens of such a
text are the sum of the tokens of its parts, each counted with the blank line that follows it. The last
part has none; therefore each section has two counts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from npl_index.markdown.sections import SectionTree, Span
from npl_index.tokens.counters import TokenCounter


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of each section's own text, by section index.

    :param counter: name of the counter they come from.
    :param followed: with the blank line that separates it from more text.
    :param last: without it.
    :param costs: the larger of the two upper bounds; what packing reckons with.
    """

    counter: str
    followed: array[int]
    last: array[int]
    costs: array[int]

    @property
    def nbytes(self) -> int:
        """Bytes of memory the counts take."""
        return 200 + sum(part.itemsize * len(part) for part in (self.followed, self.last, self.costs))

    def total(self, sections: Iterable[int]) -> int:
        """Return the tokens of several sections' own texts in order, joined by blank lines."""
        count, final = 0, None
        for index in sections:
            count += self.followed[index]
            final = index
        return count if final is None else count - self.followed[final] + self.last[final]


def handed_text(tree: SectionTree, lines: Span) -> str:
    """Return lines as they are handed over: no blank lines around, no indentation before a first heading.

    The first character of nearly every such text is therefore one that starts a token of its own.
    """
    text = tree.text(lines).lstrip("\n")
    bare = text.lstrip(" ")
    return bare if len(text) - len(bare) <= 3 else text


def starts_token(text: str) -> bool:
    """Return whether a text that follows a line end surely begins a new token."""
    return not (text[:1].isspace() or text.startswith("/"))


def count_sections(tree: SectionTree, counter: TokenCounter) -> TokenCounts:
    """Count the own text of every section."""
    texts = [handed_text(tree, section.own) for section in tree.sections]
    last = counter.count_many(texts)
    tails = [_tail(text) for text in texts]
    with_blank = counter.count_many([tail and tail + "\n" for tail in tails])
    without = counter.count_many(tails)
    followed = [all_ + more - less for all_, more, less in zip(last, with_blank, without, strict=True)]
    costs = [counter.allow(max(pair)) for pair in zip(followed, last, strict=True)]
    return TokenCounts(counter.name, array("I", followed), array("I", last), array("I", costs))


def _tail(text: str) -> str:
    """Return the end of a text from a place where a token surely begins; it is counted apart from the rest."""
    at = len(text)
    while (at := text.rfind("\n", 0, at)) > 0:
        if at + 1 < len(text) and starts_token(text[at + 1 : at + 2]):
            return text[at + 1 :]
    return text
