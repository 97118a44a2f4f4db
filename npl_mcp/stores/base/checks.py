"""Checks of arguments, once, at the entry of a store.

Every function returns the value or raises an :class:`InvalidRequestError` with the parameter's name. Every
supported database can store the accepted values: no NUL, no lone surrogates, integers of 53 bits (the largest
that every JSON reader keeps exact).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TypeVar
from unicodedata import normalize

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.library.references import near_names

T = TypeVar("T")

_SHORT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

LINE = 200
"""Maximum characters of a name, a title or a persona."""

TEXT = 64 * 1024
"""Maximum characters of a message, a comment or a note."""

LISTED = 20
"""Maximum names in a message."""

MAX_ID = 2**53 - 1
MAX_JSON_DEPTH = 32

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def invalid(parameter: str, problem: str, hint: str | None = None) -> InvalidRequestError:
    """Return the error for a value of a parameter.

    :param problem: the message after the parameter's name.
    """
    return InvalidRequestError(f"{parameter} {problem}", parameter=parameter, hint=hint)


def missing(parameter: str, problem: str, hint: str | None = None) -> MissingRequestError:
    """Return the error for a missing or an empty value; see :func:`invalid`."""
    return MissingRequestError(f"{parameter} {problem}", parameter=parameter, hint=hint)


def text(value: str, parameter: str, longest: int = TEXT, hint: str = "give some text") -> str:
    """Check a text of any number of lines: not blank, not too long, storable.

    :param longest: maximum characters.
    """
    _storable(value, parameter, longest)
    if not value.strip():
        raise missing(parameter, "is empty", hint)
    return value


def line(value: str, parameter: str, longest: int = LINE, hint: str = "give a name") -> str:
    """Check a name: one line, not blank, without control characters; surrounding spaces are removed.

    :param longest: maximum characters.
    """
    _storable(value, parameter, longest)
    clean = value.strip()
    if not clean:
        raise missing(parameter, "is empty", hint)
    if _CONTROL.search(clean):
        raise invalid(parameter, "has a line break or a control character", "use one line")
    return clean


def name(value: str, parameter: str) -> str:
    """Check a line; return it in Unicode's composed form (NFC), which is equal from every keyboard."""
    return normalize("NFC", line(value, parameter))


def short_name(value: str, parameter: str) -> str:
    """Check a name that also serves in paths, in mentions and as an agent's id."""
    clean = line(value, parameter)
    if _SHORT_NAME.fullmatch(clean) is None:
        hint = "use letters, digits, '.', '_' and '-', at most 64, beginning with a letter or digit"
        raise invalid(parameter, f"is {clean!r}", hint)
    return clean


def known_cursor(since: int, newest: int | None) -> None:
    """Check a cursor after which there are no entries.

    A cursor from elsewhere, or from before a restored backup, would hide new entries.

    :param newest: the id of the newest entry.
    :raises InvalidRequestError: no entry has had that id yet.
    """
    if since > (newest or 0):
        problem = f"is {since}, but the newest entry is {newest or 0}"
        raise invalid("since", problem, "give the cursor of the last answer, or leave since out")


def name_list(names: Sequence[str]) -> str:
    """Format a list of names for a message; a long list is shortened, with the number of omitted names."""
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def row_id(value: int, parameter: str) -> int:
    """Check an id: an integer from 1 on."""
    return whole(value, parameter, least=1)


def whole(value: int, parameter: str, most: int = MAX_ID, least: int = 0) -> int:
    """Check an integer between two limits."""
    if not least <= value <= most:
        number = str(value) if -MAX_ID <= value <= MAX_ID else "out of range"
        raise invalid(parameter, f"is {number}; it must lie between {least} and {most:,}")
    return value


def choice(value: str, parameter: str, options: Sequence[str]) -> str:
    """Check that a value is one of some options."""
    if value not in options:
        near = near_names(value[:64], options, 1, parts=True)
        hint = f"did you mean {near[0]!r}? it may be" if near else "it may be"
        raise invalid(parameter, f"is {value[:64]!r}", f"{hint} {', '.join(options)}")
    return value


def each(values: Sequence[T], parameter: str, check: Callable[[T, str], T], most: int) -> list[T]:
    """Check the entries of a list.

    :param check: check of an entry.
    :param most: maximum entries.
    """
    if len(values) > most:
        raise invalid(parameter, f"has {len(values):,} entries", f"at most {most}")
    return [check(value, f"{parameter}[{at}]") for at, value in enumerate(values)]


def json_text(value: object, parameter: str, longest: int = TEXT) -> str:
    """Serialise a JSON value as compact text.

    :param longest: maximum characters of that text.
    """
    if _is_deep(value, MAX_JSON_DEPTH):
        raise invalid(parameter, "is nested too deeply", f"at most {MAX_JSON_DEPTH} levels")
    try:
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        raise invalid(parameter, "is not JSON") from None
    if "\\u0000" in written:
        raise invalid(parameter, "contains a NUL character")
    return _storable(written, parameter, longest)


def _storable(value: str, parameter: str, longest: int) -> str:
    if len(value) > longest:
        raise invalid(parameter, f"has {len(value):,} characters", f"at most {longest:,}")
    if _UNSTORABLE.search(value):
        raise invalid(parameter, "contains a NUL character or half of a surrogate pair")
    return value


def _is_deep(value: object, levels: int) -> bool:
    """Return whether a JSON value has parts below some levels."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return levels == 0 or any(_is_deep(part, levels - 1) for part in parts)
