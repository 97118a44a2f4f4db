"""Answers over a file or a folder of this machine, without a server.

Files are read again when they change, and otherwise taken from memory (up to 64 MiB of indices for the whole
process).
"""

from __future__ import annotations

import logging
from functools import cache, partial
from pathlib import Path

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form
from npl_index.answer.outline import OutlineNode, outline
from npl_index.answer.tailoring import TailorRequest as TailorRequest
from npl_index.answer.tailoring import write
from npl_index.answer.values import Tailored
from npl_index.errors import DocumentError, DocumentNotFoundError
from npl_index.library.cache import BuildingCache, MemoryIndexCache
from npl_index.library.catalog import Catalog, Root
from npl_index.library.documents import Library
from npl_index.library.references import DocumentRef, document_name
from npl_index.markdown.traits import TraitFilter
from npl_index.ranking.indexing import IndexedDocument, KnownCollection, index_document
from npl_index.selectors.writing import qualified
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.exact import best_counter
from npl_index.tokens.sections import TokenCounts, count_sections

logger = logging.getLogger(__name__)

_CACHE_BYTES = 64 << 20
_default_counter = cache(best_counter)
_indices: BuildingCache[IndexedDocument] = BuildingCache(
    MemoryIndexCache(_CACHE_BYTES, lambda indexed: indexed.nbytes), index_document
)


def tailored(path: str, request: TailorRequest, counter: TokenCounter | None) -> Tailored:
    """Return what a request needs of a file or a folder; see :func:`npl_index.api.load_tailored`."""
    counter = counter or _default_counter()
    indexed, unreadable = _read(Path(path))

    @cache
    def counts(document: int) -> TokenCounts:
        return count_sections(indexed[document].tree, counter)

    documents = DocumentSet(
        collection=KnownCollection(indexed) if len(indexed) > 1 else indexed[0].collection,
        several=len(indexed) > 1 or Path(path).is_dir(),
        file=path,
        counts=counts,
        counter=counter,
        unreadable=unreadable,
    )
    return write(request, documents, Form()).value


def outlines(
    path: str, depth: int | None, conditions: TraitFilter | None, counter: TokenCounter | None
) -> tuple[OutlineNode, ...]:
    """Return the section tree of each file; see :func:`npl_index.api.section_index`."""
    counter = counter or _default_counter()
    indexed, _ = _read(Path(path))
    several = len(indexed) > 1 or Path(path).is_dir()
    return tuple(
        outline(
            one.tree,
            count_sections(one.tree, counter),
            conditions or TraitFilter(),
            name=one.document.path if several else None,
            selector=partial(_selector, one),
            depth=depth,
        )[0]
        for one in indexed
    )


def _selector(one: IndexedDocument, section: int) -> str:
    return qualified(document_name(one.document.path), one.step(section))


def _read(path: Path) -> tuple[list[IndexedDocument], tuple[str, ...]]:
    """Read a file, or all of a folder that can be read; say what was left out, and why."""
    path = path.resolve()
    folder = path if path.is_dir() else path.parent
    library = Library([Root(str(folder), folder.name)], Catalog(()))
    indexed: list[IndexedDocument] = []
    unreadable: list[str] = []
    for found in library.find(DocumentRef(file=str(path) if folder == path else path.name)):
        try:
            indexed.append(_indices.get(library.stat(found), partial(library.read, found)))
        except (DocumentError, DocumentNotFoundError) as error:
            if folder != path:
                raise
            logger.warning("%s: %s", found.path, error.message)
            unreadable.append(f"{found.path}: {error.message}")
    if not indexed:
        raise DocumentNotFoundError(f"no file below {str(path)!r} can be read", hint=unreadable[0])
    return indexed, tuple(unreadable)
