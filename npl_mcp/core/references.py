"""The links of documents, cached by content."""

from __future__ import annotations

import threading

from cachetools import LRUCache

from npl_index.markdown.links import Reference, references
from npl_index.ranking.indexing import ParsedDocument

_KEPT = 200_000
"""Maximum cached links: about 40 MB."""


class KnownReferences:
    """The links of documents by their content; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[tuple[str, str], tuple[Reference, ...]] = LRUCache(
            _KEPT, lambda found: min(1 + len(found), _KEPT)
        )

    def of(self, parsed: ParsedDocument) -> tuple[Reference, ...]:
        """Return the links of a document."""
        key = parsed.document.digest, parsed.tree.dialect
        with self._lock:
            known = self._kept.get(key)
        if known is None:
            known = tuple(references(parsed.tree.source, nested=parsed.tree.dialect == "npl"))
            with self._lock:
                self._kept[key] = known
        return known
