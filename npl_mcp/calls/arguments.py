"""Validation of arguments: maximum entries, lenient types, and the checks of tools.

Pydantic checks types; sizes are checked first, because many wrong entries would cause as many problems.
Validation is lenient where clients are known to differ: integers may come as ``3.0`` or ``"3"``, booleans as
``"true"``, lists and objects as JSON in a text. But ``true`` is not a number, and ``1`` is not a boolean:
that is always a mistake.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache, partial, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from npl_index.errors import InvalidRequestError
from npl_mcp.calls.messages import MAX_VALUES, exceeded
from npl_mcp.tools.contract.error_codes import invalid_arguments
from npl_mcp.tools.contract.parameters import Check, CommaList
from npl_mcp.tools.contract.spec import ToolSpec

MAX_ENTRIES = 1_000
"""Maximum entries of a list or keys of an object that a tool examines one by one."""


def validated(spec: ToolSpec, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for a tool's function.

    :raises InvalidRequestError: an argument is invalid, or there are too many.
    """
    if len(arguments) > MAX_ENTRIES:
        problem = f"{spec.name}: there are {len(arguments):,} arguments"
        raise InvalidRequestError(problem, hint=f"at most {MAX_ENTRIES:,}")
    try:
        return validator(spec.function).validate_python(arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise invalid_arguments(problems, spec.name, spec.examples) from None


@cache
def validator(function: Callable[..., object]) -> TypeAdapter[dict[str, Any]]:
    """Return the validator of the arguments of a tool's function, which also has their JSON schema."""
    # typing.get_type_hints would wrap annotations of parameters that default to None, up to Python 3.10.
    signature = inspect.signature(function, eval_str=True)
    parameters = [
        own.replace(kind=own.KEYWORD_ONLY, annotation=strict(own.annotation, own.name))
        for own in list(signature.parameters.values())[1:]
    ]

    def collect(**values: Any) -> dict[str, Any]:
        return values

    collect.__name__ = collect.__qualname__ = function.__name__
    collect.__doc__ = None
    signature = signature.replace(parameters=parameters, return_annotation=dict[str, Any])
    collect.__signature__ = signature  # type: ignore[attr-defined]
    collect.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return TypeAdapter(cast("Any", collect))


def from_text(text: str, kind: type) -> object:
    """Return the list or object that a text holds as JSON; any other, or oversized, text stays unchanged."""
    if text.lstrip()[:1] != _BEGINS[kind] or exceeded(text.encode("utf-8", "surrogatepass")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


_BEGINS: Mapping[type, str] = {list: "[", dict: "{"}


def strict(annotation: Any, name: str) -> Any:
    """Return an annotation that distinguishes numbers from booleans, and accepts lists and objects as JSON in
    a text.

    A text next to the type describes it in the schema, and a mapping becomes part of the schema. A check runs
    on values of the right type.

    :param name: name of the parameter.
    """
    if isinstance(annotation, type) and annotation in _GUARDS:
        return Annotated[annotation, _GUARDS[annotation]]
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        result = strict(inner[0], name)
        for part in inner[1:]:
            result = Annotated[result, _field(part, name)]
        return result
    if kind in (Union, UnionType):
        return reduce(or_, (strict(part, name) for part in inner))
    if kind not in (list, dict):
        return annotation
    most = MAX_VALUES if Any in inner else MAX_ENTRIES
    parts = list[strict(inner[0], name)] if kind is list else annotation  # type: ignore[misc]
    return Annotated[parts, BeforeValidator(partial(_read, kind, most))]


def _read(kind: type, most: int, value: object) -> object:
    """Validate a list or an object, also as JSON in a text."""
    value = from_text(value, kind) if isinstance(value, str) else value
    if isinstance(value, kind) and len(value) > most:  # type: ignore[arg-type]
        raise PydanticCustomError("too_many", f"There are {len(value):,} entries; at most {most:,}")  # type: ignore[arg-type]
    return value


def _field(part: object, name: str) -> object:
    if isinstance(part, Check):
        return AfterValidator(partial(part, parameter=name))
    if isinstance(part, str):
        return Field(description=part)
    if part is CommaList:
        return BeforeValidator(_joined)
    return Field(json_schema_extra=part) if isinstance(part, dict) else part


def _joined(value: object) -> object:
    value = _read(list, MAX_ENTRIES, value)
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
