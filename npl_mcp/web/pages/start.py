"""The first page: the visitor's inbox and the agents at work."""

from __future__ import annotations

import json

from npl_mcp.browsing.places import roots_of
from npl_mcp.config.clients import CLIENTS, NAME
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.pages.activity import at_work
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.visits import Visit


async def start(visit: Visit) -> Data:
    """Return the visitor's inbox, and the last acts of agents; a new visitor is told what to do."""
    return {
        "inbox": await inbox(visit),
        "new": not visit.who and visit.sees("npl"),
        "connect": _connecting(visit),
        "places": await visit.run(lambda app: as_dict([*roots_of(app)])) if visit.sees("npl") else [],
        "at_work": await visit.run(at_work, visit),
    }


async def inbox(visit: Visit) -> Data:
    """Return the visitor's inbox: notifications, todos, and open reviews of the visitor."""
    who = visit.who
    waiting: Data = {"notifications": None, "todos": [], "reviews": []}
    if who and visit.sees("chat") and (await visit.call("chat_list_rooms", persona=who, limit=1))["total"]:
        waiting["notifications"] = await visit.call("chat_get_notifications", persona=who, limit=20)
        todos = await visit.call("chat_list_todos", persona=who, filter="mine", limit=20)
        waiting["todos"] = todos["items"]
    if who and visit.sees("review"):
        reviews = await visit.call("review_list", reviewer_persona=who, status="in_progress", limit=20)
        waiting["reviews"] = reviews["items"]
    return waiting


def _connecting(visit: Visit) -> list[str]:
    """Return the command that connects Claude Code, and the entry for other clients."""
    url = f"{visit.settings.web_url or str(visit.request.base_url).rstrip('/')}/mcp"
    headers = {"Authorization": "Bearer $NPL_MCP_TOKEN"} if visit.is_signed_in else {}
    commands = (client.connecting(url, headers) for client in CLIENTS)
    entry = {"type": "http", "url": url} | ({"headers": headers} if headers else {})
    return [next(filter(None, commands), ""), json.dumps({"mcpServers": {NAME: entry}})]


DECLARED = (WebPage("/", start, "start.html"),)
