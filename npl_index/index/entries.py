"""What is indexed of one file, made from it in any process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from npl_index.errors import DocumentError, DocumentNotFoundError, DocumentTimeoutError
from npl_index.library.documents import Document, Fingerprint, Found
from npl_index.library.fingerprints import is_settled
from npl_index.markdown.state import Deadline
from npl_index.ranking.indexing import IndexedDocument, ParsedDocument, index_document
from npl_index.ranking.postings import Sections
from npl_index.ranking.storing import dump_sections
from npl_index.selectors.names import Name
from npl_index.tokens.estimated import estimator
from npl_index.tokens.sections import NOTHING, TokenCounts

FILES = 64
"""Files of a batch at most."""

BYTES = 1 << 20
"""Bytes of a batch, unless one file has more: a batch takes about half a second."""


class Asked(NamedTuple):
    """A file that may have to be indexed.

    :param state: as it was seen.
    :param digest: of what is indexed of it.
    """

    found: Found
    state: Fingerprint
    digest: str | None = None


class Entry(NamedTuple):
    """A file as it is now.

    :param settled: its fingerprint alone proves that it is unchanged.
    :param content: ``None`` where it is indexed already.
    :param failure: why it cannot be indexed.
    """

    found: Found
    state: Fingerprint
    settled: bool = False
    digest: str = ""
    content: Content | None = None
    failure: str | None = None


class Content(NamedTuple):
    """What is indexed of a file.

    :param title: name of the document.
    :param heading: name of its first section.
    :param terms: ascending; the rows of ``sections`` are theirs.
    :param record: its sections (:func:`~npl_index.ranking.storing.dump_sections`).
    :param tokens: their counts (:meth:`~npl_index.tokens.sections.TokenCounts.stored`).
    """

    title: str
    heading: str
    terms: tuple[str, ...]
    sections: Sections
    names: Sequence[Name]
    record: bytes
    tokens: bytes


@dataclass(frozen=True, slots=True)
class Indexer:
    """How files are indexed, here and in other processes.

    :param seconds: to read and index one file.
    :param vocabulary: that tokens are estimated for. Exact counts take as long as all else together, so they
        are made when an answer needs them.
    """

    seconds: float
    vocabulary: str

    def index(self, document: Document) -> IndexedDocument:
        """Return the index of a document.

        :raises DocumentError: it cannot be indexed.
        """
        return index_document(document, deadline=time.monotonic() + self.seconds)

    def entry(
        self, asked: Asked, read: Callable[[Found], Document], *, counted: bool = True
    ) -> tuple[Entry, ParsedDocument | None]:
        """Read a file, and index it unless its content is indexed; return the document where it was.

        :param counted: count its tokens, too; what is not counted is when an answer needs it.
        """
        found, state, digest = asked
        try:
            document = read(found)
            state = document.fingerprint
            settled = is_settled(state.mtime_ns, time.time_ns())
            if document.digest == digest:
                return Entry(found, state, settled, digest), None
            deadline = time.monotonic() + self.seconds
            indexed = index_document(document, deadline=deadline)
        except (DocumentError, DocumentNotFoundError) as error:
            return Entry(found, state, failure=f"{found.path}: {error.message}"), None
        parsed = ParsedDocument(document, indexed.tree)
        content = Content(
            indexed.tree.name,
            indexed.tree.sections[0].name,
            indexed.terms,
            indexed.sections,
            indexed.names,
            dump_sections(parsed),
            self._tokens(parsed, deadline) if counted else NOTHING.tobytes(),
        )
        return Entry(found, state, settled, document.digest, content), parsed

    def _tokens(self, parsed: ParsedDocument, deadline: float) -> bytes:
        """Return the token counts that are kept with a document: none if they take too long."""
        clock = Deadline(parsed.document.name, deadline)
        try:
            return TokenCounts(parsed.tree, estimator(self.vocabulary), clock).stored().tobytes()
        except DocumentTimeoutError:
            return NOTHING.tobytes()


def batches(files: Iterable[Asked]) -> Iterator[list[Asked]]:
    """Divide files into batches."""
    batch: list[Asked] = []
    size = 0
    for asked in files:
        if batch and (len(batch) == FILES or size + asked.state.size > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(asked)
        size += asked.state.size
    if batch:
        yield batch
