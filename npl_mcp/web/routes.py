"""The web pages of a server."""

from __future__ import annotations

from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.web import signing_in
from npl_mcp.web.pages import activity, artifacts, ask, changes, folders, questions, rooms, search, usage
from npl_mcp.web.routing import Site

PAGES = (signing_in, ask, questions, folders, search, usage, activity, rooms, artifacts, changes)
"""Modules that declare pages, in the order of the navigation."""


def site_of(calls: ToolCalls) -> Site:
    """Return the web pages of a server.

    :param calls: the tools, with the application of the server.
    """
    return Site(calls, [page for module in PAGES for page in module.DECLARED])
