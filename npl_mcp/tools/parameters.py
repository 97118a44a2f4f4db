"""Parameters that many tools have: their types, with the check of an argument.

A call of a tool checks its arguments once, before the tool's function gets them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from npl_mcp.stores.base import checks


class CommaList:
    """Marks a text that names things with commas between them; a list of them is accepted as well.

    The schema shows the text alone: two types for one parameter would cost every agent tokens.
    """


class Unlisted:
    """Marks a parameter that is accepted and documented but not listed, because the list costs every agent.

    Programs send it, a caller's token fills it in, or another parameter means the same.
    """


class Check:
    """Marks a parameter whose argument is checked.

    :param function: takes the argument and the name of the parameter, as those of
        :mod:`npl_mcp.stores.base.checks`; returns the argument that the tool gets.
    :param limits: further arguments of the function.
    """

    def __init__(self, function: Callable[..., Any], *limits: object) -> None:
        self._function, self._limits = function, limits

    def __call__(self, argument: Any, parameter: str) -> Any:
        """Return the argument that the tool gets; one that was left out stays so.

        :raises InvalidRequestError: it cannot be used.
        """
        return None if argument is None else self._function(argument, parameter, *self._limits)


Name = Annotated[str, Check(checks.line)]
ShortName = Annotated[str, Check(checks.short_name)]
Text = Annotated[str, Check(checks.text)]
RowId = Annotated[int, Check(checks.row_id)]
Whole = Annotated[int, Check(checks.whole)]
ActorIfOwn = Annotated[
    str | None, "Only if it is this persona's; a token implies its own", Check(checks.line), Unlisted
]
Wait = Annotated[float, "0 to 60 seconds"]
"""Of tools that read what others write: how long a call with nothing to answer waits for it."""


def checked(function: Callable[..., object], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a tool's function gets.

    :raises InvalidRequestError: one of them cannot be used.
    """
    declared = _checks(function)
    return {
        name: declared[name](value, name) if name in declared else value for name, value in arguments.items()
    }


@cache
def unlisted(function: Callable[..., object]) -> frozenset[str]:
    """Return the parameters of a tool's function that are not listed."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    return frozenset(one.name for one in parameters if Unlisted in get_args(one.annotation))


@cache
def _checks(function: Callable[..., object]) -> Mapping[str, Check]:
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    found = ((parameter.name, _check_in(parameter.annotation)) for parameter in parameters)
    return {name: check for name, check in found if check is not None}


def _check_in(annotation: object) -> Check | None:
    if get_origin(annotation) not in (Annotated, Union, UnionType):
        return None
    parts = (part if isinstance(part, Check) else _check_in(part) for part in get_args(annotation))
    return next((part for part in parts if part is not None), None)
