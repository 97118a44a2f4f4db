"""The names of the domains of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npl_index.errors import InvalidRequestError
from npl_index.library.references import near_words

LISTED = ("search", "npl", "cr", "directive", "utility", "session", "artifact", "review", "worklog", "chat")
"""Domains, which are modules of this package, in the order in which their tools are listed.

Models take the first tool that fits, and some clients show them only the first 40: tools that read documents
come first, then those that write documents, then those for agents that work together.
"""

PRESETS: Mapping[str, tuple[str, ...]] = {
    "all": LISTED,
    "loading": ("search", "npl"),
    "coordination": ("session", "artifact", "chat", "review", "worklog"),
    "changes": ("cr", "directive"),
}
"""Domains that go together, by a name for all of them."""


def domains_named(words: Iterable[str]) -> tuple[str, ...]:
    """Return the domains that words name, in the order in which their tools are listed.

    :param words: names of domains and of :data:`PRESETS`; none means all domains.
    :raises InvalidRequestError: a word names nothing.
    """
    wanted: set[str] = set()
    for word in words:
        if word not in LISTED and word not in PRESETS:
            names = dict.fromkeys((*LISTED, *PRESETS))
            near = near_words(word[:64], names)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
            raise InvalidRequestError(f"there is no domain {word[:64]!r}", parameter="domains", hint=hint)
        wanted.update(PRESETS.get(word, (word,)))
    return tuple(name for name in LISTED if not wanted or name in wanted)
