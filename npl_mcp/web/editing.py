"""A section in a form: saved if the section has not changed since; otherwise the typed text stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
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

    :param text: the parameter that names the text with the section, in the path, the form or the query.
    :param home: the address of the list of such texts.
    :param read: the function that returns the section of a text, with ``content`` and ``digest``.
    :param write: the function that writes a content over a section with a digest, and returns the next page.
    """

    text: str
    home: str
    read: Callable[[Visit, str, str], Awaitable[Data]]
    write: Callable[[Visit, str, str, str, str], Awaitable[str]]

    def _about(self, visit: Visit) -> tuple[str, str, Data]:
        """Return the names of the text and of the section, and the data of the page about them."""
        given = {**visit.request.query_params, **visit.form, **visit.request.path_params}
        name = given.get(self.text, "").strip()
        section = (given.get("section") or given.get("selector", "")).strip()
        return name, section, {self.text: name, "section": section, "_above": (self.home, name)}

    async def page(self, visit: Visit) -> Data:
        """Return the current text of a section, for a form."""
        name, section, about = self._about(visit)
        return _form({**about, **await self.read(visit, name, section)})

    async def save(self, visit: Visit) -> str | FormPage:
        """Perform the request of a form: a preview or a save, unless the section has changed since."""
        name, section, about = self._about(visit)
        digest, yours, seen = (visit.form.get(name, "") for name in ("digest", "text", "seen"))
        previews, problem = visit.form.get("action") == "preview", None
        try:
            if not previews:
                return await self.write(visit, name, section, yours, digest)
        except CallError as error:
            problem = error
        current = {**about, "content": "", "digest": ""}
        with suppress(CallError):  # it was renamed or removed meanwhile
            current |= await self.read(visit, name, section)
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
