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

NEEDS: Mapping[str, tuple[str, ...]] = {"review": ("artifact",)}
"""Domains whose answers contain data of other domains: a caller needs those domains as well."""

NAMES = (*LISTED, *PRESETS)
"""Names of domains and of their groups."""

USE_SOME = f"use some of {', '.join(NAMES)}"


class Of:
    """Marker of a parameter, or of a field of an answer, with data of another domain.

    For a caller who may not see that domain, the named record does not exist, and the field is left out.

    :param domain: that domain.
    :param keys: the keys with the data, if the field is a mapping with other data as well.
    """

    def __init__(self, domain: str, *keys: str) -> None:
        self.domain, self.keys = domain, keys


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
