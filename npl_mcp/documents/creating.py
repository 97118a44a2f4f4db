"""New change requests: the caller's input and the text of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from npl_index.errors import InvalidRequestError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.editing import check_closed
from npl_index.markdown.front_matter import new_front_matter, with_line_feeds
from npl_index.selectors.labels import is_visible
from npl_mcp.documents import format as form
from npl_mcp.stores.base import checks

NEW = ("priority", "phaseEpic", "relatedTickets", "dependsOn", "blocks", "assignee", "impactAreas")
"""Fields of a new change request besides its title, in the order of its front matter."""

MAX_CONTENT = 1_000_000
"""Characters of the Markdown of a new change request."""

_TEMPLATES = Path(__file__).resolve().parent.parent / "data" / "change_requests"


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked change request without a number.

    :param kind: type of the change request.
    :param title: title, one line.
    :param values: other fields of the front matter.
    :param content: Markdown below the title; ``None`` stands for the type's template.
    :param made: present time, in the form of :func:`~npl_mcp.documents.format.now`.
    """

    kind: str
    title: str
    values: Mapping[str, str]
    content: str | None
    made: str

    @classmethod
    def parse(cls, kind: str, data: Mapping[str, object]) -> Draft:
        """Check a caller's input.

        :param kind: one of :data:`~npl_mcp.documents.format.TYPES`.
        :param data: ``title``, fields of :data:`NEW`, and ``content`` instead of the template.
        :raises InvalidRequestError: a field is unknown, or its value is invalid.
        :raises MissingRequestError: there is no title.
        """
        for name in data:
            form.choose(name, "data", ("title", *NEW, "content"))
        title = checks.line(_string_of(data, "title") or "", "data.title")
        if not is_visible(title):
            raise checks.invalid("data.title", "has no visible character")
        content = _string_of(data, "content")
        if content is not None and content.strip():
            checks.text(content, "data.content", MAX_CONTENT)
            content = form.without_title(with_line_feeds(content)).strip("\n")
            check_closed(read_blocks(content))
        values = {"priority": form.DEFAULTS["priority"]}
        for name in NEW:
            if data.get(name) is not None:
                values[name] = form.check_field(name, data[name], f"data.{name}")
        return cls(checks.choice(kind, "type", form.TYPES), title, values, content or None, form.now())

    def text(self, key: str) -> str:
        """Return the text of the file."""
        first = {"code": key, "status": form.DEFAULTS["status"], "dateCreated": self.made, "type": self.kind}
        body = self.content or template(self.kind).rstrip("\n")
        front = new_front_matter({**first, **self.values}, bare=form.DATES)
        return f"{front}\n{form.heading_of(self.title)}\n\n{body}\n"

    def headings(self) -> tuple[str, ...] | None:
        """Return the headings of the template; ``None`` if the caller gave content."""
        if self.content is not None:
            return None
        return tuple(line for line in template(self.kind).split("\n") if line.startswith("## "))


@cache
def template(kind: str) -> str:
    """Return a type's template: the Markdown below the title, with a question in each section.

    :param kind: one of :data:`~npl_mcp.documents.format.TYPES`.
    """
    return (_TEMPLATES / f"{kind.lower().replace(' ', '_')}.md").read_text(encoding="utf-8")


def _string_of(data: Mapping[str, object], name: str) -> str | None:
    """Return a field of the input; ``None`` if it is absent.

    :raises InvalidRequestError: the value is not a string.
    """
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequestError(f"data.{name} is not a string", parameter="data", hint="give a string")
    return value
