"""Documents of a folder, alone and in an index of their own, as a server searches them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.common import document
from npl_index.index.collection import IndexedCollection, KeptDocuments
from npl_index.index.database import IndexDatabase
from npl_index.index.entries import Indexer
from npl_index.index.members import Update
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentFile
from npl_index.ranking.collection import IndexedDocument
from npl_index.ranking.indexing import index_document

_BYTES = 1 << 28


def read_documents(folder: Path) -> dict[str, IndexedDocument]:
    """Index the Markdown files below a folder, by path."""
    paths = sorted(path for path in folder.rglob("*.md") if path.is_file())
    return {
        name: index_document(document(path.read_bytes(), name))
        for path in paths
        for name in [path.relative_to(folder).as_posix()]
    }


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
