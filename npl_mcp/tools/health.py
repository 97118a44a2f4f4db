"""The health of a folder of documents, for its maintainers.

The tool is called by name and not listed.
"""

from __future__ import annotations

from typing import Annotated

from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.app.waiting import waits
from npl_mcp.browsing.health import CHECKS, HealthPage, examined
from npl_mcp.stores.base.checks import choice
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.documents import File, Filter, Limit, Offset, Sort


@waits
async def health_look(
    app: App,
    file: File = None,
    check: Annotated[str | None, "broken, same, long, empty, untitled, fences, orphaned or unused"] = None,
    offset: Offset = 0,
    limit: Limit = 100,
    sort: Sort = "",
    filter: Filter = "",
) -> HealthPage:
    """Show the defects of a folder's documents.

    :param check: check whose defects are shown; by default the first one with defects.
    :returns: the defects of a folder or file.
    :raises DocumentNotFoundError: there is no such file or folder.
    :raises DocumentError: the file cannot be read.
    :raises InvalidRequestError: there is no such check or column.
    """
    if check is not None:
        choice(check, "check", tuple(CHECKS))
    ref = DocumentRef.parse(file)
    return await app.unchanging(lambda: examined(app, ref, check, offset, limit, sort, filter))


TOOLS = (ToolSpec(health_look, lane="heavy", listed=False),)
