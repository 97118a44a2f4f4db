"""A section in a form: written if it is still what the form showed; else nothing typed is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from npl_mcp.web.differences import differences
from npl_mcp.web.routing import Data, Shown
from npl_mcp.web.visits import CallError, Visit

TEMPLATE = "edit.html"

_NOT_KEPT = frozenset("\0\r")
"""Characters that a browser changes in what a form holds."""


def form(found: Data, yours: str | None = None, preview: str | None = None) -> Data:
    """Return what the form of a section shows.

    :param found: the section as it is now: ``section``, ``content``, ``digest``, and for the page ``_action``
        and ``_above``, names and addresses of the pages above it.
    :param yours: what somebody wrote instead.
    :param preview: what they want to see as readers would.
    """
    return {
        **found,
        "text": found["content"] if yours is None else yours,
        "can_edit": not _NOT_KEPT & {*found["content"]},
        "message": None,
        "meanwhile": None,
        "wrote": None,
        "preview": preview,
    }


async def saved(
    visit: Visit,
    read: Callable[[], Awaitable[Data]],
    write: Callable[[str, str], Awaitable[str]],
) -> str | Shown:
    """Do what the form of a section asks for.

    :param read: returns the section as it is now.
    :param write: writes a text where the section has a digest, and returns the page to go to.
    """
    digest, yours, seen = (visit.form.get(name, "") for name in ("digest", "text", "seen"))
    if visit.form.get("action") == "preview":
        found = {**await read(), "digest": digest, "content": seen}
        return Shown(TEMPLATE, form(found, yours, yours), 200)
    try:
        return await write(yours, digest)
    except CallError as error:
        found = await read()
        data: dict[str, Any] = {**form(found, yours), "message": error.message}
        if found["digest"] == digest:
            return Shown(TEMPLATE, data, error.status)
        data["meanwhile"] = partial(differences, seen, found["content"])
        data["wrote"] = partial(differences, seen, yours)
        return Shown(TEMPLATE, data)
