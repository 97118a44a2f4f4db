"""The library in two functions: the sections for a task, and the section tree.

Files are read again after changes, and otherwise come from memory (at most 64 MiB of indexes). For other
caches, item names, several roots or other limits, combine the parts like ``npl_mcp.app.app``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.answer.values import Tailored
from npl_index.errors import DocumentError, DocumentNotFoundError
from npl_index.library.cache import BuildingCache
from npl_index.library.catalog import Catalog, Root
from npl_index.library.documents import Library
from npl_index.library.references import DocumentRef, document_name
from npl_index.outline.nodes import OutlineNode, outline
from npl_index.ranking.collection import IndexedDocument, KnownCollection
from npl_index.ranking.indexing import index_document
from npl_index.selectors.filters import TraitFilter
from npl_index.selectors.writing import qualified
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.exact import best_counter
from npl_index.tokens.sections import TokenCounts

logger = logging.getLogger(__name__)

_CACHE_BYTES = 64 << 20
_default_counter = cache(best_counter)
_indices: BuildingCache[IndexedDocument] = BuildingCache(
    index_document, _CACHE_BYTES, lambda indexed: indexed.nbytes
)


def load_tailored(
    path: str | os.PathLike[str],
    context: str = "",
    *,
    topics: Sequence[str] = (),
    selectors: Sequence[str] = (),
    budget: int | None = None,
    explain: bool = False,
    counter: TokenCounter | None = None,
) -> Tailored:
    """Return the sections of Markdown files that a task needs.

    :param path: a Markdown file, or a folder, whose files are ranked together.
    :param context: the task or question.
    :param topics: concepts to match against headings and text.
    :param selectors: sections to include at any score, e.g. ``"guide > ## Usage"``.
    :param budget: maximum tokens of the content; ``None`` for no limit.
    :param explain: report every hit and the parts of its score.
    :param counter: token counter, by default for ``o200k_base``: exact if that vocabulary is on this machine,
        else an estimator.
    :raises DocumentNotFoundError: the file does not exist, or the folder contains no Markdown.
    :raises DocumentError: the file cannot be read or is too large.
    :raises InvalidRequestError: there is no context, topic or selector, or an argument is out of range.
    :raises SelectorSyntaxError: a selector cannot be parsed.
    :raises SectionNotFoundError: no selector matches.
    """
    request = TailorRequest.parse(
        context=context, topics=topics, selectors=selectors, token_budget=budget or 0, explain=explain
    )
    counter = counter or _default_counter()
    indexed, unreadable = _index_files(Path(path))

    @cache
    def counts(document: int) -> TokenCounts:
        return TokenCounts(indexed[document].tree, counter)

    documents = DocumentSet(
        collection=KnownCollection(indexed) if len(indexed) > 1 else indexed[0].collection,
        several=len(indexed) > 1 or Path(path).is_dir(),
        file=os.fspath(path),
        counts=counts,
        count_with=lambda: counter,
        unreadable=unreadable,
    )
    return write(request, documents, Form()).value


def section_index(
    path: str | os.PathLike[str],
    *,
    depth: int | None = None,
    conditions: TraitFilter | None = None,
    counter: TokenCounter | None = None,
) -> tuple[OutlineNode, ...]:
    """Return the section tree of each Markdown file: a node of level 0 with its sections as children.

    Unreadable files of a folder are omitted and logged.

    :param path: a Markdown file or a folder.
    :param depth: levels of sections below the file; ``None`` for all.
    :param conditions: only sections that meet these, and their ancestors.
    :param counter: token counter, see :func:`load_tailored`.
    :raises DocumentNotFoundError: the file does not exist, or the folder contains no Markdown.
    :raises DocumentError: the file cannot be read or is too large.
    """
    counter = counter or _default_counter()
    files, _ = _index_files(Path(path))
    several = len(files) > 1 or Path(path).is_dir()

    def tree_of(file: IndexedDocument) -> OutlineNode:
        name = document_name(file.document.path)
        return outline(
            file.tree,
            TokenCounts(file.tree, counter),
            conditions or TraitFilter(),
            name=file.document.path if several else None,
            selector=lambda section: qualified(name, file.step(section)),
            depth=depth,
        )

    return tuple(map(tree_of, files))


def _index_files(path: Path) -> tuple[list[IndexedDocument], tuple[str, ...]]:
    """Index a file, or all readable files of a folder; return the errors of the others, too."""
    path = path.resolve()
    folder = path if path.is_dir() else path.parent
    library = Library([Root(str(folder), folder.name)], Catalog(()))
    indexed: list[IndexedDocument] = []
    unreadable: list[str] = []
    for file in library.find(DocumentRef(file=str(path) if folder == path else path.name)):
        try:
            indexed.append(_indices.get(file.stat(), partial(library.read, file)))
        except (DocumentError, DocumentNotFoundError) as error:
            if folder != path:
                raise
            logger.warning("%s: %s", file.path, error.message)
            unreadable.append(f"{file.path}: {error.message}")
    if not indexed:
        raise DocumentNotFoundError(f"no file below {str(path)!r} can be read", hint=unreadable[0])
    return indexed, tuple(unreadable)
