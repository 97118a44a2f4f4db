"""The health of a folder of documents, for its maintainers.

The tool is called by name and not listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.app.waiting import waits
from npl_mcp.browsing.health import CHECKS, Defect, examined
from npl_mcp.browsing.tables import arranged
from npl_mcp.stores.base.checks import choice
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.documents import File, Filter, Limit, Offset, Sort

COLUMNS = ("file", "line", "selector", "tokens", "note")
"""Columns of the table of defects."""


@dataclass(frozen=True, slots=True)
class HealthPage:
    """The defects of a folder or file: their numbers, and a page of the defects of one check.

    :param counts: number of defects by check.
    :param checks: titles of the checks, by name.
    :param check: check of the page's defects.
    :param items: defects of the page.
    :param total: number of defects that pass the filter.
    :param limit: maximum number of defects in a page.
    :param offset: number of defects before the page.
    :param searched: number of documents that were read.
    :param documents: number of documents.
    """

    counts: Mapping[str, int]
    checks: Mapping[str, str]
    check: str
    items: Sequence[Defect]
    total: int
    limit: int
    offset: int
    searched: int
    documents: int


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
    found = await app.unchanging(lambda: examined(app, DocumentRef.parse(file)))
    counts = Counter(defect.check for defect in found.defects)
    shown = check or next((name for name in found.checks if counts[name]), "broken")
    rows = [defect for defect in found.defects if defect.check == shown]
    kept = arranged(rows, COLUMNS, sort, filter)
    return HealthPage(
        counts={name: counts[name] for name in found.checks},
        checks=found.checks,
        check=shown,
        items=kept[offset : offset + limit],
        total=len(kept),
        limit=limit,
        offset=offset,
        searched=found.searched,
        documents=found.documents,
    )


TOOLS = (ToolSpec(health_look, lane="heavy", listed=False),)
