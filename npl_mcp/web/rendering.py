"""From values to HTML: templates, and safe forms of foreign content in a page."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Collection
from datetime import datetime, timezone
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from npl_index.ranking.analysis import terms as terms_of
from npl_mcp.app.lanes import lane
from npl_mcp.tools.contract.responses import sendable
from npl_mcp.web.markdown import markdown, message, visible
from npl_mcp.web.visits import FORM_ID, FORM_TOKEN, PERSONA, Visit, address

T = TypeVar("T")

_WORD = re.compile(r"[\w-]{2,}")
_MIN_TERM = 4
"""Minimum characters of a term that also matches within a longer word."""


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


def _time(timestamp: str) -> str:
    """Return the element of a timestamp of a store, with its age as text."""
    try:
        then = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except ValueError:
        return timestamp
    seconds = max(0, int((datetime.now(timezone.utc) - then).total_seconds()))
    units = (("d", 86_400), ("h", 3_600), ("min", 60))
    ages = (f"{seconds // length} {unit} ago" for unit, length in units if seconds >= length)
    # HTML allows three decimals at most.
    moment, age = timestamp[:19], next(ages, "just now")
    element = Markup('<time datetime="{}Z" title="{} UTC">{}</time>')
    return element.format(moment, moment.replace("T", " "), age)


def _day(timestamp: str, short: bool = False) -> str:
    """Return the day of a timestamp, in the same format as the script's; a short one has no year."""
    day = datetime.fromisoformat(timestamp[:10])
    return f"{day.day} {day:%b}" if short else f"{day.day} {day:%B %Y}"


def _form_fields(visit: Visit) -> Markup:
    """Return the hidden fields of every form."""
    field = Markup('<input type="hidden" name="{}" value="{}">')
    fields = {FORM_TOKEN: visit.form_token, FORM_ID: secrets.token_hex(16)}
    if not visit.identity and visit.who:
        fields[PERSONA] = visit.who
    return Markup("").join(field.format(*item) for item in fields.items())


def sought(*texts: str) -> frozenset[str]:
    """Return the terms of texts."""
    return frozenset(term for text in texts for term in terms_of(text))


def marked(text: str, terms: Collection[str]) -> Markup:
    """Return a text with marks at the words that equal a term, or contain a long one."""
    parts, last = [], 0
    long = [term for term in terms if len(term) >= _MIN_TERM]
    for match in _WORD.finditer(text):
        word = match[0]
        if any(term in terms for term in terms_of(word)) or any(term in word.lower() for term in long):
            between = visible(text[last : match.start()])
            parts.append(Markup("{}<mark>{}</mark>").format(between, word))
            last = match.end()
    return Markup("").join([*parts, escape(visible(text[last:]))])


@cache
def environment() -> Environment:
    """Return the template environment, which escapes every text."""
    result = Environment(
        loader=PackageLoader("npl_mcp.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    result.filters.update(
        markdown=markdown,
        message=message,
        time=_time,
        day=_day,
        when=lambda timestamp: timestamp[:19].replace("T", " "),
        number="{:,}".format,
        # Any JSON value, for readers.
        written=lambda value: json.dumps(value, ensure_ascii=False, indent=2),
        # A part of a path; slashes stay as separators of folders.
        path=lambda value: quote(str(value), safe="/", errors="replace"),
        # A text for the field of a form, which sends it back: no character is replaced by a sign.
        exact=lambda text: Markup(escape(text)),
    )
    result.globals.update(form_token=_form_fields, address=address)
    return result


def render(template: str, **values: Any) -> str:
    """Return a page.

    :param template: the name of the template.
    """
    return sendable(environment().get_template(template).render(**values))
