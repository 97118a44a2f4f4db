"""Content for people: the command line shows it alone, where others send the whole answer.

These tools are called by name and not listed.
"""

from __future__ import annotations

from typing import Annotated

from npl_index.answer.forms import Form
from npl_index.answer.overview import overview
from npl_index.answer.tailoring import TailorRequest
from npl_index.answer.values import Tailored
from npl_index.library.documents import DocumentRef
from npl_mcp.core.app import App
from npl_mcp.core.document_sets import NotIndexedError
from npl_mcp.core.waiting import waits
from npl_mcp.tools.npl import Count, File, Item, Kind, written
from npl_mcp.tools.spec import ToolSpec

MOST_READ = 5_000
"""Documents whose headings a map reads, half a second or so."""

_DEEP = 4


@waits
async def content_tailored(
    app: App,
    context: Annotated[str | None, "The question"] = None,
    topics: Annotated[list[str] | None, "Likely headings"] = None,
    selectors: Annotated[list[str] | None, "Sections wanted anyway"] = None,
    token_budget: Annotated[Count | None, "Most tokens of the content"] = None,
    file: File = None,
    resource_type: Kind = None,
    item: Item = None,
    depth: Annotated[Count | None, "Subsection levels a selected section brings"] = None,
) -> Tailored:
    """Load the sections that a task needs; the budget bounds their text.

    :returns: the answer.
    :raises NPLError: as :func:`~npl_mcp.tools.npl.npl_load_tailored` does.
    """
    ref = DocumentRef.parse(file, resource_type, item)
    request = TailorRequest.parse(
        context=context,
        topics=topics,
        selectors=selectors,
        token_budget=token_budget,
        depth=depth,
        default_budget=app.settings.token_budget,
    )
    return (await written(app, ref, request, Form())).value


@waits
async def content_map(
    app: App, file: File = None, without: Annotated[str | None, "Absolute path of a file to leave out"] = None
) -> str:
    """Show folders, names of documents and rare words of their headings.

    :returns: a map of documents, as Markdown.
    :raises DocumentNotFoundError: there is none.
    :raises NotIndexedError: some are not indexed, and the call has waited enough.
    """

    async def drawn() -> str:
        gathered = await app.gathered(DocumentRef.parse(file))
        if gathered.missing:
            raise NotIndexedError(gathered.missing)
        step = -(-len(gathered.founds) // MOST_READ)
        found: dict[str, list[str]] = {}
        for number, one in enumerate(gathered.founds):
            tree = gathered.collection.documents[number].tree if number % step == 0 else None
            texts = [part.title for part in tree.sections if part.level < _DEEP] if tree else []
            found |= {} if one.absolute == without else {gathered.files[number]: texts}
        return overview(*zip(*sorted(found.items()), strict=True)) if found else ""

    return await app.unchanging(drawn)


TOOLS = (
    ToolSpec(content_tailored, lane="heavy", listed=False),
    ToolSpec(content_map, lane="heavy", listed=False),
)
