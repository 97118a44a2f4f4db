"""Sessions: all that happened in one, in the order of time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from npl_mcp.stores.base.activity import seconds_of
from npl_mcp.stores.timeline import KINDS
from npl_mcp.web.lanes import lanes, moment_of
from npl_mcp.web.routing import Data, Download, Page
from npl_mcp.web.visits import CallError, Visit

SHOWN = 100
"""Moments of a page."""

MOST_CHANGES = 20
"""Change requests that are looked up for a page."""

DOMAINS = dict(zip(KINDS, ("chat", "artifact", "review", "worklog"), strict=True))
"""Kinds of what happens, and the domains whose tools they come from."""

TITLES = dict(zip(KINDS, ("Rooms", "Artifacts", "Reviews", "Worklog"), strict=True))

_KEY = re.compile(r"(?<![A-Za-z0-9-])[A-Z][A-Z0-9]{1,4}-[0-9]{1,5}(?![A-Za-z0-9-])")
"""What is written as the key of a change request."""


async def sessions(visit: Visit) -> Data:
    """Return the sessions."""
    status = visit.text("status") or None
    page = await visit.call("session_list", status=status, limit=SHOWN, offset=visit.number("offset"))
    return {**page, "status": status}


async def session(visit: Visit) -> Data:
    """Return a session with a page of what happened in it."""
    name = visit.path("session")
    seen = [kind for kind in KINDS if visit.sees(DOMAINS[kind])]
    chosen = [kind for kind in visit.texts("kind") if kind in seen]
    until = visit.number("until")
    before = visit.text("before") or (None if until is None else moment_of(until + 1))
    about = await visit.call("session_get", session_id=name)
    found = await visit.call(
        "session_timeline",
        session_id=name,
        kinds=chosen or seen or None,
        who=visit.text("who") or None,
        before=before,
        limit=SHOWN,
    )
    parts = {kind: found[kind] for kind in KINDS if kind in found and kind in seen}
    moments, earlier = _merged(parts)
    span = _span(parts, until)
    return {
        "about": about,
        "kinds": {kind: {"title": TITLES[kind], "shown": kind in chosen or not chosen} for kind in seen},
        "who": visit.text("who"),
        "names": sorted({who for part in parts.values() for who in part["who"]}, key=str.lower),
        "moments": moments,
        "total": sum(part["total"] for part in parts.values()),
        "earlier": earlier,
        "past": bool(visit.text("before")) or (span is not None and span["at"] < span["high"]),
        "span": span,
        "changes": await _changes(visit, moments),
        "exportable": all(map(visit.sees, DOMAINS.values())),
        "_lanes": lanes(
            {TITLES[kind]: part["counts"] for kind, part in parts.items()}, found["unit_seconds"]
        ),
    }


def _merged(parts: Mapping[str, Any]) -> tuple[list[Data], str | None]:
    """Return the latest moments of all kinds, the oldest first, and the place before which others are."""
    rows = [
        {"kind": kind, "at": one.get("at") or one.get("timestamp") or one["ts"], "of": one}
        for kind, part in parts.items()
        for one in part["items"]
    ]
    rows.sort(key=lambda row: (row["at"], KINDS.index(row["kind"]), _id(row["of"])))
    # Of a kind with more than was sent, nothing is known before its first.
    cut = [part["items"][0] for part in parts.values() if part["total"] > len(part["items"])]
    horizon = max((next(at for at, row in enumerate(rows) if row["of"] is one) for one in cut), default=0)
    first = max(horizon, len(rows) - SHOWN)
    shown = rows[first:]
    if not shown or not (first or cut):
        return shown, None
    oldest = shown[0]
    return shown, f"{oldest['at']}~{oldest['kind']}~{_id(oldest['of'])}"


def _id(one: Mapping[str, Any]) -> int:
    return int(one["seq"] if "seq" in one else one["id"])


def _span(parts: Mapping[str, Any], until: int | None) -> Data | None:
    """Return from when to when something happened, and up to when it is shown, in seconds."""
    ends = [(part["first"], part["last"]) for part in parts.values() if "first" in part]
    if not ends:
        return None
    first, last = min(one for one, _ in ends), max(one for _, one in ends)
    low = seconds_of(first[:19])
    high = max(seconds_of(last[:19]), low + 1)
    at = high if until is None else min(max(until, low), high)
    return {"first": first, "last": last, "low": low, "high": high, "at": at, "shown": moment_of(at)}


async def _changes(visit: Visit, moments: Sequence[Data]) -> Data:
    """Return the change requests that something shown names by their keys, by key."""
    if not visit.sees("cr"):
        return {}
    found: Data = {}
    asked: set[str] = set()
    for moment in moments:
        keys = dict.fromkeys(_KEY.findall(_text(moment["of"])))
        for key in keys:
            if key not in asked and len(asked) < MOST_CHANGES:
                asked.add(key)
                try:
                    found[key] = await visit.call("get_cr", key=key, mode="metadata")
                except CallError:  # it only looks like a key
                    continue
        moment["changes"] = [key for key in keys if key in found]
    return found


def _text(one: Mapping[str, Any]) -> str:
    data = one.get("data")
    parts = [one.get("text"), one.get("summary"), one.get("purpose"), one.get("refs")]
    if isinstance(data, dict):
        parts += [data.get("message"), data.get("description")]
    return " ".join(str(part) for part in parts if part)


async def export(visit: Visit) -> Response:
    """Return a session as a Markdown file."""
    name = visit.path("session")
    text = (await visit.call("session_export", session_id=name))["markdown"]
    # Ids have letters, digits, dots, hyphens and underscores alone.
    named = {"Content-Disposition": f'attachment; filename="{name}.md"'}
    return Response(text, 200, named, "text/markdown; charset=utf-8")


DECLARED = (
    Page("/sessions", sessions, "sessions.html", "session", "Sessions"),
    Download("/sessions/{session}/export", export),
    Page("/sessions/{session}", session, "session.html", "session"),
)
