"""Agents, and filters by their front matter and text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.items.loading import text_of
from npl_index.library.documents import Library
from npl_index.library.roots import LocalPath
from npl_index.markdown.front_matter import front_matter


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """An agent in a list.

    :param name: its item name.
    :param location: path of its file, absolute or below the working directory.
    :param fields: its front matter, scalars as text; empty if the file cannot be read.
    :param text: text of the whole file, on request; ``""`` if the file cannot be read.
    """

    name: str
    location: Annotated[str, LocalPath]
    fields: Mapping[str, object]
    text: str | None


def list_agents(library: Library) -> tuple[AgentInfo, ...]:
    """Return all agents, sorted by name; among equal names the first root wins.

    A file that cannot be read is listed by its name alone.
    """
    agents = []
    for name, file in sorted(library.find_items(library.catalog.kind("agent"), "**").items()):
        try:
            text = text_of(library.read(file))
        except NPLError:
            text = ""
        agents.append(AgentInfo(name, file.absolute, front_matter(text), text))
    return tuple(agents)


def search_expression(text: str) -> re.Pattern[str]:
    """Compile a regular expression that ignores case.

    :raises InvalidRequestError: the text is not a valid regular expression.
    """
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise InvalidRequestError(f"Invalid regex pattern: {error}", parameter="search") from None


def field_condition(text: str) -> tuple[str, str]:
    """Split ``field:value`` into field and value.

    :raises InvalidRequestError: there is no colon.
    """
    name, colon, value = text.partition(":")
    if not colon:
        problem = f"Invalid filter format. Use field:value (got: {text})"
        raise InvalidRequestError(problem, parameter="filter-meta")
    return name, value


def has_field(fields: Mapping[str, object], condition: tuple[str, str]) -> bool:
    """Return whether a field of the front matter has a value; case is ignored."""
    name, value = condition
    return name in fields and str(fields[name]).lower() == value.lower()


def in_category(fields: Mapping[str, object], category: str) -> bool:
    """Return whether the list ``categories`` contains a category; a single text may contain it as a part."""
    categories = fields.get("categories", ())
    if isinstance(categories, str):
        return category.lower() in categories.lower()
    listed: Iterable[object] = categories if isinstance(categories, list | tuple) else ()
    return category.lower() in {str(value).lower() for value in listed}
