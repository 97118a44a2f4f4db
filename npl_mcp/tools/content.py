"""Sections for people: the command line shows the content alone, where others send the whole answer.

These tools are called by name and not listed.
"""

from __future__ import annotations

from typing import Annotated

from npl_index.answer.plain import Plain
from npl_index.answer.tailoring import TailorRequest
from npl_index.answer.values import Tailored
from npl_index.library.documents import DocumentRef
from npl_mcp.core.app import App
from npl_mcp.core.waiting import waits
from npl_mcp.tools.npl import Count, File, Item, Kind, written
from npl_mcp.tools.spec import ToolSpec


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
    return (await written(app, ref, request, Plain())).value


TOOLS = (ToolSpec(content_tailored, lane="heavy", listed=False),)
