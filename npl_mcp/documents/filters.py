"""Filters of change requests by the values of their fields."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from npl_index.markdown.front_matter import folded_value
from npl_mcp.documents.format import PRIORITIES, STATUSES, TYPES, choose
from npl_mcp.documents.tickets import Ticket
from npl_mcp.stores.base import checks

DEFINED: Mapping[str, tuple[str, ...]] = {"status": STATUSES, "type": TYPES, "priority": PRIORITIES}
FACETS = (*DEFINED, "assignee", "phaseEpic")
"""Fields that a filter may name."""

_EXAMPLE = 'e.g. {"priority": ["Low", "Medium"]}'


def matching(tickets: Iterable[Ticket], filters: Mapping[str, object]) -> list[Ticket]:
    """Return the change requests that have, in each field, one of its values; case does not count.

    :param filters: one value or a list of values by field.
    :raises InvalidRequestError: a field is unknown; a value is neither a string nor a list of strings; or a
        status, type or priority is neither defined nor in use.
    """
    kept = every = list(tickets)
    for name, value in filters.items():
        values = [value] if isinstance(value, str) else value
        choose(name, "filters", FACETS)
        if (
            not isinstance(values, Sequence)
            or not values
            or not all(isinstance(part, str) for part in values)
        ):
            problem = f"has neither a string nor a list of strings as {name}"
            raise checks.invalid("filters", problem, _EXAMPLE)
        wanted = set(map(_folded, values))
        known = dict.fromkeys((*DEFINED.get(name, ()), *sorted({ticket.text(name) for ticket in every})))
        if name in DEFINED and (unknown := wanted.difference(map(_folded, known))):
            hint = f"use one or several of {checks.name_list(list(known))}; {_EXAMPLE}"
            raise checks.invalid("filters", f"has {min(unknown)!r}, which is not a known {name}", hint)
        kept = [ticket for ticket in kept if _folded(ticket.text(name)) in wanted]
    return kept


def _folded(text: str) -> str:
    return folded_value(unicodedata.normalize("NFC", text))
