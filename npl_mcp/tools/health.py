"""The health of a folder of documents, for people who keep it.

The tool is called by name and not listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from npl_index.library.documents import DocumentRef
from npl_mcp.core.app import App
from npl_mcp.core.health import CHECKS, Finding, examined
from npl_mcp.core.tables import arranged
from npl_mcp.core.waiting import waits
from npl_mcp.stores.base.checks import choice
from npl_mcp.tools.documents import File, Filter, Limit, Offset, Sort
from npl_mcp.tools.spec import ToolSpec

COLUMNS = ("file", "line", "selector", "tokens", "note")
"""Of a finding."""


@dataclass(frozen=True, slots=True)
class HealthPage:
    """Defects of a folder or file, and a page of those of one check.

    :param counts: how many there are, by check.
    :param checks: titles of the checks that were made.
    :param check: whose defects the page has.
    :param items: a page of them.
    :param total: how many pass the filter.
    :param limit: of a page.
    :param offset: of this page.
    :param searched: documents that were read.
    :param documents: how many there are.
    """

    counts: Mapping[str, int]
    checks: Mapping[str, str]
    check: str
    items: Sequence[Finding]
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
    """Show what is wrong with the documents of a folder.

    :param check: whose defects are shown; by default the first that found some.
    :returns: defects of a folder.
    :raises DocumentNotFoundError: there is no such file or folder.
    :raises DocumentError: the file cannot be used.
    :raises InvalidRequestError: there is no such check or column.
    """
    if check is not None:
        choice(check, "check", tuple(CHECKS))
    found = await app.unchanging(lambda: examined(app, DocumentRef.parse(file)))
    counts = Counter(one.check for one in found.findings)
    shown = check or next((name for name in found.checks if counts[name]), "broken")
    rows = [one for one in found.findings if one.check == shown]
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
