"""The first page: the visitor's inbox and the agents at work."""

from __future__ import annotations

import json
from functools import partial
from itertools import chain, zip_longest

from npl_index.errors import NPLError
from npl_index.library.documents import DocumentRef
from npl_mcp.app.context import Context
from npl_mcp.app.waiting import HURRY
from npl_mcp.browsing.places import roots_of
from npl_mcp.config.clients import CLIENTS, NAME
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.pages.activity import at_work
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.visits import Visit

EXAMPLES = 3
MAX_READ = 12
"""Questions that the page offers to a new visitor, and documents whose headings are read for them."""


async def start(visit: Visit) -> Data:
    """Return the visitor's inbox, and the last acts of agents; for a new visitor, examples of questions."""
    waiting: Data = {"inbox": await inbox(visit)}
    if not visit.who and visit.sees("npl"):
        waiting["examples"] = await visit.run("npl", _examples)
    return {
        **waiting,
        "connect": _connecting(visit),
        "places": await visit.run("npl", lambda app: as_dict([*roots_of(app)])) if visit.sees("npl") else [],
        "at_work": await visit.run(None, partial(at_work, visit=visit)),
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


def _examples(app: Context) -> list[str]:
    """Return headings of several documents, in turn, titles last; none while the documents are indexed."""
    try:
        gathered = app.gather(DocumentRef(), HURRY)
        documents = gathered.collection.documents
        spread = range(0, len(documents), -(-len(documents) // MAX_READ))
        headings = [[part.name for part in documents[at].tree.sections if part.level] for at in spread]
        turns = chain(*zip_longest(*(names[1:] for names in headings)), *(names[:1] for names in headings))
    except NPLError:
        return []
    # Headings of three words and more say something alone.
    names = sorted(filter(None, turns), key=lambda name: not 2 < len(name.split()) < 8)
    return list(dict.fromkeys(names))[:EXAMPLES]


def _connecting(visit: Visit) -> list[str]:
    """Return the command that connects Claude Code, and the entry for other clients."""
    url = f"{visit.settings.web_url or str(visit.request.base_url).rstrip('/')}/mcp"
    headers = {"Authorization": "Bearer $NPL_MCP_TOKEN"} if visit.is_signed_in else {}
    commands = (client.connecting(url, headers) for client in CLIENTS)
    entry = {"mcpServers": {NAME: {"type": "http", "url": url, **({"headers": headers} if headers else {})}}}
    return [next(filter(None, commands), ""), json.dumps(entry)]


DECLARED = (WebPage("/", start, "start.html"),)
