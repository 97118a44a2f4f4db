"""How many tokens whole documents have, to say what it saved to load sections of them."""

from __future__ import annotations

from collections.abc import Collection

from cachetools.func import ttl_cache

from npl_index.errors import NPLError
from npl_index.library.documents import DocumentRef
from npl_mcp.core.app import App
from npl_mcp.core.calls import Caller

_KEPT = 1024
_SECONDS = 30.0


def whole_size(app: App, caller: Caller, files: Collection[str]) -> int | None:
    """Return the tokens of documents as a caller sees them; ``None`` if one is gone.

    A change may be noticed up to half a minute late.

    :param app: has the documents.
    """
    try:
        seen = caller.view(app)
        return sum(_tokens(seen, file) for file in files)
    except NPLError:
        return None


@ttl_cache(_KEPT, _SECONDS)
def _tokens(app: App, file: str) -> int:
    collection = app.gather(DocumentRef(file=file)).collection
    _, counts = app.counting(collection)
    return sum(
        counts(number).total(range(len(indexed.tree.sections)))
        for number, indexed in enumerate(collection.documents)
    )
