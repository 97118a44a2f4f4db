"""Sessions: all events of one, in chronological order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from starlette.responses import Response

from npl_mcp.stores.base.activity import seconds_of
from npl_mcp.stores.timeline import KINDS
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.web.drawing import lanes
from npl_mcp.web.pages.rooms import affected
from npl_mcp.web.routing import WAIT_SECONDS, Data, Download, Row, Stream, WebPage
from npl_mcp.web.visits import CallError, Visit, address

SHOWN = 100
"""Moments on a page."""

MAX_CHANGES = 20
"""Maximum change requests looked up for a page."""

DOMAINS = dict(zip(KINDS, ("chat", "artifact", "review", "worklog"), strict=True))
"""Kinds of moments, and the domains of the tools behind them."""

TITLES = dict(zip(KINDS, ("Rooms", "Artifacts", "Reviews", "Worklog"), strict=True))

_KEY = re.compile(r"(?<![A-Za-z0-9-])[A-Z][A-Z0-9]{1,4}-[0-9]{1,5}(?![A-Za-z0-9-])")
"""The form of a change request's key."""

_CURSOR = f"(?:{'|'.join(KINDS)}):[0-9]{{1,15}}"
_CURSORS = re.compile(f"{_CURSOR}(?:,{_CURSOR}){{0,3}}")


async def sessions(visit: Visit) -> Data:
    """Return the sessions."""
    status = visit.text("status") or None
    page = await visit.call("session_list", status=status, limit=SHOWN, offset=visit.number("offset"))
    return {**page, "status": status}


async def session(visit: Visit) -> Data:
    """Return a session with a page of its moments."""
    name = visit.path("session")
    seen = [kind for kind in KINDS if visit.sees(DOMAINS[kind])]
    chosen = [kind for kind in visit.texts("kind") if kind in seen]
    until = visit.number("until")
    before = visit.text("before") or (None if until is None else _moment_of(until + 1))
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
    moments, earlier = _latest(parts)
    span = _span(parts, until)
    past = bool(visit.text("before")) or (span is not None and span["at"] < span["high"])
    cursors = _written({kind: part["cursor"] for kind, part in parts.items()})
    return {
        "about": about,
        "kinds": {kind: {"title": TITLES[kind], "shown": kind in chosen or not chosen} for kind in seen},
        "who": visit.text("who"),
        "names": sorted({who for part in parts.values() for who in part["who"]}, key=str.lower),
        "moments": moments,
        "total": sum(part["total"] for part in parts.values()),
        "earlier": earlier,
        "past": past,
        "span": span,
        "changes": await _changes(visit, moments),
        "exportable": all(map(visit.sees, DOMAINS.values())),
        "_lanes": partial(
            lanes, {TITLES[kind]: part["counts"] for kind, part in parts.items()}, found["unit_seconds"]
        ),
        "_rooms": _rooms(about),
        "_news": None
        if past or not parts
        else address(f"/sessions/{name}/news", since=cursors, who=visit.text("who")),
    }


def _rooms(about: Mapping[str, Any]) -> dict[int, str]:
    """Return the names of a session's rooms."""
    return {room["id"]: room["name"] for room in about.get("chat_rooms", ())}


def _merged(parts: Mapping[str, Any]) -> list[Data]:
    """Return moments of all kinds, oldest first."""
    rows = [
        {"kind": kind, "at": one.get("at") or one.get("timestamp") or one["ts"], "of": one}
        for kind, part in parts.items()
        for one in part["items"]
    ]
    return sorted(rows, key=lambda row: (row["at"], KINDS.index(row["kind"]), _id(row["of"])))


def _latest(parts: Mapping[str, Any]) -> tuple[list[Data], str | None]:
    """Return the latest moments of all kinds, oldest first, and the position that separates older ones."""
    rows = _merged(parts)
    # For a kind with more moments than were sent, those before its first one are unknown.
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
    """Return the first and the last moment, and the last displayed one, in seconds."""
    ends = [(part["first"], part["last"]) for part in parts.values() if "first" in part]
    if not ends:
        return None
    first, last = min(one for one, _ in ends), max(one for _, one in ends)
    low = seconds_of(first[:19])
    high = max(seconds_of(last[:19]), low + 1)
    at = high if until is None else min(max(until, low), high)
    return {"first": first, "last": last, "low": low, "high": high, "at": at, "shown": _moment_of(at)}


def _moment_of(seconds: int) -> str:
    """Return a moment in the format of the stores.

    :param seconds: the seconds since 1970; above the maximum of the format, the latest possible moment.
    """
    return datetime.fromtimestamp(min(seconds, 253_402_300_799), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _changes(visit: Visit, moments: Sequence[Data]) -> Data:
    """Return the change requests whose keys the displayed moments name, by key."""
    if not visit.sees("cr"):
        return {}
    found: Data = {}
    asked: set[str] = set()
    for moment in moments:
        keys = dict.fromkeys(_KEY.findall(_text(moment["of"])))
        for key in keys:
            if key not in asked and len(asked) < MAX_CHANGES:
                asked.add(key)
                try:
                    found[key] = await visit.call("get_cr", key=key, mode="metadata")
                except CallError:  # a text in the form of a key
                    continue
        moment["changes"] = [key for key in keys if key in found]
    return found


def _text(one: Mapping[str, Any]) -> str:
    data = one.get("data")
    parts = [one.get("text"), one.get("summary"), one.get("purpose"), one.get("refs")]
    if isinstance(data, dict):
        parts += [data.get("message"), data.get("description")]
    return " ".join(str(part) for part in parts if part)


async def news(visit: Visit, since: str) -> Sequence[Row]:
    """Return the moments of a session after cursors, and the earlier moments that they changed."""
    name = visit.path("session")
    cursors = {kind: at for kind, at in _read(since).items() if visit.sees(DOMAINS[kind])}
    if not cursors:
        raise CallError(f"there is nothing to tell of session {name!r}", ErrorCode.NOT_FOUND)
    found = await visit.call(
        "session_news", session_id=name, who=visit.text("who") or None, wait=WAIT_SECONDS, **cursors
    )
    moments = _merged(found)
    if not moments:
        return []
    about = await visit.call("session_get", session_id=name)
    shown = (name, _rooms(about), await _changes(visit, moments))
    changed = [Row((moment, *shown)) for moment in await _affected(visit, moments)]
    # A browser disconnected on the way gets all of them again, and replaces those that it has.
    *others, last = ((moment, *shown) for moment in moments)
    after = _written({**cursors, **{kind: part["cursor"] for kind, part in found.items()}})
    return [*changed, *(Row(one, since) for one in others), Row(last, after)]


async def _affected(visit: Visit, moments: Sequence[Data]) -> list[Data]:
    """Return earlier moments of rooms, in their current state, that later ones changed."""
    events = [moment["of"] for moment in moments if moment["kind"] == "events"]
    room_of = itemgetter("room_id")
    return [
        {"kind": "events", "of": event}
        for number, of_room in groupby(sorted(events, key=room_of), room_of)
        for event in await affected(visit, number, list(of_room))
    ]


def _written(cursors: Mapping[str, int]) -> str:
    """Return the cursors of all kinds as one text."""
    return ",".join(f"{kind}:{at}" for kind, at in cursors.items())


def _read(text: str) -> dict[str, int]:
    """Return the cursors in a text of :func:`_written`.

    :raises CallError: the text is not from this function.
    """
    if not _CURSORS.fullmatch(text):
        raise CallError(f"since is {text[:64]!r}, which is no place in a session; open its page again")
    return {kind: int(at) for kind, _, at in (part.partition(":") for part in text.split(","))}


async def export(visit: Visit) -> Response:
    """Return a session as a Markdown file."""
    name = visit.path("session")
    text = (await visit.call("session_export", session_id=name))["markdown"]
    # Ids have only letters, digits, dots, hyphens and underscores.
    named = {"Content-Disposition": f'attachment; filename="{name}.md"'}
    return Response(text, 200, named, "text/markdown; charset=utf-8")


DECLARED = (
    WebPage("/sessions", sessions, "sessions.html", "session", "Sessions"),
    Download("/sessions/{session}/export", export),
    Stream("/sessions/{session}/news", news, "timeline.html", "moment"),
    WebPage("/sessions/{session}", session, "session.html", "session"),
)
