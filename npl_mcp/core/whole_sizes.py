"""How many tokens whole documents have, to say what it saved to load sections of them."""

from __future__ import annotations

from cachetools import TTLCache

from npl_index.answer.values import Tailored
from npl_index.errors import NPLError
from npl_index.library.documents import DocumentRef
from npl_mcp.core.app import App
from npl_mcp.core.calls import Call

_KEPT = 1024
_SECONDS = 30.0


class WholeSizes:
    """Counts documents; a change may be noticed up to half a minute late.

    :param app: has the documents.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._sizes: TTLCache[tuple[str, str], int] = TTLCache(_KEPT, _SECONDS)

    def of(self, call: Call, answer: Tailored) -> int | None:
        """Return the tokens of the documents that an answer came from; ``None`` if one is gone by now."""
        files = {section.file or answer.file for section in answer.sections}
        try:
            app = call.caller.view(self._app)
            return sum(self._tokens(app, file) for file in files)
        except NPLError:
            return None

    def _tokens(self, app: App, file: str) -> int:
        key = (str(app.settings.cwd), file)
        kept = self._sizes.get(key)
        if kept is None:
            collection = app.gather(DocumentRef(file=file)).collection
            _, counts = app.counting(collection)
            kept = self._sizes[key] = sum(
                counts(number).total(range(len(indexed.tree.sections)))
                for number, indexed in enumerate(collection.documents)
            )
        return kept
