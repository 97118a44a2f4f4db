"""Filters of change requests by the values of their fields."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from npl_index.errors import InvalidRequestError
from npl_mcp.documents.format import PRIORITIES, STATUSES, TYPES, choose
from npl_mcp.documents.tickets import Ticket
from npl_mcp.stores.base import checks

KNOWN = ("status", "type", "priority", "assignee", "phaseEpic", "relatedTickets", "dependsOn", "blocks")
DEFINED: Mapping[str, tuple[str, ...]] = {"status": STATUSES, "type": TYPES, "priority": PRIORITIES}
FACETS = KNOWN[:5]
"""Fields with lists of values to choose from on the board."""

_RANGE = "dateRange"
_MAX_VALUES = 64
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d(?![\d-]).*)?)?$")


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on fields: each field must have one of its values; case does not count.

    :param wanted: names of fields with their accepted values, case-folded.
    :param since: earliest ``dateCreated``, or empty.
    :param until: latest ``dateCreated``, or empty.
    """

    wanted: tuple[tuple[str, frozenset[str]], ...] = ()
    since: str = ""
    until: str = ""

    @classmethod
    def parse(cls, given: Mapping[str, object], parameter: str) -> Filters:
        """Read the filters of a tool call.

        :param given: one value or a list of values by field; ``dateRange`` with ``start`` and ``end``.
        :param parameter: name of the tool's parameter, for messages.
        :raises InvalidRequestError: a field is unknown, or a value is neither a string nor a list of strings.
        """
        wanted, since, until = [], "", ""
        for name, value in given.items():
            if name == _RANGE:
                since, until = _date_range(value, f"{parameter}.{name}")
                continue
            choose(name, parameter, (*KNOWN, _RANGE))
            values = [value] if isinstance(value, str) else value
            if not isinstance(values, Sequence) or not 0 < len(values) <= _MAX_VALUES:
                problem = f"{parameter}.{name} is neither a string nor a list of 1 to {_MAX_VALUES}"
                hint = f"give one value, or several: {_example(name)}"
                raise InvalidRequestError(problem, parameter=parameter, hint=hint)
            folded = frozenset(_fold(_short_string(part, f"{parameter}.{name}")) for part in values)
            wanted.append((name, folded))
        return cls(tuple(wanted), since, until)

    def check(self, tickets: Iterable[Ticket], parameter: str) -> None:
        """Refuse a status, type or priority that is neither defined nor in use.

        :param tickets: all change requests.
        :param parameter: name of the tool's parameter, for messages.
        :raises InvalidRequestError: a value is unknown; the hint names the known values.
        """
        for name, values in self.wanted:
            if name not in DEFINED:
                continue
            known = DEFINED[name]
            present = {_fold(ticket.text(name)): ticket.text(name) for ticket in tickets}
            unknown = values - {_fold(value) for value in known} - present.keys()
            if unknown:
                others = sorted(set(present.values()) - set(known))
                raise InvalidRequestError(
                    f"{min(unknown)!r} is not a known {name}",
                    parameter=parameter,
                    hint=f"use one or several of {checks.some((*known, *others))}: {_example(name)}",
                )

    def fit(self, ticket: Ticket) -> bool:
        """Return whether a change request passes."""
        if not all(_field_values(ticket, name) & values for name, values in self.wanted):
            return False
        if not self.since and not self.until:
            return True
        made = ticket.text("dateCreated")
        return bool(made) and self.since <= made and (not self.until or made[: len(self.until)] <= self.until)


def _field_values(ticket: Ticket, name: str) -> frozenset[str]:
    """Return a field's value and the entries of a list in it, folded."""
    text = _fold(ticket.text(name))
    return frozenset((text, *(part.strip() for part in text.split(","))))


def _fold(text: str) -> str:
    """Return a value in the form for comparisons: NFC, without case and outer blanks."""
    return unicodedata.normalize("NFC", text.strip().casefold())


def _example(name: str) -> str:
    """Return an example of several values, as a JSON list."""
    return json.dumps(DEFINED.get(name, ("one", "other"))[:2])


def _date_range(given: object, parameter: str) -> tuple[str, str]:
    """Read the first and the last date of a range, or the beginnings of dates; both may be missing."""
    if not isinstance(given, Mapping) or given.keys() - {"start", "end"}:
        problem = f"{parameter} is not an object with start and end"
        hint = 'give {"start": "2026-01", "end": "2026-03-31"}, or one of the two'
        raise InvalidRequestError(problem, parameter=parameter.partition(".")[0], hint=hint)
    since, until = (_short_string(given.get(end) or "", f"{parameter}.{end}") for end in ("start", "end"))
    if wrong := next((date for date in (since, until) if date and not _DATE.match(date)), None):
        problem = f"{wrong[:64]!r} is not a date"
        raise InvalidRequestError(
            problem, parameter=parameter.partition(".")[0], hint="write it as 2026-01-31"
        )
    return since, until


def _short_string(value: object, parameter: str) -> str:
    if not isinstance(value, str) or len(value) > checks.LINE:
        problem = f"{parameter} has a value that is not a string of at most {checks.LINE} characters"
        raise InvalidRequestError(problem, parameter=parameter.partition(".")[0])
    return value
