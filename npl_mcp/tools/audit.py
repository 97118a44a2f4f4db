"""Answers with the state of every section, for people.

The page Ask calls this tool by name.
"""

from __future__ import annotations

import time
from typing import Annotated

from npl_index.answer.auditing import Audit, audit
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.tailoring import TailorRequest
from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.app.waiting import limit_wait, waits
from npl_mcp.browsing.places import HURRY
from npl_mcp.tools.contract.responses import ENVELOPE
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.npl import Count, File, Format, companions


@waits
async def npl_audit(
    app: App,
    context: Annotated[str | None, "The question"] = None,
    topics: list[str] | None = None,
    selectors: list[str] | None = None,
    token_budget: Count | None = None,
    file: File = None,
    format: Format = None,
    section: Annotated[str | None, "Selector of a section to show whole"] = None,
) -> Audit:
    """Answer like npl_load_tailored, and show which sections are taken, cut or left out.

    :returns: an answer with the sections it was chosen from.
    :raises NPLError: see :func:`~npl_mcp.tools.npl.npl_load_tailored`.
    """
    request = TailorRequest.parse(context, topics, selectors, token_budget, app.settings.token_budget)
    # Pages show partial results instead of waiting.
    return await limit_wait(_audited(app, file, request, section, format), time.monotonic(), HURRY)


async def _audited(
    app: App, file: str | None, request: TailorRequest, section: str | None, format: str | None
) -> Audit:
    form: Form = Markdown() if app.form(format) == "markdown" else Json(*ENVELOPE)

    async def answer() -> Audit:
        documents, weights = await app.gathered(DocumentRef(file), request.selectors), app.settings.weights
        return audit(request, section, documents, form, weights=weights, companions=companions(app))

    return await app.unchanging(answer)


TOOLS = (ToolSpec(npl_audit, lane="heavy", listed=False),)
