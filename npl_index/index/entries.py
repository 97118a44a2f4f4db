"""Index entries of files, made in any process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from npl_index.deadline import Deadline
from npl_index.errors import DocumentError, DocumentNotFoundError, DocumentTimeoutError
from npl_index.library.documents import Document, DocumentFile, Fingerprint, Read
from npl_index.library.fingerprints import is_settled
from npl_index.markdown.front_matter import field_values
from npl_index.markdown.sections import SectionTree, parse_sections
from npl_index.ranking.collection import IndexedDocument
from npl_index.ranking.documents import dump_sections
from npl_index.ranking.indexing import index_document
from npl_index.ranking.postings import Sections
from npl_index.ranking.standing import language_of
from npl_index.selectors.names import Name
from npl_index.tokens.estimated import estimator
from npl_index.tokens.sections import TokenCounts

BATCH_FILES = range(64, 257)
"""Files of a batch: more are written faster, and a few batches would leave workers idle."""

FILE_BYTES = 16_384
"""Bytes of a batch by its maximum of files; a larger file is a batch of its own."""


class IndexEntry(NamedTuple):
    """A file to compare and perhaps to index; afterwards, the file in its present state.

    :param file: the file.
    :param state: its observed state.
    :param position: its position among the files of the update.
    :param digest: digest of its indexed content; ``None`` without any.
    :param settled: its fingerprint alone proves that it is unchanged.
    :param content: its new content.
    :param failure: reason why the file cannot be indexed.
    """

    file: DocumentFile
    state: Fingerprint
    position: int
    digest: str | None = None
    settled: bool = False
    content: IndexedContent | None = None
    failure: str | None = None


class IndexedContent(NamedTuple):
    """The index of a file's content.

    :param title: name of the document.
    :param heading: name of its first section.
    :param terms: its terms, ascending; ``sections`` has positions in them.
    :param record: its sections (:func:`~npl_index.ranking.documents.dump_sections`).
    :param tokens: their token counts (:meth:`~npl_index.tokens.sections.TokenCounts.stored`), or nothing yet.
    :param fields: names and values of its front matter, folded.
    :param language: code of its language (:mod:`~npl_index.ranking.standing`).
    """

    title: str
    heading: str
    terms: tuple[str, ...]
    sections: Sections
    names: Sequence[Name]
    record: bytes
    tokens: bytes
    fields: Sequence[tuple[str, str]]
    language: str


@dataclass(frozen=True, slots=True)
class Indexer:
    """Settings for indexing files, in this and other processes.

    :param seconds: time limit for one file.
    :param vocabulary: vocabulary of the estimated token counts. Exact counts take as long as the indexing,
        so they are made when an answer needs them.
    """

    seconds: float
    vocabulary: str

    def index(self, document: Document) -> IndexedDocument:
        """Return the index of a document.

        :raises DocumentError: the document cannot be indexed.
        """
        return index_document(document, deadline=time.monotonic() + self.seconds)

    def entry(self, entry: IndexEntry, read: Read, *, counted: bool = True) -> IndexEntry:
        """Read a file, and index its content unless it is indexed.

        :param counted: also estimate its tokens; otherwise :meth:`count` does later.
        """
        now = time.time_ns()
        try:
            document = read(entry.file)
            state = document.fingerprint
            entry = entry._replace(state=state, settled=is_settled(state.mtime_ns, now))
            if document.digest == entry.digest:
                return entry
            indexed = self.index(document)
        except (DocumentError, DocumentNotFoundError) as error:
            return entry._replace(failure=f"{entry.file.path}: {error.message}")
        tree = indexed.tree
        titles, terms = (tree.name, tree.sections[0].name), (indexed.terms, indexed.sections)
        fields, language = field_values(tree.front_matter), language_of(tree.source)
        tokens = self._tokens(tree, document.name) if counted else b""
        content = IndexedContent(
            *titles, *terms, indexed.names, dump_sections(indexed), tokens, fields, language
        )
        return entry._replace(digest=document.digest, content=content)

    def count(self, entry: IndexEntry, read: Read) -> tuple[int, bytes]:
        """Return the position of an indexed file, and the estimated tokens of its sections in stored form.

        :returns: no bytes if the file changed or cannot be counted.
        """
        with suppress(DocumentError, DocumentNotFoundError):
            document, deadline = read(entry.file), time.monotonic() + self.seconds
            if document.digest == entry.digest:
                tree = parse_sections(document.data, document.name, npl=document.npl, deadline=deadline)
                return entry.position, self._tokens(tree, document.name)
        return entry.position, b""

    def _tokens(self, tree: SectionTree, name: str) -> bytes:
        """Return the estimated tokens of sections in stored form; nothing if this takes too long."""
        clock = Deadline(name, time.monotonic() + self.seconds)
        with suppress(DocumentTimeoutError):
            return TokenCounts(tree, estimator(self.vocabulary), clock).stored().tobytes()
        return b""


def batches(entries: Sequence[IndexEntry]) -> Iterator[list[IndexEntry]]:
    """Divide entries into batches."""
    most = min(max(len(entries) // 8, BATCH_FILES[0]), BATCH_FILES[-1])
    batch: list[IndexEntry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) == most or size + entry.state.size > most * FILE_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.state.size
    if batch:
        yield batch
