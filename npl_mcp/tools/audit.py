"""Answers with the fate of every section, for people.

The page Ask calls these tools by name. Clients that show pages in a chat window list ``npl_ask``.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

from annotated_types import Ge, Le

from npl_index.answer.auditing import Audit, AuditRequest, audit
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.tailoring import TailorRequest
from npl_index.answer.values import Written
from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.app.waiting import limit_wait, waits
from npl_mcp.browsing.places import HURRY
from npl_mcp.tools.contract.responses import ENVELOPE
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.npl import Count, File, Format, Item, Kind, companions

MAX_ROWS = 1_000
"""Rows of an answer; the page Ask shows 200."""

Rows = Annotated[int, Ge(1), Le(MAX_ROWS)]


@waits
async def npl_audit(
    app: App,
    context: Annotated[str | None, "The question"] = None,
    topics: list[str] | None = None,
    selectors: list[str] | None = None,
    token_budget: Count | None = None,
    file: File = None,
    resource_type: Kind = None,
    item: Item = None,
    depth: Count | None = None,
    exclude: list[str] | None = None,
    format: Format = None,
    open: Annotated[list[str] | None, "Files with visible sections, besides those with a match"] = None,
    matching: Annotated[bool, "Only files with a match"] = False,
    section: Annotated[str | None, "Selector of a section to show whole"] = None,
    matches: Annotated[bool, "List all matching sections as well"] = False,
    offset: Count = 0,
    limit: Rows = 200,
) -> Audit:
    """Answer like npl_load_tailored, with the fate of every section.

    :returns: an answer with the sections it was chosen from.
    :raises NPLError: see :func:`~npl_mcp.tools.npl.npl_load_tailored`.
    """
    ref = DocumentRef(file, resource_type, item)
    budgets = token_budget, app.settings.token_budget
    request = TailorRequest.parse(context, topics, selectors, *budgets, depth=depth, exclude=exclude)
    asked = AuditRequest(tuple(open or ()), matching, section, offset, limit, matches)
    # A person sees what is ready.
    return await limit_wait(_audited(app, ref, request, asked, format), time.monotonic(), HURRY)


async def _audited(
    app: App, ref: DocumentRef, request: TailorRequest, asked: AuditRequest, format: str | None
) -> Audit:
    forms: dict[str, Form] = {"json": Json(*ENVELOPE), "markdown": Markdown()}

    async def answer() -> Audit:
        documents = await app.gathered(ref, request.selectors, request.exclude)
        wanted, weights = replace(request, exclude=documents.exclude), app.settings.weights
        form, known = app.form(format), companions(app)
        return audit(wanted, asked, documents, forms, form, weights=weights, companions=known)

    return await app.unchanging(answer)


@waits
async def npl_ask(
    app: App,
    context: Annotated[str | None, "The question"] = None,
    topics: list[str] | None = None,
    selectors: list[str] | None = None,
    token_budget: Count | None = None,
    file: File = None,
    format: Format = None,
    open: Annotated[list[str] | None, "Files to unfold"] = None,
    matching: bool = False,
    section: Annotated[str | None, "Selector of a section to show whole"] = None,
    offset: Count = 0,
    view: Annotated[str | None, "answer, tree, markdown or json"] = None,  # noqa: ARG001 (the page reads it)
) -> Written[Audit]:
    """Load the sections a task needs, as npl_load_tailored does, and show a person what was taken and left.

    :param matching: only files with a match.
    :returns: an answer with the fate of every section.
    :raises NPLError: see :func:`~npl_mcp.tools.npl.npl_load_tailored`.
    """
    ref = DocumentRef(file)
    default = app.settings.token_budget
    request = TailorRequest.parse(context, topics, selectors, token_budget, default)
    asked = AuditRequest(tuple(open or ()), matching, section, offset, matches=True)
    shown = await _audited(app, ref, request, asked, format)
    return Written(shown, shown.answers[shown.form].text)


TOOLS = (
    ToolSpec(npl_audit, lane="heavy", listed=False),
    ToolSpec(npl_ask, lane="heavy", app="ui://npl/ask", title="Ask"),
)
