"""The documents of a request: their texts, selectors and parts with token counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import islice
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from npl_index.answer.blocks import Blocks
from npl_index.answer.cleaning import cleaned
from npl_index.answer.frames import Pairs, framed
from npl_index.answer.marks import tag_for
from npl_index.cached import cached_property
from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.library.documents import DocumentFile
from npl_index.library.lazy import LazySequence
from npl_index.library.references import document_name, path_ends
from npl_index.markdown.links import definitions_for
from npl_index.markdown.sections import Section, SectionTree, Span
from npl_index.ranking.collection import Collection
from npl_index.ranking.documents import ParsedDocument
from npl_index.ranking.scoring import Ranking
from npl_index.ranking.standing import standing_in
from npl_index.selectors.grammar import spell
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import heading_label, label
from npl_index.selectors.matching import Scope
from npl_index.selectors.names import Place
from npl_index.selectors.writing import narrowed
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.sections import TokenCounts, escaped_tokens, measure, trimmed_text, unindented

T = TypeVar("T")
P = ParamSpec("P")

MAX_DEFINITIONS = 12
MAX_DEFINITION = 300
"""Maximum definitions of links and footnotes that come with a passage, and characters of each."""

MAX_NOTED = 24
"""Maximum hits whose copies are named."""

ORDINAL = re.compile(r" \[[0-9]+\]\Z")
"""The number after equal headings at the end of a step; such a text within a heading is in quotes."""


def once(work: Callable[Concatenate[DocumentSet, P], T]) -> Callable[Concatenate[DocumentSet, P], T]:
    """Keep the results of a function of documents, by its other arguments."""

    @wraps(work)
    def kept(documents: DocumentSet, /, *arguments: P.args, **named: P.kwargs) -> T:
        key, results = (work, arguments, *named.items()), documents.results
        if key not in results:
            results[key] = work(documents, *arguments, **named)
        result: T = results[key]
        return result

    return kept


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
        parts = (tree.text(section.own) for section in tree.sections)
        used = definitions_for(text, parts, nested=tree.dialect == "npl")
        lines = [line for line in used if line not in text][:MAX_DEFINITIONS]
        return "\n" + "".join(f"{line[:MAX_DEFINITION]}\n" for line in lines) if lines else ""

    def _under_heading(self) -> str:
        """Return the lines with the heading above them and the frame of a block."""
        section = self.tree.sections[self.section]
        if self.is_whole:
            return unindented(self.tree.text(section.own).lstrip("\n"))
        pairs, heading = self._documents.pairs(self.place), section.heading_lines
        text = unindented(framed(self.tree, section.own, self.lines, pairs))
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


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The documents of a request, with their names in the answer.

    :param collection: the documents.
    :param several: whether answers name the file of each section, and the content marks the start of files.
    :param file: name of all documents in the answer.
    :param counts: returns the token counts of a document by its index in the collection.
    :param count_with: returns the counter of other texts.
    :param locations: the file of each document, if it is known.
    :param unreadable: reasons for requested files that are not in the collection.
    :param missing: number of requested files that are not in the collection yet.
    :param files: name of each document in answers; by default its path below its root.
    :param aliases: further names of each document in the request.
    :param complete: whether selectors without a document's name are looked up in these documents alone, so
        that a heading of only one of them needs no document.
    :param digests: whether answers include the digest of each section, because sections are editable.
    :param wanted: index terms of the request with their weights; a large section is cut around them.
    :param not_served: returns the numbers of documents of the roots that are not served, with the reasons.
    :param clock: time limit for selecting, counting and cutting.
    :param changed: selectors of sections to report as changed.
    :param behind: documents that stand behind others, with the reasons.
    :param noted: ranked sections whose copies are named.
    :ivar results: results of functions, see :func:`once`.
    """

    collection: Collection
    several: bool
    file: str
    counts: Callable[[int], TokenCounts]
    count_with: Callable[[], TokenCounter]
    locations: Sequence[DocumentFile] = ()
    unreadable: tuple[str, ...] = ()
    missing: int = 0
    files: Sequence[str] = ()
    aliases: Sequence[Sequence[str]] = ()
    complete: bool = False
    not_served: Callable[[], str] = str
    digests: bool = False
    wanted: tuple[tuple[str, float], ...] = ()
    clock: Deadline = NO_DEADLINE
    changed: tuple[str, ...] | None = None
    behind: Mapping[int, str] = field(default_factory=dict)
    noted: Container[Place] = ()
    results: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def ranked_by(self, ranking: Ranking) -> DocumentSet:
        """Return the documents with the words of a question, and with what its ranking says of them."""
        coverage = ranking.coverage
        weighted = zip(coverage.words, coverage.weights.tolist(), strict=True)
        wanted = tuple((term, weight) for word, weight in weighted for term in word.meant)
        noted = frozenset(hit.place for hit in ranking.hits[:MAX_NOTED])
        return replace(self, wanted=wanted, behind=ranking.behind, noted=noted)

    @property
    def counter(self) -> TokenCounter:
        """The counter of other texts than sections."""
        return self.count_with()

    def tree(self, document: int) -> SectionTree:
        """Return a document's sections."""
        return self.document(document).tree

    @once
    def document(self, number: int) -> ParsedDocument:
        """Return a document."""
        return self.collection.documents[number]

    def section(self, place: Place) -> Section:
        """Return a section."""
        return self.tree(place[0]).sections[place[1]]

    def path(self, document: int) -> str:
        """Return a document's name in answers: its path below its root if that is unique."""
        return self.files[document] if self.files else self.collection.documents[document].document.path

    def note(self, part: SectionPart) -> str | None:
        """Return the remark about a ranked section: its document's standing, and copies."""
        behind, status = self.behind.get(part.document, ""), self.status(part.document)
        notes = [text for text in ("" if status.startswith(behind) else behind, status) if text]
        if part.place in self.noted and not part.chosen:
            for word, places in zip(("also", "similar"), self.copies(part.place), strict=True):
                if files := len({document for document, _ in places}):
                    others = f"{files} files, " if files > 1 else ""
                    notes.append(f"{word} in {others}{self._where(places[0], part)}")
        return "; ".join(notes) or None

    def _where(self, copy: Place, part: SectionPart) -> str:
        """Return the file of a copy if its heading is that of the section, else its selector."""
        is_same = self.section(copy).name == self.section(part.place).name
        return self.name(copy[0]) if is_same else self.selector(copy)

    @once
    def copies(self, place: Place) -> tuple[Sequence[Place], Sequence[Place]]:
        """Return the sections of other documents with the text of a section, and those with a similar one."""
        return self.collection.copies(*place)

    def original(self, place: Place) -> Place:
        """Return the first section with the text of a section."""
        return min((place, *self.copies(place)[0]))

    @once
    def status(self, document: int) -> str:
        """Return what a document's front matter says of it: retired, verified, generated."""
        return standing_in(self.tree(document).front_matter)

    @once
    def scope(self) -> Scope:
        """Return the documents for selectors.

        A document's name in answers and its names in the request are unique; the ends of its path are names
        that it may share.
        """
        paths = list(map(self.path, range(len(self.collection.documents))))
        aliases = self.aliases or [()] * len(paths)
        return Scope(
            LazySequence(len(paths), self.tree),
            [tuple(path_ends(path)) for path in paths],
            self.clock,
            [(document_name(path), path, *names) for path, names in zip(paths, aliases, strict=True)],
            self.collection.names,
        )

    def text(self, place: Place) -> str:
        """Return a section's own text."""
        return trimmed_text(self.tree(place[0]), self.section(place).own)

    @once
    def pairs(self, place: Place) -> Pairs:
        """Return the paired marks of a section's own text."""
        return Pairs(self.tree(place[0]), self.section(place).own)

    @once
    def blocks(self, place: Place) -> Blocks:
        """Return the blocks of a section's own text."""
        return Blocks(self.tree(place[0]), self.section(place), self.pairs(place))

    @once
    def heading(self, place: Place) -> tuple[str, int]:
        """Return the heading of a section, and its tokens with a blank line after it."""
        text = trimmed_text(self.tree(place[0]), self.section(place).heading_lines)
        return text, measure(text, self.counter)[0]

    def name(self, document: int, *, by_path: bool = False) -> str:
        """Return a document's name in selectors, in quotation marks if necessary.

        :param by_path: use the path even if there is a shorter name.
        """
        path = self.path(document)
        return spell(label(path if by_path else document_name(path)))

    def selector(
        self,
        place: Place,
        *,
        own: bool = False,
        lines: Span | None = None,
        above: bool = False,
        by_path: bool = False,
    ) -> str:
        """Return the shortest selector of a section, of its own text, or of some lines of that.

        :param above: include all headings above it except the document's title.
        :param by_path: name the document by its path with its suffix.
        """
        named = self._selector(place, above, by_path)
        return narrowed(named, own=own and bool(self.section(place).children), lines=lines)

    @once
    def _selector(self, place: Place, above: bool, by_path: bool) -> str:
        document, index = place
        tree, steps = self.tree(document), self.document(document).steps
        path = steps[index]
        starts = [(anchor, steps[anchor]) for anchor in (index, *reversed(tree.ancestors(index)))]
        if above:
            path, top = self._full_steps(place)
            starts = [(top, f" > {_step(tree.sections[top])}")] if top else []
        for anchor, start in starts if self.complete and not by_path else ():
            below = path.removeprefix(start)
            # No part of a file is named by the file's heading.
            if (not below or below.startswith(" > #")) and self._is_unique(document, anchor):
                return _step(tree.sections[anchor]) + below
        for anchor, start in starts if above else ():
            if heading := self._sole_step(document, anchor):
                path = f" {heading}{path.removeprefix(start)}"
        return self.name(document, by_path=by_path) + path

    def _full_steps(self, place: Place) -> tuple[str, int]:
        """Return the steps of a section's selector with all headings above it, and the first of these."""
        document, index = place
        hierarchy, steps, path, top = self._hierarchy(document), self.document(document).steps, "", 0
        while (above := hierarchy.parent(index)) is not None:
            below = steps[index].removeprefix(f"{steps[above]} >")
            path, index, top = f" >{below}{path}", above, index
        return path, top

    @once
    def _hierarchy(self, document: int) -> Hierarchy:
        return Hierarchy(self.tree(document))

    def end_of_range(self, document: int, end: int) -> str:
        """Return the end of a range within one document."""
        heading = self._sole_step(document, end)
        return heading or self.name(document) + self.document(document).steps[end]

    def _sole_step(self, document: int, index: int) -> str | None:
        """Return the heading of a section as a step, if it is unique in its document."""
        section, steps = self.tree(document).sections[index], self.document(document).steps
        step = _step(section)
        end = f" {step}"
        alike = (other for other in steps if end in other)  # of 20,000 steps, few need the expression
        equal = (other for other in alike if ORDINAL.sub("", other).endswith(end))
        return step if section.level and len(list(islice(equal, 2))) == 1 else None

    @once
    def _is_unique(self, document: int, section: int) -> bool:
        """Return whether a section is a heading without an equal in the collection."""
        return self.section((document, section)).level > 0 and self.collection.is_unique(document, section)

    @once
    def part(self, place: Place, *, chosen: bool = False, lines: Span | None = None) -> SectionPart:
        """Return a part of a section's own text, or of some lines of it, which come under its heading."""
        return SectionPart(self, place, chosen, lines)

    def ancestors(self, place: Place) -> Iterator[Place]:
        """Yield the sections above a section, from its parent up, without restoring its document."""
        document, section = place
        parents = self.collection.sections(document).parents
        while (parent := int(parents[section])) != section:
            section = parent
            yield document, section

    def tag(self, places: Iterable[Place]) -> str:
        """Return the nonce of marks that no line of some sections can imitate."""
        texts = (self.tree(place[0]).text(self.section(place).own) for place in dict.fromkeys(places))
        return tag_for(list(texts))


def _step(section: Section) -> str:
    """Return a heading as a step of a selector."""
    return f"{'#' * section.level} {spell(heading_label(section.name))}"
