"""Groups of items on a command line of ``npl-load``.

One line may have several types, ``c "syntax" --skip "" m "persona.qa"``, and ``--skip`` takes all words that
follow it. argparse cannot read such a line: it reads the options, and :func:`read_groups` the words between
them.

A word that is both a type and a name begins a type if the type before it already has a name and another word
follows, as in ``c syntax m persona``; otherwise it is a name, as in ``c m`` and ``c syntax m``. With a comma
it is always a name: ``c syntax m, persona``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from itertools import pairwise

from npl_mcp.cli.terminal.arguments import ProgramParser

TYPES: dict[str, str] = {
    "c": "components",
    "m": "metadata",
    "s": "style guides",
    "spec": "specifications",
    "persona": "agent personas",
    "user-persona": "user personas",
    "prd": "product requirements",
    "story": "user stories",
    "prompt": "prompts",
    "workflow": "workflows",
}
"""Types of items with their plural; one line may have several."""


class ItemGroup:
    """The items of one type to load.

    ``words`` are names of items, ``skip`` the words of the last ``--skip``.

    :param kind: type in the user's spelling.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.words: list[str] = []
        self.skip: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The names, split at commas, without duplicates."""
        parts = (part.strip() for word in self.words for part in word.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))


def read_groups(parser: ProgramParser, words: Sequence[str], given: argparse.Namespace) -> None:
    """Read the types one after another, each with its names and its ``--skip``.

    argparse reads one option at a time, with the words up to the next option, and leaves the words that are
    not the option's value.

    :param parser: parser of the first type, whose argument ``item`` takes the words.
    :param words: words after the first type.
    :param given: target of the options and of ``groups``, a list of :class:`ItemGroup`.
    """
    given.groups = groups = [ItemGroup(parser.prog.split()[-1])]
    end = words.index("--") if "--" in words else len(words)
    starts = [0, *(at for at in range(end) if _is_option(words[at])), end]
    for start, stop in pairwise(starts):
        part = words[start:stop]
        if part and _is_skip(part[0]):
            left = _read_skip(part, groups[-1])
        else:
            left = [*parser.parse_known_args(part, given)[1], *given.item]
        if left and _is_option(left[0]):
            hint = f" (write {left[0]} before the command)" if left[0] == "--quiet" else ""
            parser.error(f"unrecognized arguments: {left[0]}{hint}")
        for at, word in enumerate(left):
            if _begins_type(left, at, groups[-1]):
                groups.append(ItemGroup(word))
            else:
                groups[-1].words.append(word)
    groups[-1].words += words[end + 1 :]


def _read_skip(part: Sequence[str], group: ItemGroup) -> list[str]:
    """Read a ``--skip`` and return the words after it. Before the first name, it takes only one word."""
    _, equals, value = part[0].partition("=")
    if equals:
        group.skip = [value]
        return [*part[1:]]
    stop = 1
    while stop < len(part) and (group.words or stop == 1) and not _begins_type(part, stop, group):
        stop += 1
    group.skip = [*part[1:stop]]
    return [*part[stop:]]


def _begins_type(words: Sequence[str], at: int, group: ItemGroup) -> bool:
    return words[at] in TYPES and bool(group.words) and at + 1 < len(words)


def _is_option(word: str) -> bool:
    """Return whether argparse reads a word as an option, unlike negative numbers and texts with a space."""
    return re.match(r"-[^\d\s=][^\s=]*(=|\Z)", word) is not None


def _is_skip(word: str) -> bool:
    name = word.partition("=")[0]
    return len(name) > 3 and "--skip".startswith(name)
