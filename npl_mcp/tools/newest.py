"""What was said and made last, for the page that people begin with.

This tool is called by name and not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from npl_mcp.core.app import App
from npl_mcp.core.places import Crumb, places_of
from npl_mcp.core.searching import Hit, newest
from npl_mcp.tools.search import LARGEST_PAGE, seen
from npl_mcp.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class Newest:
    """What is new.

    :param items: the newest of each kind, newest first.
    :param kinds: what the caller may search.
    :param places: roots and libraries.
    """

    items: tuple[Hit, ...]
    kinds: tuple[str, ...]
    places: tuple[Crumb, ...]


def search_newest(
    app: App, limit: Annotated[int, Interval(ge=1, le=LARGEST_PAGE), "Of each kind"] = 5
) -> Newest:
    """Show the newest messages, worklog entries and artifacts.

    :returns: what is new.
    :raises DatabaseError: the database cannot be used.
    """
    kinds = seen(app)
    places = (Crumb(name, address) for _, name, address in places_of(app))
    return Newest(tuple(newest(app, kinds, limit)), kinds, tuple(places) if "document" in kinds else ())


TOOLS = (ToolSpec(search_newest, listed=False),)
