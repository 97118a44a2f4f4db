"""Types, checks and texts of parameters that several tools share.

A call of a tool checks its arguments once, before the tool's function gets them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.base import checks


class CommaList:
    """Marker of a string of names separated by commas; calls may send a list instead.

    The schema has only the string, because two types for one parameter would cost every agent tokens.
    """


class Unlisted:
    """Marker of a parameter that is accepted and documented but not listed, because every agent pays for the
    list.

    Programs send it, a caller's token fills it in, or another parameter has the same meaning.
    """


class Acting:
    """Marker of a parameter with the persona that acts; a token implies it."""


class Check:
    """Marker of a parameter with a check.

    :param function: function of an argument and the name of its parameter, like those of
        :mod:`npl_mcp.stores.base.checks`; returns the argument for the tool.
    :param limits: further arguments of the function.
    """

    def __init__(self, function: Callable[..., Any], *limits: object) -> None:
        self._function, self._limits = function, limits

    def __call__(self, argument: Any, parameter: str) -> Any:
        """Return the argument for the tool; ``None`` for an absent argument.

        :raises InvalidRequestError: the argument is invalid.
        """
        return None if argument is None else self._function(argument, parameter, *self._limits)


Line = Annotated[str, Check(checks.line)]
Name = Annotated[str, Check(checks.name)]
ShortName = Annotated[str, Check(checks.short_name)]
Text = Annotated[str, Check(checks.text)]
RowId = Annotated[int, Check(checks.row_id)]
Whole = Annotated[int, Check(checks.whole)]
Actor = Annotated[str, Check(checks.name), Acting]
ActorIfOwn = Annotated[
    str | None, "Only if it is this persona's; a token implies its own", Check(checks.name), Unlisted, Acting
]
Wait = Annotated[float, "0 to 60 seconds"]
"""Seconds that a call waits for news."""


class SharedParameters:
    """Texts of parameters for people; a text of the tool itself overrides them.

    :param agent_name: name of the agent.
    :param artifact_id: id of the artifact.
    :param assigned_to: assignee of the todo.
    :param comment: text of the comment.
    :param created_by: persona that adds the revision.
    :param emoji: emoji, or a short word.
    :param event_id: id of the event.
    :param filename: name of the file, with its extension.
    :param format: form of the answer; by default that of the server.
    :param item: name of an item of that kind, or a pattern.
    :param join: room that the persona joins first, unless it is a member.
    :param key: key of the change request, ``MDT-004``, or its number.
    :param limit: maximum number of entries in the answer.
    :param message: text of the message.
    :param notification_id: id of the notification.
    :param offset: number of entries to skip.
    :param persona: persona that acts; a token implies its own.
    :param purpose: purpose of the revision.
    :param resource_type: component, meta, style, agent, spec, prompt, persona, prd, story or workflow.
    :param review_id: id of the review.
    :param reviewer_persona: persona that reviews.
    :param revision_id: ``revision_id`` from an earlier answer, not the revision's number.
    :param room_id: id of the room.
    :param selectors: selectors of sections to load.
    :param session_id: id of the session.
    :param skip: names to leave out, separated by commas; ``*`` matches any.
    :param title: title of the session.
    :param token_budget: maximum tokens of the answer; 0 for no limit.
    :param topics: likely headings, most likely first.
    """


_NAME = "a name"
EMPTY: Mapping[str, str | None] = {
    "assigned_to": _NAME,
    "content": None,
    "created_by": _NAME,
    "data": None,
    "expect": "the digest or number from an answer",
    "file_content_base64": None,
    "persona": _NAME,
    "prompts": None,
    "request_id": "a UUID",
    "reviewer_persona": _NAME,
    "status": "a status",
    "title": "a text",
    "verdict": "a verdict",
}
"""Optional parameters for which ``""`` and ``[]`` do not mean "not given": what to send instead, or ``None``
where the tool itself decides."""

_QUESTION = ("context", "query", "question", "q")
SYNONYMS: Mapping[str, Sequence[str]] = {**dict.fromkeys(_QUESTION, _QUESTION), "path": ("file",)}
"""Parameters that a name may mean in a tool that has no parameter of this name."""


def meant(function: Callable[..., object], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a call means: without empty ones, under their own names, lists as lists.

    ``null`` for an optional parameter means "not given", as do ``""`` and ``[]`` if :data:`EMPTY` lacks it.

    :raises InvalidRequestError: an argument may not be empty, or two names of a parameter differ in value.
    """
    declared, result = _declared(function), dict[str, Any]()
    for sent, value in arguments.items():
        name = sent
        if sent not in declared:
            name = next(filter(declared.__contains__, SYNONYMS.get(sent, ())), sent)
        optional, is_list = declared.get(name, (sent == "request_id", False))
        if value is None and (optional or name != sent):
            continue
        if optional and value in ("", []):
            if name not in EMPTY:
                continue
            if (instead := EMPTY[name]) is not None:
                raise checks.invalid(name, "is empty", f"give {instead}, or leave it out")
        if is_list and isinstance(value, str) and _is_entry(value, optional):
            value = [value]
        if result.get(name) is not None and result[name] != value:
            problem = f"two arguments give {name!r} different values"
            raise InvalidRequestError(problem, parameter=name, hint="give one of them")
        result[name] = value
    return result


def _is_entry(text: str, optional: bool) -> bool:
    """Return whether a text is the only entry of a list, and not JSON; required lists have names."""
    return text.lstrip()[:1] not in ("", "[", "{", '"') and (optional or "," not in text)


def checked(function: Callable[..., object], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for a tool's function.

    :raises InvalidRequestError: an argument is invalid.
    """
    own = _checks(function)
    return {name: own[name](value, name) if name in own else value for name, value in arguments.items()}


@cache
def unlisted(function: Callable[..., object]) -> frozenset[str]:
    """Return the parameters of a tool's function that are not listed."""
    return frozenset(name for name, part in markers(function) if part is Unlisted)


@cache
def _declared(function: Callable[..., object]) -> Mapping[str, tuple[bool, bool]]:
    """Return whether each parameter of a tool is optional, and whether it is a list."""
    return {
        own.name: (own.default is not own.empty, list in map(get_origin, parts_of(own.annotation)))
        for own in _parameters(function)
    }


@cache
def _checks(function: Callable[..., object]) -> Mapping[str, Check]:
    return {name: part for name, part in markers(function) if isinstance(part, Check)}


def markers(function: Callable[..., object]) -> Iterator[tuple[str, object]]:
    """Yield the name of each parameter of a tool's function with each part of its annotation."""
    for parameter in _parameters(function):
        for part in parts_of(parameter.annotation):
            yield parameter.name, part


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of a tool's function after the application."""
    return list(inspect.signature(function, eval_str=True).parameters.values())[1:]


def parts_of(annotation: object) -> Iterator[object]:
    """Yield an annotation, its alternatives and its markers."""
    yield annotation
    if get_origin(annotation) in (Annotated, Union, UnionType):
        for part in get_args(annotation):
            yield from parts_of(part)
