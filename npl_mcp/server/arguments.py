"""Arguments before and while they are checked: how much a call may bring, and what counts as a number.

Sizes are looked at first, because a check of a million wrong entries makes a million problems. Then pydantic
checks types. It is lenient where clients are known to differ: whole numbers may come as ``3.0`` or ``"3"``,
truth values as ``"true"``, lists and objects as JSON in a text. But ``true`` is no number, and ``1`` no truth
value: that is always a mistake.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from npl_index.errors import InvalidRequestError
from npl_mcp.server.messages import DEEPEST, MOST_VALUES, excess
from npl_mcp.tools.parameters import CommaList

MOST_ENTRIES = 1_000
"""Entries of a list, and keys of an object, where a tool looks at each: no tool takes more."""

LONGEST_KEY = 1_000
"""Characters of a key."""

_LONGEST_NUMBER = 4_096
"""Bits of a whole number. Python needs quadratic time to write longer ones."""


def check_size(arguments: Mapping[str, object], tool: str, open_to_any: frozenset[str], longest: int) -> None:
    """Make sure that the checks to come have little to walk.

    :param tool: for the message.
    :param open_to_any: the parameters that take any JSON.
    :param longest: characters of a text.
    :raises InvalidRequestError: a part is too long, has too many parts, or is nested too deeply.
    """
    left = MOST_VALUES
    for number, (name, value) in enumerate(arguments.items()):
        if number == MOST_ENTRIES:
            raise InvalidRequestError(
                f"{tool}: the arguments have {len(arguments):,} keys", hint=f"at most {MOST_ENTRIES:,}"
            )
        if value.__class__ is str and len(value) <= longest:
            continue
        most = MOST_VALUES if name in open_to_any else MOST_ENTRIES
        left = _walk(value, f"{tool}: {name[:64]}", most, left, longest)


def _walk(value: object, name: str, most: int, left: int, longest: int) -> int:
    """Look at every part of a value, level by level; return how many more there may be in other values."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[object] = []
        for part in level:
            if isinstance(part, str) and len(part) > longest:
                raise _too_much(name, f"has a text of {len(part):,} characters", f"{longest:,}")
            if isinstance(part, int) and part.bit_length() > _LONGEST_NUMBER:
                raise _too_much(name, "has a number with too many digits", "15 digits are exact everywhere")
            if not isinstance(part, Mapping | list | tuple):
                continue
            left -= len(part)
            if len(part) > most or left < 0:
                raise _too_much(name, f"has {len(part):,} entries", f"{most:,}")
            if isinstance(part, Mapping):
                _check_keys(part, name)
                inner.extend(part.values())
            else:
                inner.extend(part)
        if not inner:
            return left
        level = inner
    raise _too_much(name, "is nested too deeply", f"{DEEPEST} levels")


def _check_keys(part: Mapping[Any, object], name: str) -> None:
    for key in part:
        if len(str(key)) > LONGEST_KEY:
            raise _too_much(name, "has a key that is too long", f"{LONGEST_KEY:,} characters")


def _too_much(name: str, problem: str, most: str) -> InvalidRequestError:
    hint = most if most.startswith("15") else f"at most {most}"
    return InvalidRequestError(f"{name} {problem}", hint=hint)


def container(annotation: object) -> type | None:
    """Return ``list`` or ``dict`` for a parameter that takes one, ``None`` for any other."""
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        return list if CommaList in inner[1:] else container(inner[0])
    if kind in (Union, UnionType):
        return next(filter(None, map(container, inner)), None)
    return kind if kind in (list, dict) else None


def unpacked(arguments: dict[str, Any], containers: Mapping[str, type]) -> dict[str, Any]:
    """Return arguments whose lists and objects are read where they came as JSON in a text.

    :param containers: what the parameters take that take one, by name.
    """
    read = {
        name: from_text(arguments[name], kind)
        for name, kind in containers.items()
        if arguments.get(name).__class__ is str
    }
    return {**arguments, **read} if read else arguments


def from_text(text: str, kind: type) -> object:
    """Return the list or object that a text holds as JSON; what holds none, or too much, stays as it is."""
    if text.lstrip()[:1] != _BEGINS[kind] or excess(text.encode("utf-8", "surrogatepass")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


_BEGINS: Mapping[type, str] = {list: "[", dict: "{"}


def takes_any(annotation: object) -> bool:
    """Return whether a parameter takes any JSON, at its top or inside."""
    return annotation is Any or any(map(takes_any, get_args(annotation)))


def strict(annotation: Any) -> Any:
    """Return an annotation whose numbers are no truth values, and the other way round.

    A text beside the type describes it in the schema, and a mapping becomes part of the schema.
    """
    if isinstance(annotation, type) and annotation in _GUARDS:
        return Annotated[annotation, _GUARDS[annotation]]
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        result = strict(inner[0])
        for part in inner[1:]:
            result = Annotated[result, _field(part)]
        return result
    if kind in (Union, UnionType):
        return reduce(or_, map(strict, inner))
    return list[strict(inner[0])] if kind is list else annotation  # type: ignore[misc]


def _field(part: object) -> object:
    if isinstance(part, str):
        return Field(description=part)
    if part is CommaList:
        return BeforeValidator(_joined)
    return Field(json_schema_extra=part) if isinstance(part, dict) else part


def _joined(value: object) -> object:
    if not isinstance(value, list) or not value or not all(isinstance(part, str) for part in value):
        return value
    return ", ".join(value)


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("bool_as_number", "Input should be a number, not true or false")
    return value


def _truth(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, str) and value.lower() in ("true", "false")):
        return value
    raise PydanticCustomError("no_bool", "Input should be true or false")


_GUARDS: Mapping[object, BeforeValidator] = {
    int: BeforeValidator(_number),
    float: BeforeValidator(_number),
    bool: BeforeValidator(_truth),
}
