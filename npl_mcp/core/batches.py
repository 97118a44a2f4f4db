"""Files of a set become segments batch by batch, in this process or in others."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from npl_index.errors import DocumentError, DocumentNotFoundError, DocumentTimeoutError
from npl_index.library.documents import Document, Fingerprint, Found
from npl_index.library.fingerprints import is_settled
from npl_index.markdown.state import Deadline
from npl_index.ranking.indexing import IndexedDocument, ParsedDocument, index_document
from npl_index.ranking.segments import Segment, segment_of
from npl_index.ranking.storing import dump_sections
from npl_index.tokens.estimated import estimator
from npl_index.tokens.sections import NOTHING, kept_counts
from npl_mcp.core.scratch import Place
from npl_mcp.stores.base.errors import RESTORE

FILES = 64
"""Files of a batch at most; their trees and texts are in memory together."""

BYTES = 1 << 20
"""Bytes of a batch, unless one file has more: a batch takes about a second."""

NEW = -1
"""Number of the segment of what was not written down yet."""


class Member(NamedTuple):
    """A document of a set as it was indexed.

    :param fingerprint: of its file.
    :param settled: the fingerprint alone proves that the file is unchanged.
    :param called: what of its name went into the index: its path below the root, and how fences are read.
    :param digest: of its bytes.
    :param delta: number of the segment that holds it, 0 for the base.
    :param ordinal: which of the segment's documents it is.
    """

    fingerprint: Fingerprint
    settled: bool
    called: str
    digest: str
    delta: int = 0
    ordinal: int = 0

    def is_certain(self, called: str, fingerprint: Fingerprint) -> bool:
        """Tell whether a document is certainly as it was indexed."""
        same = self.fingerprint is fingerprint or self.fingerprint == fingerprint  # mostly it is the same
        return self.settled and same and self.called == called


class Reader(Protocol):
    """Reads documents that were found."""

    def read(self, found: Found) -> Document:
        """Read a whole document."""
        ...

    def sent(self, founds: Sequence[Found]) -> Reader:
        """Return what reads these documents in another process."""
        ...


@dataclass(frozen=True, slots=True)
class Texts:
    """Documents that were read already; can be sent to another process.

    :param documents: by their paths.
    """

    documents: Mapping[str, Document]

    def read(self, found: Found) -> Document:
        """Return a document.

        :raises DocumentError: it was not there, or not as it was stored.
        """
        if found.path not in self.documents:
            raise DocumentError(f"{found.path!r} is damaged", hint=RESTORE)
        return self.documents[found.path]

    def sent(self, founds: Sequence[Found]) -> Texts:  # noqa: ARG002
        """Return this."""
        return self


@dataclass(frozen=True, slots=True)
class Indexer:
    """How files are indexed, here and in other processes.

    :param seconds: to read and index one file.
    :param vocabulary: that tokens are estimated for. Exact counts take as long as all else together, and no
        process but the server loads what they need; so they are made when an answer needs them.
    """

    seconds: float
    vocabulary: str

    def index(self, document: Document) -> IndexedDocument:
        """Return the index of a document.

        :raises DocumentError: it cannot be indexed.
        """
        return index_document(document, deadline=time.monotonic() + self.seconds)

    def tokens(self, indexed: ParsedDocument) -> array[int]:
        """Return the token counts that are kept with a document: none if they take too long."""
        clock = Deadline(indexed.document.name, time.monotonic() + self.seconds)
        try:
            return kept_counts(indexed.tree, estimator(self.vocabulary), clock)
        except DocumentTimeoutError:
            return NOTHING


class Asked(NamedTuple):
    """A file that may have to be indexed.

    :param state: as it was seen.
    :param known: name and digest of what is indexed of it.
    """

    found: Found
    state: Fingerprint
    known: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """What came of a batch.

    :param segment: of the documents that were indexed, or where it lies.
    :param members: those documents; their ordinals are those in the segment.
    :param same: documents that have the content they had.
    :param failures: states of the files that cannot be read, and why.
    :param sections: of those documents.
    :param documents: what was indexed, where somebody asked for it.
    """

    segment: Segment | Place | None
    members: tuple[Member, ...] = ()
    same: tuple[Member, ...] = ()
    failures: tuple[tuple[Fingerprint, str], ...] = ()
    sections: int = 0
    documents: tuple[ParsedDocument, ...] = ()


Batch = Sequence[Asked]


def batches(files: Iterable[Asked]) -> Iterator[Batch]:
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


def index_batch(
    batch: Batch,
    read: Callable[[Found], Document],
    indexer: Indexer,
    *,
    keep: bool = False,
    counted: bool = True,
) -> Piece:
    """Read the files of a batch, and index those that are another way than they were.

    :param keep: the documents are wanted as well.
    :param counted: their tokens are counted, which takes as long as half of the rest; else that is done when
        an answer needs it.
    """
    fresh: list[IndexedDocument] = []
    same: list[Member] = []
    failures: list[tuple[Fingerprint, str]] = []
    for found, state, known in batch:
        try:
            document = read(found)
            if (document.path, document.digest) == known:
                same.append(_member(document))
            else:
                fresh.append(indexer.index(document))
        except (DocumentError, DocumentNotFoundError) as error:
            failures.append((state, f"{found.path}: {error.message}"))
    members = tuple(_member(one.document, ordinal) for ordinal, one in enumerate(fresh))
    records = [dump_sections(one) for one in fresh]
    documents = tuple(ParsedDocument(one.document, one.tree) for one in fresh) if keep else ()
    tokens = [indexer.tokens(one) if counted else NOTHING for one in fresh]
    segment = segment_of(fresh, records, tokens) if fresh else None
    sections = 0 if segment is None else segment.size
    return Piece(segment, members, tuple(same), tuple(failures), sections, documents)


def _member(document: Document, ordinal: int = 0) -> Member:
    settled = is_settled(document.fingerprint.mtime_ns, time.time_ns())
    return Member(document.fingerprint, settled, document.path, document.digest, NEW, ordinal)
