"""The map of documents for an agent that does not know them."""

from __future__ import annotations

from npl_index.library.documents import DocumentRef
from npl_index.outline.overview import overview
from npl_mcp.app.context import Context
from npl_mcp.app.document_sets import NotIndexedError

MAX_READ = 5_000
"""Documents whose headings a map reads, in about half a second."""

MAX_LEVEL = 3
"""Level of headings in a map."""


async def document_map(app: Context, file: str | None = None, without: str | None = None) -> str:
    """Return folders, names of documents and rare words of their headings.

    :param file: documents, in the form of ``npl_load_tailored``; by default all.
    :param without: absolute path of a file to leave out.
    :returns: a map of documents, as Markdown.
    :raises DocumentNotFoundError: no file or item has the name.
    :raises NotIndexedError: some files are not indexed, and the time to wait is over.
    """

    def drawn() -> str:
        gathered = app.documents_of(DocumentRef(file))
        if gathered.missing:
            raise NotIndexedError(gathered.missing)
        step = -(-len(gathered.locations) // MAX_READ)
        headings: dict[str, list[str]] = {}
        for number, document in enumerate(gathered.locations):
            tree = gathered.collection.documents[number].tree if number % step == 0 else None
            texts = [part.title for part in tree.sections if part.level <= MAX_LEVEL] if tree else []
            headings |= {} if document.absolute == without else {gathered.files[number]: texts}
        return overview(*zip(*sorted(headings.items()), strict=True)) if headings else ""

    return await app.read(drawn)
