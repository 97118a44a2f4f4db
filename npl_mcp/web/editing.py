"""A section in a form: saved if the section has not changed since; otherwise the typed text stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from npl_mcp.stores.artifact.comparing import compare
from npl_mcp.web.routing import Data, FormPage
from npl_mcp.web.visits import CallError, Visit

TEMPLATE = "edit.html"

_NOT_KEPT = frozenset("\0\r")
"""Characters that a browser changes in the fields of a form."""


def form(current: Data, yours: str | None = None) -> Data:
    """Return the data of a section's form.

    :param current: the current section: ``section``, ``content``, ``digest``, and for the page ``_action``
        and ``_above``, the names and addresses of the pages above it.
    :param yours: the visitor's text.
    """
    return {
        **current,
        "text": current["content"] if yours is None else yours,
        "can_edit": not _NOT_KEPT & {*current["content"]},
    }


async def saved(
    visit: Visit, read: Callable[[], Awaitable[Data]], gone: Data, write: Callable[[str, str], Awaitable[str]]
) -> str | FormPage:
    """Perform the request of a section's form: a preview or a save.

    :param read: the function that returns the current section.
    :param gone: the data of the form without a section, which was renamed or removed meanwhile.
    :param write: the function that writes a text over the section with a digest, and returns the next page.
    """

    async def read_again() -> Data:
        try:
            return await read()
        except CallError:
            return {**gone, "content": "", "digest": ""}

    digest, yours, seen = (visit.form.get(name, "") for name in ("digest", "text", "seen"))
    if visit.form.get("action") == "preview":
        shown = {**await read_again(), "digest": digest, "content": seen}
        return FormPage(TEMPLATE, {**form(shown, yours), "preview": yours}, 200)
    try:
        return await write(yours, digest)
    except CallError as error:
        current = await read_again()
        data: dict[str, Any] = {**form(current, yours), "message": error.message}
        if current["digest"] == digest:
            return FormPage(TEMPLATE, data, error.status)
        data["meanwhile"] = partial(compare, seen, current["content"])
        data["wrote"] = partial(compare, seen, yours)
        return FormPage(TEMPLATE, data)
