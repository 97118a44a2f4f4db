"""Arguments before and while they are checked: how many entries there may be, and what counts as a number.

Sizes are looked at first, because a check of many wrong entries makes as many problems. Then pydantic
checks types. It is lenient where clients are known to differ: whole numbers may come as ``3.0`` or ``"3"``,
truth values as ``"true"``, lists and objects as JSON in a text. But ``true`` is no number, and ``1`` no truth
value: that is always a mistake.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from npl_index.errors import InvalidRequestError
from npl_mcp.server.messages import excess
from npl_mcp.tools.spec import CommaList

MOST_ENTRIES = 1_000
"""Entries of a list, and keys of an object, where a tool looks at each: no tool takes more."""


def check_size(arguments: Mapping[str, object], tool: str, walked: Iterable[str]) -> None:
    """Make sure that the checks to come have little to walk.

    :param tool: for the message.
    :param walked: the parameters whose entries are checked one by one.
    :raises InvalidRequestError: there are too many arguments, or one has too many entries.
    """
    parts = {"the arguments": arguments, **{name: arguments.get(name) for name in walked}}
    for name, part in parts.items():
        if isinstance(part, Mapping | list) and len(part) > MOST_ENTRIES:
            problem = f"{tool}: {len(part):,} entries in {name}"
            raise InvalidRequestError(problem, hint=f"at most {MOST_ENTRIES:,}")


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
