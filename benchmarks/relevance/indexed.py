"""Documents in an index of their own, as a server searches them."""

from __future__ import annotations

from collections.abc import Iterable

from npl_index.index.collection import IndexedCollection, KeptDocuments
from npl_index.index.database import IndexDatabase
from npl_index.index.entries import Indexer
from npl_index.index.members import Update
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentFile

_BYTES = 1 << 28


def indexed_collection(documents: Iterable[Document]) -> IndexedCollection:
    """Index documents in memory."""
    database, indexer = IndexDatabase(None), Indexer(60, "o200k_base")
    root = Root("/benchmark", "benchmark")
    of = {one.path: one for one in documents}
    states = [(DocumentFile(root, path, root.label), one.fingerprint) for path, one in of.items()]
    update = Update(database, states, None, whole=True)

    def read(found: DocumentFile) -> Document:
        return of[found.path]

    update.put(indexer.entry(asked, read) for asked in update.asked)
    return IndexedCollection(database, update.result(), read, KeptDocuments(_BYTES), lambda _: None)
