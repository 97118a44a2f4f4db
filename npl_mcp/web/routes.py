"""The routes of all pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.web import signing_in
from npl_mcp.web.browsers import STATIC
from npl_mcp.web.pages import (
    activity,
    artifacts,
    ask,
    changes,
    folders,
    questions,
    rooms,
    search,
    start,
    usage,
)
from npl_mcp.web.routing import COMPRESSED, Site


class _Static(StaticFiles):
    """The style sheet, the script and the icon; browsers revalidate them on each use."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        """Return a file with the header for that."""
        response = super().file_response(*given, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response


PAGES = (signing_in, start, ask, questions, folders, search, usage, activity, rooms, artifacts, changes)
"""Modules that declare pages, in the order of the navigation."""


def site_of(calls: ToolCalls) -> Site:
    """Return the web pages of a server.

    :param calls: the tools, with the application of the server.
    """
    return Site(calls, [page for module in PAGES for page in module.DECLARED])


def static_files() -> BaseRoute:
    """Return the route of the static files."""
    files = _Static(directory=Path(__file__).parent / "static")
    return Mount(STATIC.rstrip("/"), files, middleware=[COMPRESSED])
