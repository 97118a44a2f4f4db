"""Parts of sections with their texts and tokens, and the units of an answer that they form."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from npl_index.answer.cleaning import cleaned
from npl_index.answer.frames import framed
from npl_index.cached import cached_property
from npl_index.markdown.links import definitions_for
from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.names import Place
from npl_index.tokens.sections import TokenCounts, escaped_tokens, measure, trimmed_text, unindented

if TYPE_CHECKING:  # the documents make their parts
    from npl_index.answer.document_set import DocumentSet

MAX_DEFINITIONS = 12
MAX_DEFINITION = 300
"""Maximum definitions of links and footnotes that come with a passage, and characters of each."""


class Size(NamedTuple):
    """Tokens of a text.

    :param followed: tokens before a blank line and more text.
    :param last: tokens at the end of the content.
    """

    followed: int
    last: int


class SectionPart:
    """A range of lines in one section's own text, counted at its first use.

    :param place: the section.
    :param chosen: whether a selector matches it.
    :param lines: lines of the document; by default the section's own text.
    :param size: its tokens, if known.
    """

    def __init__(
        self,
        documents: DocumentSet,
        place: Place,
        chosen: bool = False,
        lines: Span | None = None,
        size: Size | None = None,
    ) -> None:
        self.place, self.chosen = place, chosen
        self.document, self.section = place
        self._documents, self._lines, self._size = documents, lines, size

    @cached_property
    def tree(self) -> SectionTree:
        """The sections of its document."""
        return self._documents.tree(self.document)

    @cached_property
    def lines(self) -> Span:
        """Its lines of the document."""
        return self._lines or self.tree.sections[self.section].own

    @cached_property
    def is_whole(self) -> bool:
        """Whether it is all of its section's own text."""
        return self.lines == self.tree.sections[self.section].own

    @cached_property
    def text(self) -> str:
        """The text, under its section's heading; without needless markup, unless it is chosen."""
        text = self._under_heading()
        if self.chosen:
            return text
        is_mdx = self._documents.path(self.document).endswith(".mdx")
        return cleaned(text, is_mdx=is_mdx) + (self._definitions(text) if self.is_whole else "")

    def _definitions(self, text: str) -> str:
        """Return the definitions that a text uses and that stand elsewhere, below a blank line."""
        tree = self.tree
        if "[" not in text or "]:" not in tree.source:
            return ""
        used = definitions_for(text, tree.source, nested=tree.dialect == "npl")
        lines = [line for line in used if line not in text][:MAX_DEFINITIONS]
        return "\n" + "".join(f"{line[:MAX_DEFINITION]}\n" for line in lines) if lines else ""

    def _under_heading(self) -> str:
        """Return the lines with the heading above them and the frame of a block."""
        section = self.tree.sections[self.section]
        if self.is_whole:
            return unindented(self.tree.text(section.own).lstrip("\n"))
        text = unindented(framed(self.tree, section.own, self.lines, self._documents.pairs(self.place)))
        heading = section.heading_lines
        is_above = heading.start < heading.stop <= self.lines.start
        return f"{trimmed_text(self.tree, heading)}\n{text}" if is_above and text else text

    @cached_property
    def _counts(self) -> TokenCounts | None:
        """The counts of its document, if it is its section's own unchanged text."""
        is_stored = self.is_whole and (self.chosen or self.text == self._documents.text(self.place))
        return self._documents.counts(self.document) if is_stored else None

    @cached_property
    def size(self) -> Size:
        """The tokens of the text."""
        if self._size:
            return self._size
        if self._counts:
            return Size(self._counts.followed(self.section), self._counts.last(self.section))
        return Size(*measure(self.text, self._documents.counter, self._documents.clock))

    @cached_property
    def escaped(self) -> int:
        """The tokens of the text with a blank line, escaped as in JSON."""
        if self._counts:
            return self._counts.escaped(self.section)
        return escaped_tokens(self.text, self._documents.counter)

    def narrowed(self, lines: Span, size: Size | None = None) -> SectionPart:
        """Return a different range of the same section's text."""
        if size is None:
            return self._documents.part(self.place, chosen=self.chosen, lines=lines)
        return SectionPart(self._documents, self.place, self.chosen, lines, size)


class AnswerUnit(NamedTuple):
    """Text that is kept, cut or dropped as a whole.

    :param parts: parts of one document, in its order.
    :param score: 0 to 1; 1 for a match of a selector.
    :param cut: whether room for the rest of its section is missing.
    :param ranges: whether its parts are several consecutive sections, which are only named.
    """

    parts: tuple[SectionPart, ...]
    score: float
    cut: bool = False
    ranges: bool = False

    @property
    def document(self) -> int:
        """Index of the document."""
        return self.parts[0].document

    @property
    def places(self) -> list[Place]:
        """The sections of its parts."""
        return [part.place for part in self.parts]

    @property
    def tokens(self) -> int:
        """Tokens of the text alone."""
        return sum(part.size.followed for part in self.parts[:-1]) + self.parts[-1].size.last
