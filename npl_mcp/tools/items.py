"""Whole items of any kind, for the command line.

These tools are called by name and not listed. Answers hold no token counts, which would cost a command line
more than all the rest; the module imports no more than loading needs, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_index.items.loading import (
    Group,
    LoadedItem,
    MissingItem,
    flag_header,
    load_agent,
    load_groups,
    load_raw,
)
from npl_mcp.core.files import Files
from npl_mcp.tools.spec import ToolSpec

MAX_GROUPS = 64


@dataclass(frozen=True, slots=True)
class ItemsReply:
    """Whole items of one or more kinds.

    :param header: tells an agent what has been loaded; empty if nothing was.
    :param content: the text of all items.
    :param flags: names of what was loaded, by flag.
    :param items: where each came from, in the order of ``content``.
    :param missing: what was not found.
    :param skipped: what a ``skip`` left out.
    :param problems: why names or files could not be used; the rest is loaded.
    """

    header: str
    content: str
    flags: Mapping[str, str]
    items: tuple[LoadedItem, ...]
    missing: tuple[MissingItem, ...] | None
    skipped: tuple[str, ...] | None
    problems: tuple[str, ...] | None


def items_load(
    app: Files, groups: Annotated[list[dict[str, str]], "Each with kind, items and, if wanted, skip"]
) -> ItemsReply:
    """Load whole items of several kinds.

    :returns: whole items of one or more kinds.
    :raises InvalidRequestError: a group or its pattern cannot be read, or there is no such kind.
    :raises DocumentTooLargeError: the items are too large together.
    """
    if len(groups) > MAX_GROUPS:
        problem = f"{len(groups)} groups are too many"
        raise InvalidRequestError(problem, parameter="groups", hint=f"give at most {MAX_GROUPS}")
    loaded = load_groups(app.own, [_group(group) for group in groups])
    return ItemsReply(
        header=flag_header(loaded.flags),
        content=loaded.content,
        flags=loaded.flags,
        items=loaded.items,
        missing=loaded.missing or None,
        skipped=loaded.skipped or None,
        problems=loaded.problems or None,
    )


def _group(given: Mapping[str, str]) -> Group:
    if not {"kind", "items"} <= given.keys() <= {"kind", "items", "skip"}:
        hint = 'write {"kind": "component", "items": "syntax", "skip": ""}'
        raise InvalidRequestError("a group cannot be read", parameter="groups", hint=hint)
    return Group(given["kind"], given["items"], given.get("skip", ""))


@dataclass(frozen=True, slots=True)
class TextReply:
    """One item.

    :param content: its text.
    """

    content: str


def items_raw(
    app: Files,
    kind: Annotated[str, "kind of item"],
    name: Annotated[str | None, "May be left out for init"] = None,
) -> TextReply:
    """Load one item as it is.

    :returns: one item.
    :raises DocumentNotFoundError: there is no such item.
    """
    missing = "Main npl.md file not found" if name is None else f"{kind.capitalize()} not found: {name}"
    return _text(missing, lambda: load_raw(app.own, kind, name).content)


def items_agent(app: Files, name: str, definition: Annotated[bool, "Append its NPL"] = False) -> TextReply:
    """Load an agent.

    :returns: one item.
    :raises DocumentNotFoundError: there is no such agent.
    """
    missing = f"Agent not found: {name}"
    return _text(missing, lambda: load_agent(app.own, name, with_definition=definition).content)


def _text(missing: str, load: Callable[[], str]) -> TextReply:
    """Return an item, or raise that it is missing in the words of the predecessor."""
    try:
        return TextReply(load())
    except DocumentNotFoundError as error:
        raise DocumentNotFoundError(missing, near=error.near) from None


TOOLS = (
    ToolSpec(items_load, listed=False),
    ToolSpec(items_raw, listed=False),
    ToolSpec(items_agent, listed=False),
)
