"""What an answer says besides its sections: selectors that select nothing, and files that were left out.

There may be hundreds of them. An answer names the first ones and counts the others, so that the sections keep
most of the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

MOST_FILES = 3
"""Files that are named; the section index names all."""

SHARE = 3
"""All remarks together take at most this part of a budget."""


class Remarks(NamedTuple):
    """What is said.

    :param not_found: why selectors select nothing.
    :param unreadable: files that were left out, and why.
    """

    not_found: tuple[str, ...]
    unreadable: tuple[str, ...]


def remarks(
    failures: Sequence[str], unreadable: Sequence[str], budget: int | None, price: Callable[[str], int]
) -> Remarks:
    """Choose what is said.

    :param failures: why selectors select nothing.
    :param unreadable: files that were left out, and why.
    :param budget: tokens of the whole answer; ``None`` for no limit.
    :param price: returns the tokens of one remark.
    """
    room = None if budget is None else budget // SHARE
    not_found, left = _first(failures, len(failures), ("selector", "found nothing"), room, price)
    files, _ = _first(unreadable, MOST_FILES, ("file", "left out"), left, price)
    return Remarks(not_found, files)


def _first(
    texts: Sequence[str], most: int, what: tuple[str, str], room: int | None, price: Callable[[str], int]
) -> tuple[tuple[str, ...], int | None]:
    """Return the first of some texts, the number of the others, and the tokens that are left."""
    said: list[str] = []
    for text in texts[:most]:
        cost = 0 if room is None else price(text)
        if room is not None and cost > room:
            break
        said.append(text)
        room = None if room is None else room - cost
    if others := len(texts) - len(said):
        name, state = what
        more = " more" if said else ""
        said.append(f"{others:,}{more} {name}{'' if others == 1 else 's'} {state}")
    return tuple(said), room
