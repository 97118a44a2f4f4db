"""The links of documents, cached by content."""

from __future__ import annotations

import threading
from collections.abc import Callable

from cachetools import LRUCache, cached

from npl_index.markdown.links import Reference, references
from npl_index.ranking.indexing import ParsedDocument

_MAX_LINKS = 200_000
"""Cached links: about 40 MB."""


def cached_references() -> Callable[[ParsedDocument], tuple[Reference, ...]]:
    """Return a function from a document to its links, with a cache of its own; safe for several threads."""

    @cached(
        LRUCache(_MAX_LINKS, lambda found: min(1 + len(found), _MAX_LINKS)),
        key=lambda parsed: (parsed.document.digest, parsed.tree.dialect),
        lock=threading.Lock(),
    )
    def references_of(parsed: ParsedDocument) -> tuple[Reference, ...]:
        return tuple(references(parsed.tree.source, nested=parsed.tree.dialect == "npl"))

    return references_of
