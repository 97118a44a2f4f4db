"""How many tokens whole documents have, to say what it saved to load sections of them."""

from __future__ import annotations

from cachetools.func import ttl_cache

from npl_index.answer.values import Tailored
from npl_index.errors import NPLError
from npl_index.library.documents import DocumentRef
from npl_mcp.core.app import App
from npl_mcp.core.calls import Call

_KEPT = 1024
_SECONDS = 30.0


def whole_size(app: App, call: Call, answer: Tailored) -> int | None:
    """Return the tokens of the documents that an answer came from; ``None`` if one is gone by now.

    A change may be noticed up to half a minute late.

    :param app: has the documents.
    """
    files = {section.file or answer.file for section in answer.sections}
    try:
        seen = call.caller.view(app)
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
