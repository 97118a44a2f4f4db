"""Documents to be ranked: their sections, parsed, and the terms of these, numbered."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, count, islice
from typing import NamedTuple

from npl_index.deadline import Deadline
from npl_index.library.documents import Document
from npl_index.markdown.copies import SIMILAR
from npl_index.markdown.front_matter import texts_of
from npl_index.markdown.headings import MAX_HEADING
from npl_index.markdown.sections import Section, SectionTree, Span, parse_sections
from npl_index.ranking.analysis import all_terms, terms
from npl_index.ranking.arrays import np
from npl_index.ranking.collection import IndexedDocument
from npl_index.ranking.postings import sections_of
from npl_index.ranking.spelling import without_compounds
from npl_index.ranking.standing import version_words
from npl_index.selectors.names import names_of

MAX_TERMS = 250_000
"""Maximum distinct terms of one document. Prose of ten megabytes has a tenth of that."""

_NAME_FIELDS = ("linkTitle", "sidebar_label", "aliases", "keywords")
_FILE_WORDS = re.compile(r"[/\s]|--+")
_BODY_FIELDS = (*_NAME_FIELDS, "tags", "description")
_CHUNK = 1 << 16
CHUNKS = re.compile(rf"(?s:.{{1,{_CHUNK}}})(?:\Z|(?<=[\n ]))|(?s:.{{1,{_CHUNK}}})")
"""Parts of a long text, cut after line ends or spaces; between them, a deadline is checked."""


def index_document(document: Document, *, deadline: float | None = None) -> IndexedDocument:
    """Parse a document and number its terms.

    :param deadline: value of ``time.monotonic()`` after which indexing ends in an error.
    :raises UnreadableDocumentError: not UTF-8 or binary.
    :raises DocumentTooLargeError: too many sections.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    tree = parse_sections(document.data, document.name, npl=document.npl, deadline=deadline)
    numbers = _Numbers()
    fields = _fields_of(document, tree, numbers, Deadline(document.name, deadline))
    rows = [[numbers.of(section.heading), numbers.of(section.path), section.body] for section in fields]
    words = sorted(islice(numbers, MAX_TERMS))
    row_of = np.empty(len(words), np.uint32)
    row_of[list(map(numbers.__getitem__, words))] = np.arange(len(words))
    names = names_of(tree, (" ".join(without_compounds(section.heading)) for section in fields))
    further, copies = [section.further for section in fields], [name.copy >> SIMILAR for name in names]
    sections = sections_of(tree, rows, further, copies, row_of)
    return IndexedDocument(document, tree, tuple(words), sections, names)


class _Numbers(defaultdict[str, int]):
    """Numbers of the terms of a document, in their order."""

    def __init__(self) -> None:
        super().__init__(count().__next__)

    def of(self, terms: Iterable[str]) -> array[int]:
        """Return the numbers of terms below the maximum."""
        numbers = array("I", map(self.__getitem__, terms))
        return numbers if len(self) <= MAX_TERMS else array("I", filter(MAX_TERMS.__gt__, numbers))


class _Fields(NamedTuple):
    """The terms of a section.

    :param heading: terms of its heading.
    :param path: terms of the headings above it and of the file's name.
    :param body: numbers of the terms of its body.
    :param further: how many of these, at the end, do not count for its length.
    """

    heading: list[str]
    path: list[str]
    body: array[int]
    further: int


def _file_terms(document: Document, tree: SectionTree) -> list[str]:
    """Return the terms of a file's path and of the names in its front matter."""
    path = document.filed or document.path
    names = " ".join([tree.sections[0].heading, *texts_of(tree.front_matter, _NAME_FIELDS)])[:MAX_HEADING]
    return terms(" ".join(_FILE_WORDS.split(f"{path.removesuffix('.md')} {version_words(path)} {names}")))


def _fields_of(document: Document, tree: SectionTree, numbers: _Numbers, deadline: Deadline) -> list[_Fields]:
    """Return the terms of each section.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    file_terms, result = _file_terms(document, tree), list[_Fields]()
    # The front matter belongs to the first text.
    bodies = (Span(section.heading_lines.stop, section.own.stop) for section in tree.sections)
    described = next((index for index, lines in enumerate(bodies) if tree.text(lines).strip()), 0)
    for section in tree.sections:
        heading = _heading_terms(tree, section)
        above = result[section.parent].path + result[section.parent].heading if section.parent else file_terms
        front = texts_of(tree.front_matter, _BODY_FIELDS) if section.index == described else []
        body = numbers.of([] if section.index else heading + terms(" ".join(front)[:_CHUNK]))
        lines = section.heading_lines
        # The source of a heading has words that it does not show, such as addresses of links.
        source = chain.from_iterable(all_terms("\n".join((tree.text(lines)[:_CHUNK], *front))))
        further = numbers.of(sorted(set(source).difference(heading)))
        # The body of a section with a shortened heading includes the whole heading.
        begin = lines.start if len(section.heading) == MAX_HEADING else lines.stop
        for chunk in CHUNKS.findall(tree.text(Span(begin, section.own.stop))):
            deadline.check()
            counted, uncounted = all_terms(chunk)
            body += numbers.of(counted)
            further += numbers.of(uncounted)
        result.append(_Fields(heading, above, body + further, len(further)))
    return result


def _heading_terms(tree: SectionTree, section: Section) -> list[str]:
    """Return the terms of a heading or a title; a heading of stop words only ("How to") keeps them.

    The title of an untitled document with text before its headings is its name.
    """
    untitled = not (section.index or section.heading or tree.title) and section.own_traits.word_count
    text = section.name if section.level or untitled else section.heading
    return terms(text) or terms(text, keep_stop_words=True)
