"""Search: one box over all content."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from npl_mcp.app.queries import pattern_of, phrases_of, words_of
from npl_mcp.app.waiting import HURRY
from npl_mcp.web.pages.folders import to_document
from npl_mcp.web.rendering import marked, sought
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.visits import Visit, address

SHOWN = 20
"""Hits on a page."""

TITLES = {
    "document": "Documents",
    "message": "Messages",
    "worklog": "Worklogs",
    "artifact": "Artifacts",
    "cr": "Change requests",
}
"""Titles of the kinds of hits."""

PLACES = {
    "message": "/rooms/{room_id}?event={event_id}#event-{event_id}",
    "worklog": "/worklogs/{session_id}?entry={seq}#entry-{seq}",
    "artifact": "/artifacts/{artifact_id}/revisions/{revision}",
    "cr": "/changes/{key}",
}
"""Addresses of hits by their kinds; others are documents."""

_OPERATOR = re.compile(r"""(?<!\S)(?:(kind|path):("[^"]*"|\S+)|-("[^"]+"|[^\W\d_]\w[\w-]*))""")


async def search(visit: Visit) -> Data:
    """Return a page of hits, one row per document; the last word of a query may be a beginning."""
    query, kinds = visit.text("q"), visit.texts("kind")
    words, named = conditions_of(query)
    shown: Data = {"query": query, "_titles": TITLES, "_kinds": [*kinds, *named["kind"]]}
    if not words:
        return {**shown, "items": [], "total": 0}
    asked: dict[str, Any] = {name: named[name] or None for name in ("path", "without")}
    asked |= {"kinds": ",".join(shown["_kinds"]) or None, "seconds": HURRY}
    page = {"limit": visit.number("limit", SHOWN), "offset": visit.number("offset")}
    find = partial(visit.call, "search", **asked, **page)
    result = await find(query=words)
    last = words.split()[-1]
    near = result.get("near", {})
    longer = [word for word in near.get(last, ()) if word.casefold().startswith(last.casefold())]
    if longer:
        words = f"{words.removesuffix(last)}{longer[0]}"
        result = {**await find(query=words), "completed": longer[0]}
        near = result.get("near", {})
    links = {}
    for word in result.get("absent", ()):
        others = {other.casefold(): other for other in near.get(word, ())}.values()
        links[word] = [(other, address("/search", q=query.replace(word, other))) for other in others]
    return {**shown, **result, "_rows": partial(_rows, result["items"], words, query), "_near": links}


def conditions_of(query: str) -> tuple[str, dict[str, list[str]]]:
    """Return the words of a query, and its operators: ``kind:message``, ``path:guides``, ``-word``."""
    named: dict[str, list[str]] = {"kind": [], "path": [], "without": []}
    for name, value, word in _OPERATOR.findall(query):
        named[name or "without"].append((value or word).strip('"'))
    return " ".join(_OPERATOR.sub(" ", query).split()), named


def _rows(hits: Sequence[Mapping[str, Any]], words: str, query: str) -> list[Data]:
    """Return rows of hits, each with the best sections of one document; it runs outside the event loop."""
    terms, exact = sought(words), pattern_of(phrases_of(words) or words_of(words))
    rows: dict[object, Data] = {}
    for number, hit in enumerate(hits):
        key = (hit["kind"], hit["file"]) if hit.get("selector") else number
        more = address("/search", q=f'{query} path:"{hit.get("file")}"', kind=hit["kind"])
        row = rows.setdefault(key, {**hit, "exact": False, "hits": [], "more": more})
        row["exact"] = row["exact"] or bool(exact.search(f"{hit['title']}\n{hit['text']}"))
        shown = {"title": marked(hit["title"], terms), "text": marked(hit["text"], terms), "href": leads(hit)}
        row["hits"].append({**hit, **shown})
    return sorted(rows.values(), key=lambda row: not row["exact"])


def leads(hit: Mapping[str, Any]) -> str:
    """Return the address of a hit."""
    if hit["kind"] not in PLACES:
        return to_document(hit["file"], selector=hit.get("selector"))
    return PLACES[hit["kind"]].format_map({name: quote(str(value)) for name, value in hit.items()})


DECLARED = (WebPage("/search", search, "search.html", "search"),)
