"""Whole items of any kind, for the command line.

These tools are called by name and not listed. Their answers have no token counts, and this module imports
only what loading needs: both would cost a command line more time than the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_index.items import loading
from npl_mcp.app.file_view import Files
from npl_mcp.tools.contract.spec import not_listed

MAX_GROUPS = 64


def items_load(
    app: Files, groups: Annotated[list[dict[str, str]], "Each with kind, items and optionally skip"]
) -> loading.Loaded:
    """Load whole items of several kinds.

    :returns: whole items of one or more kinds.
    :raises InvalidRequestError: a group, its pattern or its kind is invalid.
    :raises DocumentTooLargeError: the items together are too large.
    """
    if len(groups) > MAX_GROUPS:
        problem = f"{len(groups)} groups are too many"
        raise InvalidRequestError(problem, parameter="groups", hint=f"give at most {MAX_GROUPS}")
    return loading.load_groups(app.own, [_group(group) for group in groups])


def _group(given: Mapping[str, str]) -> loading.Group:
    if not {"kind", "items"} <= given.keys() <= {"kind", "items", "skip"}:
        hint = 'write {"kind": "component", "items": "syntax", "skip": ""}'
        raise InvalidRequestError("a group is invalid", parameter="groups", hint=hint)
    return loading.Group(given["kind"], given["items"], given.get("skip", ""))


@dataclass(frozen=True, slots=True)
class TextReply:
    """The text of an item.

    :param content: text of the item.
    """

    content: str


def items_raw(
    app: Files,
    kind: Annotated[str, "Kind of the item"],
    name: Annotated[str | None, "Name of the item; absent for init"] = None,
) -> TextReply:
    """Load one item unchanged.

    :returns: the text of an item.
    :raises DocumentNotFoundError: there is no such item.
    """
    missing = "Main npl.md file not found" if name is None else f"{kind.capitalize()} not found: {name}"
    return _text_reply(missing, lambda: loading.load_raw(app.own, kind, name).content)


def items_agent(app: Files, name: str, definition: Annotated[bool, "Append its NPL"] = False) -> TextReply:
    """Load an agent.

    :param name: name of the agent.
    :returns: the text of an item.
    :raises DocumentNotFoundError: there is no such agent.
    """
    missing = f"Agent not found: {name}"
    return _text_reply(missing, lambda: loading.load_agent(app.own, name, with_definition=definition).content)


def _text_reply(missing: str, load: Callable[[], str]) -> TextReply:
    """Return the text of an item.

    :param missing: the predecessor's message for a missing item.
    :raises DocumentNotFoundError: the item is missing.
    """
    try:
        return TextReply(load())
    except DocumentNotFoundError as error:
        raise DocumentNotFoundError(missing, near=error.near) from None


TOOLS = (*not_listed(items_load, items_raw, items_agent),)
