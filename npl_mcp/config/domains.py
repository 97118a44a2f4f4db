"""Names of the domains of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npl_index.errors import InvalidRequestError

LISTED = ("search", "npl", "cr", "directive", "utility", "session", "artifact", "review", "worklog", "chat")
"""Domains, each a module of :mod:`npl_mcp.tools`, in the order of the list of tools.

Models choose the first tool that fits, and some clients show only the first 40. So tools that read documents
come first, then tools that write documents, then tools for agents that work together.
"""

READING = "reading"
"""The group whose tools a server lists without those that load NPL prompts."""

PRESETS: Mapping[str, tuple[str, ...]] = {
    "all": LISTED,
    READING: ("search", "npl"),
    "loading": ("search", "npl"),
    "coordination": ("session", "artifact", "chat", "review", "worklog"),
    "changes": ("cr", "directive"),
}
"""Groups of domains, by name."""

NAMES = (*LISTED, *PRESETS)
"""Names of domains and of their groups."""

USE_SOME = f"use some of {', '.join(NAMES)}"


def domains_named(words: Iterable[str]) -> tuple[str, ...]:
    """Return the domains with the given names, in the order of the list of tools.

    :param words: some of :data:`NAMES`; empty means all domains.
    :raises InvalidRequestError: a name is unknown.
    """
    wanted: set[str] = set()
    for word in map(str.strip, words):
        if word not in NAMES:
            raise InvalidRequestError(f"there is no domain {word[:64]!r}", hint=USE_SOME)
        wanted.update(PRESETS.get(word, (word,)))
    return tuple(name for name in LISTED if not wanted or name in wanted)
