"""Filters of change requests by the values of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from npl_index.errors import InvalidRequestError
from npl_index.library.references import near_names
from npl_mcp.changes.index import Ticket
from npl_mcp.stores.base import checks

KNOWN = ("status", "type", "priority", "assignee", "phaseEpic", "relatedTickets", "dependsOn", "blocks")
_RANGE = "dateRange"
_MOST_VALUES = 64


@dataclass(frozen=True, slots=True)
class Filters:
    """Every field must have one of the values given for it; case does not count.

    :param wanted: names of fields, and the values each may have, case-folded.
    :param since: first ``dateCreated``, or empty.
    :param until: last ``dateCreated``, or empty.
    """

    wanted: tuple[tuple[str, frozenset[str]], ...] = ()
    since: str = ""
    until: str = ""

    @classmethod
    def parse(cls, given: Mapping[str, object], parameter: str) -> Filters:
        """Read filters as callers give them.

        :param given: a value or several by field; ``dateRange`` with ``start`` and ``end``.
        :raises InvalidRequestError: a field is unknown, or its value is neither a text nor a list of texts.
        """
        wanted, since, until = [], "", ""
        for name, value in given.items():
            if name == _RANGE and isinstance(value, Mapping):
                since, until = (_text(value.get(end, ""), parameter) for end in ("start", "end"))
                continue
            checks.choice(name, parameter, (*KNOWN, _RANGE))
            values = [value] if isinstance(value, str) else value
            if not isinstance(values, Sequence) or not 0 < len(values) <= _MOST_VALUES:
                raise InvalidRequestError(
                    f"{parameter}.{name} is neither a text nor a list of some", parameter=parameter
                )
            folded = frozenset(_text(part, parameter).strip().casefold() for part in values)
            wanted.append((name, folded))
        return cls(tuple(wanted), since, until)

    @classmethod
    def query(cls, text: str) -> Filters:
        """Read filters that follow a document's name, e.g. ``status=Proposed,Approved&priority=High``.

        Any field of front matter may be named.

        :raises InvalidRequestError: a part has no ``=``.
        """
        wanted = []
        for part in text.split("&"):
            name, equals, value = part.partition("=")
            if not equals or not name.strip():
                near = near_names(name[:64], KNOWN, limit=1)
                raise InvalidRequestError(
                    f"{part[:64]!r} is no filter",
                    parameter="file",
                    hint=f"write {near[0] if near else 'status'}=Proposed,Approved and separate filters by &",
                )
            values = frozenset(unquote(one).strip().casefold() for one in value.split(","))
            wanted.append((unquote(name).strip(), values))
        return cls(tuple(wanted))

    def fit(self, ticket: Ticket) -> bool:
        """Return whether a change request passes."""
        if not all(_values(ticket, name) & values for name, values in self.wanted):
            return False
        if not self.since and not self.until:
            return True
        made = ticket.text("dateCreated")
        return bool(made) and self.since <= made and (not self.until or made[: len(self.until)] <= self.until)


def _values(ticket: Ticket, name: str) -> frozenset[str]:
    """Return a field's value as a whole, and its parts if it is a list."""
    text = ticket.text(name).casefold()
    return frozenset((text, *(part.strip() for part in text.split(","))))


def _text(value: object, parameter: str) -> str:
    if not isinstance(value, str) or len(value) > checks.LINE:
        raise InvalidRequestError(f"{parameter} has a value that is no short text", parameter=parameter)
    return value
