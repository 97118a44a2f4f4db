"""From values to HTML: templates, and safe forms of foreign content in a page."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from npl_mcp.app.lanes import lane
from npl_mcp.web.markdown import markdown, message
from npl_mcp.web.visible import visible
from npl_mcp.web.visits import FORM_ID, FORM_TOKEN, PERSONA, Visit, address

T = TypeVar("T")


async def in_thread(work: Callable[..., T], /, *given: Any, **named: Any) -> T:
    """Return the result of some work, done in a thread outside the event loop, which serves other callers
    meanwhile.
    """
    return await lane("heavy").run(work, *given, **named)


def _shown(value: Any) -> Any:
    """Return a value in the form that templates print."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return visible(value)


def _exact(text: str) -> Markup:
    """Return a text for the field of a form, which sends it back: no character is replaced by a sign."""
    return Markup(escape(text))


def _path(value: object) -> str:
    """Return a text as a part of a path; slashes stay as separators of folders."""
    return quote(str(value), safe="/", errors="replace")


def _when(timestamp: str) -> str:
    """Return a timestamp of a store for readers: UTC, to the second."""
    return timestamp[:19].replace("T", " ")


def _ago(timestamp: str) -> str:
    """Return the age of a timestamp of a store."""
    try:
        then = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except ValueError:
        return timestamp
    seconds = max(0, int((datetime.now(timezone.utc) - then).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "just now"


def _day(timestamp: str) -> str:
    """Return the day of a timestamp, in the same format as the script's."""
    day = datetime.fromisoformat(timestamp[:10])
    return f"{day.day} {day:%B %Y}"


def _number(value: float) -> str:
    """Return a number with commas between thousands."""
    return f"{value:,}"


def _written(value: object) -> str:
    """Return any JSON value for readers."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def _form_fields(visit: Visit) -> Markup:
    """Return the hidden fields of every form."""
    field = Markup('<input type="hidden" name="{}" value="{}">')
    fields = {FORM_TOKEN: visit.form_token, FORM_ID: secrets.token_hex(16)}
    if not visit.identity and visit.who:
        fields[PERSONA] = visit.who
    return Markup("").join(field.format(*one) for one in fields.items())


@cache
def environment() -> Environment:
    """Return the template environment, which escapes every text."""
    made = Environment(
        loader=PackageLoader("npl_mcp.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(
        path=_path,
        when=_when,
        ago=_ago,
        number=_number,
        markdown=markdown,
        message=message,
        day=_day,
        written=_written,
        exact=_exact,
    )
    made.globals.update(form_token=_form_fields, address=address)
    return made


def render(template: str, **values: Any) -> str:
    """Return a page.

    :param template: the name of the template.
    """
    return environment().get_template(template).render(**values)


def fragments(template: str, macro: str, each: Sequence[Sequence[Any]]) -> list[str]:
    """Return parts of a page: the results of a template's macro.

    :param template: the name of the template.
    :param each: the arguments for each part.
    """
    made = getattr(environment().get_template(template).module, macro)
    return [str(made(*values)) for values in each]
