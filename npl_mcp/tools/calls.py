"""The log of calls, for the page that shows it; agents are not shown these tools.

Who has a token for some domains sees the calls of their tools. Calls name files, so who has one for some
folders or libraries sees their own calls alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated

from npl_mcp.core.app import App
from npl_mcp.core.calls import identity
from npl_mcp.stores.base.paging import Slice
from npl_mcp.stores.base.values import filled
from npl_mcp.stores.calls import KEPT_DAYS, MOST_CALLS, CallEntry, Figures, Seen, Span
from npl_mcp.tools.parameters import Name
from npl_mcp.tools.spec import ToolSpec

Who = Annotated[Name | None, "Caller"]
Tool = Annotated[Name | None, "Name"]


@dataclass(frozen=True, slots=True)
class CallList:
    """Calls, the latest first.

    :param items: the calls.
    :param total: how many there are.
    :param limit: most of a page.
    :param offset: those left out before the first.
    :param recording: whether calls are being logged: ``off``, ``on`` or ``contexts``.
    :param days: how long they are kept.
    :param most: how many are kept.
    """

    items: Sequence[CallEntry]
    total: int
    limit: int
    offset: int
    recording: str
    days: int
    most: int


@dataclass(frozen=True, slots=True)
class CallFigures:
    """Sums over calls.

    :param total: over all of them.
    :param spans: over those of each hour or day, by its name.
    :param callers: who called.
    :param tools: what was called.
    """

    total: Figures
    spans: Mapping[str, Figures]
    callers: tuple[str, ...]
    tools: tuple[str, ...]


def calls_list(
    app: App, who: Who = None, tool: Tool = None, limit: int | None = None, offset: int | None = None
) -> CallList:
    """List logged calls, the latest first.

    :returns: calls, the latest first.
    :raises InvalidRequestError: an argument cannot be used.
    """
    page = app.stores.calls.list(_seen(app, who, tool), Slice.parse(limit, offset))
    return filled(CallList, page, recording=app.settings.log_calls, days=KEPT_DAYS, most=MOST_CALLS)


def calls_figures(app: App, who: Who = None, tool: Tool = None, span: Span = "day") -> CallFigures:
    """Sum up logged calls by day or hour.

    :returns: sums over calls.
    :raises InvalidRequestError: an argument cannot be used.
    """
    seen = _seen(app, who, tool)
    spans = app.stores.calls.figures(seen, span)
    names = [field.name for field in fields(Figures)]
    total = Figures(**{name: sum(getattr(one, name) for one in spans.values()) for name in names})
    return CallFigures(total, spans, *app.stores.calls.callers(_seen(app, None, None)))


def _seen(app: App, who: str | None, tool: str | None) -> Seen:
    """Return which calls somebody looks at, of those they may see."""
    caller, sight = identity(), app.sight
    limited = sight.roots is not None or sight.libraries is not None
    owner = caller.name if caller is not None and limited else None
    return Seen(sight.domains, tool, owner, who)


TOOLS = (ToolSpec(calls_list, listed=False), ToolSpec(calls_figures, listed=False))
