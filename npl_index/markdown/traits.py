"""Traits of a section's text, and filters by traits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from npl_index.errors import InvalidRequestError

_FIRST_WORD = re.compile(r"[^\s|:;,={}\[\]()]+")
_EXAMPLE_FILTER = '{"has_code": true, "min_word_count": 50, "status": "!draft"}'
_ALIASES = {
    "has_example": "has_examples",
    "has_table": "has_tables",
    "has_definition": "has_definitions",
    "has_definition_list": "has_definitions",
    "has_definition_lists": "has_definitions",
    "level": "heading_level",
}
# A word: a character of Han or kana, or four of Thai, Lao, Tibetan, Burmese or Khmer.
_UNSPACED = re.compile(
    "[\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
    "|[\u0e01-\u109f\u1780-\u17ff]{1,4}"
)
_WIDE_MARKS = re.compile("[\u3000-\u303f\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")
_MAX_COUNT = 10**12
_ANY_NUMBER = 0, _MAX_COUNT, "a whole number of 0 or more"
_RANGES = {
    "min_word_count": _ANY_NUMBER,
    "max_word_count": _ANY_NUMBER,
    "heading_level": (1, 6, "a whole number from 1 to 6"),
}
_SHOWN = 40


def is_example(info: str) -> bool:
    """Return whether a fence's info string labels it as an example.

    The first word decides: one of its parts between hyphens or underscores is ``example`` or
    ``examples`` (``example``, ``input-example``, ``example-2|wide``), case ignored.

    :param info: the text after the fence's marker.
    """
    word = _FIRST_WORD.search(info)
    return word is not None and not {"example", "examples"}.isdisjoint(re.split("[-_]", word[0].lower()))


def count_words(text: str) -> int:
    """Count the words of a text: between white space, or in scripts without spaces by their length."""
    if text.isascii():
        return len(text.split())
    spaced, count = _UNSPACED.subn(" ", _WIDE_MARKS.sub(" ", text))
    return count + len(spaced.split())


class Traits(NamedTuple):
    """Content of a stretch of text.

    :param has_examples: holds a fence labelled as an example (``example``, ``examples``,
        ``input-example``, ``output-example``, and the like).
    :param has_tables: holds a pipe table.
    :param has_code: holds a fenced or an indented code block.
    :param has_definitions: holds a definition list.
    :param word_count: number of words, see :func:`count_words`, the heading line included.
    """

    has_examples: bool = False
    has_tables: bool = False
    has_code: bool = False
    has_definitions: bool = False
    word_count: int = 0


TRAIT_OF_BLOCK = {"code_block": "has_code", "table_open": "has_tables", "dl_open": "has_definitions"}
"""The trait that a section has because of a block, by the type of the block's token."""

FLAGS = Traits._fields[:-1]
"""The traits that a section has or lacks. A new one is stored at the end: documents keep a bit for each."""

LEVEL = 7
"""Bits of a section's kind for its heading level. The next bits are the traits of its own text."""

CONDITIONS = (*FLAGS, *_RANGES)

FLAG_SPELLINGS = {name: name for name in FLAGS}
FLAG_SPELLINGS |= {old: new for old, new in _ALIASES.items() if new in FLAGS}
"""The accepted spellings of these traits, with ``_`` between words."""


def bits_of(traits: Iterable[str]) -> int:
    """Return the bits of a section's kind for traits."""
    return sum((LEVEL + 1) << FLAGS.index(name) for name in set(traits))


@dataclass(frozen=True, slots=True)
class TraitFilter:
    """Conditions on a section, all of which must hold; ``None`` stands for no condition."""

    has_examples: bool | None = None
    has_tables: bool | None = None
    has_code: bool | None = None
    has_definitions: bool | None = None
    min_word_count: int | None = None
    max_word_count: int | None = None
    heading_level: int | None = None

    def __post_init__(self) -> None:
        """Refuse a filter that nothing can match.

        :raises InvalidRequestError: the range of words is empty.
        """
        low, high = self.min_word_count or 0, self.max_word_count
        if high is not None and low > high:
            raise invalid_filter(
                f"min_word_count {low} is greater than max_word_count {high}, so nothing can match"
            )

    def matches(self, traits: Traits, level: int) -> bool:
        """Return whether all given conditions hold.

        :param level: heading level, 0 for a document.
        """
        low, high = self.min_word_count or 0, self.max_word_count
        return (
            all(getattr(self, name) in (None, getattr(traits, name)) for name in FLAGS)
            and low <= traits.word_count <= (traits.word_count if high is None else high)
            and self.heading_level in (None, level)
        )


NO_TRAITS = TraitFilter()
"""The filter without conditions."""


def condition_of(key: object) -> str | None:
    """Return the condition that a key names in any of its spellings; ``None`` for other keys."""
    folded = key.strip().lower().replace("-", "_") if isinstance(key, str) else ""
    name = _ALIASES.get(folded, folded)
    return name if name in CONDITIONS else None


def checked_condition(key: object, value: object) -> tuple[str, Any]:
    """Return a condition and its value.

    :param key: any spelling of the condition.
    :raises InvalidRequestError: the value has a wrong type or is out of range.
    """
    name = condition_of(key) or ""
    low, high, allowed = _RANGES.get(name, (0, 1, "true or false"))
    if (
        isinstance(value, bool) is not (name in FLAGS)
        or not isinstance(value, int)
        or not low <= value <= high
    ):
        raise invalid_filter(f"filter condition {key!r} must be {allowed}, not {brief(value)}")
    return name, value


def brief(value: object) -> str:
    """Return an invalid value for a message: verbatim if it is short, else its type."""
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")
    if isinstance(value, int) and abs(value) > _MAX_COUNT:
        return "a number of that size"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def invalid_filter(problem: str) -> InvalidRequestError:
    """Return the error for an invalid filter."""
    return InvalidRequestError(problem, parameter="filter", hint=f"write for example {_EXAMPLE_FILTER}")
