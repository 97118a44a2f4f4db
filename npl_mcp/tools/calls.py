"""The log of calls, for its page; agents do not see these tools.

A token for some domains shows only calls of their tools. Because calls name files, a token for some folders
shows only the caller's own calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast, get_args

from npl_mcp.app.app import App
from npl_mcp.app.call_reports import identity
from npl_mcp.stores import calls
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import filled
from npl_mcp.stores.calls import KEPT_DAYS, MAX_CALLS, CallFilter, Chosen, LoggedCall, Sort
from npl_mcp.tools.contract.parameters import Name
from npl_mcp.tools.contract.spec import not_listed

Who = Annotated[Name | None, "Only calls of this caller"]
Tool = Annotated[Name | None, "Only calls of this tool"]


@dataclass(frozen=True, slots=True)
class CallList:
    """A page of logged calls, the latest first.

    :param items: calls of the page.
    :param total: number of all calls.
    :param limit: maximum number of calls in a page.
    :param offset: number of calls before the page.
    :param recording: setting of the log: ``off``, ``on`` or ``contexts``.
    :param days: days for which the log has calls.
    :param most: maximum number of calls in the log.
    :param callers: names of all callers.
    :param tools: names of all called tools.
    """

    items: Sequence[LoggedCall]
    total: int
    limit: int
    offset: int
    recording: str
    days: int
    most: int
    callers: Sequence[str]
    tools: Sequence[str]


def calls_list(
    app: App,
    who: Who = None,
    tool: Tool = None,
    chosen: Annotated[Chosen | None, "Only calls of this kind"] = None,
    sort: Annotated[str, "Column, with - before it for the largest value first"] = "-id",
    limit: int | None = None,
    offset: int | None = None,
) -> CallList:
    """List logged calls.

    :returns: a page of logged calls, by default the latest first.
    :raises InvalidRequestError: an argument is invalid.
    """
    column = cast("Sort", checks.choice(sort.removeprefix("-"), "sort", get_args(Sort)))
    seen, part = _visible(app, who, tool, chosen), Slice.parse(limit, offset)
    page: Page[LoggedCall] = part.page((), 0)
    callers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    if app.database.is_made():
        with app.database.read() as tx:
            page = calls.listed(tx, seen, part, column, rising=not sort.startswith("-"))
            callers, tools = calls.callers(tx, _visible(app))
    more = {"recording": app.settings.log_calls, "days": KEPT_DAYS, "most": MAX_CALLS}
    return filled(CallList, page, **more, callers=callers, tools=tools)


def _visible(
    app: App, who: str | None = None, tool: str | None = None, chosen: Chosen | None = None
) -> CallFilter:
    """Return the selection of calls that the caller may see.

    :param who: name of a caller, to select its calls.
    :param tool: name of a tool, to select its calls.
    :param chosen: kind of the calls.
    """
    caller, sight = identity(), app.sight
    owner = caller.name if caller is not None and sight.roots is not None else None
    return CallFilter(sight.domains, tool, owner, who, chosen)


TOOLS = (*not_listed(calls_list),)
