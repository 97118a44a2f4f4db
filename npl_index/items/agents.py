"""Filters of agents by front matter and text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from npl_index.errors import InvalidRequestError


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
