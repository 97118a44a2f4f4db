"""A section in a form: saved if the section has not changed since; otherwise the typed text stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from npl_mcp.stores.artifact.comparing import compare
from npl_mcp.web.routing import Data, FormPage
from npl_mcp.web.visits import CallError, Visit

TEMPLATE = "edit.html"

_NOT_KEPT = frozenset("\0\r")
"""Characters that a browser changes in the fields of a form."""


@dataclass(frozen=True, slots=True)
class Editor:
    """The page and the action of a section's form.

    :param about: the function that returns the fields of the form that name the section, and for the page
        ``_action`` and ``_above``, the names and addresses of the pages above it.
    :param read: the function that returns the current section with ``content`` and ``digest``.
    :param write: the function that writes a text over the section with a digest, and returns the next page.
    """

    about: Callable[[Visit], Data]
    read: Callable[[Visit, Data], Awaitable[Data]]
    write: Callable[[Visit, Data, str, str], Awaitable[str]]

    async def page(self, visit: Visit) -> Data:
        """Return the current text of a section, for a form."""
        about = self.about(visit)
        return _form({**about, **await self.read(visit, about)})

    async def save(self, visit: Visit) -> str | FormPage:
        """Perform the request of a form: a preview or a save, unless the section has changed since."""
        about = self.about(visit)
        digest, yours, seen = (visit.form.get(name, "") for name in ("digest", "text", "seen"))
        previews, problem = visit.form.get("action") == "preview", None
        try:
            if not previews:
                return await self.write(visit, about, yours, digest)
        except CallError as error:
            problem = error
        try:
            current = {**about, **await self.read(visit, about)}
        except CallError:  # it was renamed or removed meanwhile
            current = {**about, "content": "", "digest": ""}
        if problem is None:
            shown = _form({**current, "digest": digest, "content": seen}, yours)
            return FormPage(TEMPLATE, {**shown, "preview": yours}, 200)
        data = {**_form(current, yours), "message": problem.message}
        if current["digest"] == digest:
            return FormPage(TEMPLATE, data, problem.code.status)
        meanwhile, wrote = partial(compare, seen, current["content"]), partial(compare, seen, yours)
        return FormPage(TEMPLATE, {**data, "meanwhile": meanwhile, "wrote": wrote})


def _form(current: Data, yours: str | None = None) -> Data:
    text = current["content"] if yours is None else yours
    return {**current, "text": text, "can_edit": not _NOT_KEPT & {*current["content"]}}
