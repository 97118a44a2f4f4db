"""What a section's text holds, and filters over it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from npl_index.errors import InvalidRequestError

_FIRST_WORD = re.compile(r"[^\s|:;,={}\[\]()]+")
_EXAMPLE_FILTER = '{"has_code": true, "min_word_count": 50, "heading_level": 2}'
_ALIASES = {
    "has_example": "has_examples",
    "has_table": "has_tables",
    "has_definition": "has_definitions",
    "has_definition_list": "has_definitions",
    "has_definition_lists": "has_definitions",
    "level": "heading_level",
}
_FLAGS = ("has_examples", "has_tables", "has_code", "has_definitions")
_COUNTS = ("min_word_count", "max_word_count")


def is_example(info: str) -> bool:
    """Say whether a fence's info string labels it as an example.

    The first word decides: one of its parts between hyphens or underscores is ``example`` or
    ``examples`` (``example``, ``input-example``, ``example-2|wide``), case ignored.

    :param info: the text after the fence's marker.
    """
    word = _FIRST_WORD.search(info)
    return word is not None and not {"example", "examples"}.isdisjoint(re.split("[-_]", word[0].lower()))


@dataclass(frozen=True, slots=True)
class Traits:
    """Content of one stretch of text.

    :param has_examples: holds a fence labelled as an example (``example``, ``examples``,
        ``input-example``, ``output-example``, and the like).
    :param has_tables: holds a pipe table.
    :param has_code: holds a fenced or an indented code block.
    :param has_definitions: holds a definition list.
    :param word_count: words separated by white space, the heading line included.
    """

    has_examples: bool = False
    has_tables: bool = False
    has_code: bool = False
    has_definitions: bool = False
    word_count: int = 0

    def __add__(self, other: Traits) -> Traits:
        """Give the traits of two stretches taken together."""
        return Traits(
            self.has_examples or other.has_examples,
            self.has_tables or other.has_tables,
            self.has_code or other.has_code,
            self.has_definitions or other.has_definitions,
            self.word_count + other.word_count,
        )


@dataclass(frozen=True, slots=True)
class TraitFilter:
    """Conditions on a section; those that are ``None`` do not count, all others must hold."""

    has_examples: bool | None = None
    has_tables: bool | None = None
    has_code: bool | None = None
    has_definitions: bool | None = None
    min_word_count: int | None = None
    max_word_count: int | None = None
    heading_level: int | None = None

    @classmethod
    def parse(cls, conditions: Mapping[str, object] | None) -> TraitFilter:
        """Read a filter as callers write it.

        Singular and hyphenated spellings are accepted (``has_table``, ``has-tables``,
        ``has-definition-list``). A condition that is ``None`` counts as not given.

        :param conditions: condition name to value; ``None`` and an empty mapping hold for every section.
        :raises InvalidRequestError: unknown key, wrong type, value out of range, or an empty range; names
            the key, near keys and a valid example.
        """
        if conditions is None:
            return cls()
        if not isinstance(conditions, Mapping):
            raise _invalid(f"filter must be an object of conditions, not {_kind(conditions)}")
        values: dict[str, bool | int] = {}
        written: dict[str, str] = {}
        for key, value in conditions.items():
            name = _condition_name(key)
            if name in written:
                raise _invalid(f"filter gives {name} twice, as {written[name]!r} and as {key!r}")
            written[name] = key
            if value is not None:
                values[name] = _flag(key, value) if name in _FLAGS else _number(key, name, value)
        low, high = values.get("min_word_count", 0), values.get("max_word_count")
        if high is not None and low > high:
            raise _invalid(f"min_word_count {low} is greater than max_word_count {high}, so nothing can match")
        return cls(**values)

    def matches(self, traits: Traits, level: int) -> bool:
        """Say whether all given conditions hold.

        :param level: heading level, 0 for a document.
        """
        return (
            self.has_examples in (None, traits.has_examples)
            and self.has_tables in (None, traits.has_tables)
            and self.has_code in (None, traits.has_code)
            and self.has_definitions in (None, traits.has_definitions)
            and (self.min_word_count is None or traits.word_count >= self.min_word_count)
            and (self.max_word_count is None or traits.word_count <= self.max_word_count)
            and self.heading_level in (None, level)
        )


def _condition_name(key: object) -> str:
    """Give the field a key stands for."""
    folded = str(key).strip().lower().replace("-", "_")
    name = _ALIASES.get(folded, folded)
    known = (*_FLAGS, *_COUNTS, "heading_level")
    if name in known:
        return name
    near = process.extract(folded, known, scorer=fuzz.ratio, score_cutoff=55, limit=3)
    names = ", ".join(match[0] for match in near) if near else ", ".join(known)
    raise _invalid(f"filter has no condition {key!r}; {'near' if near else 'known'}: {names}")


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _invalid(f"filter condition {key!r} must be true or false, not {_kind(value)}")
    return value


def _number(key: str, name: str, value: object) -> int:
    low, high = (1, 6) if name == "heading_level" else (0, None)
    allowed = "a whole number from 1 to 6" if high else "a whole number of 0 or more"
    if isinstance(value, bool) or not isinstance(value, int):
        raise _invalid(f"filter condition {key!r} must be {allowed}, not {_kind(value)}")
    if value < low or (high is not None and value > high):
        raise _invalid(f"filter condition {key!r} must be {allowed}, not {value}")
    return value


def _kind(value: object) -> str:
    """Name a wrong value: short ones as they are, others by their type."""
    shown = repr(value)
    return shown if len(shown) <= 40 else f"a value of type {type(value).__name__}"


def _invalid(problem: str) -> InvalidRequestError:
    return InvalidRequestError(problem, parameter="filter", hint=f"write for example {_EXAMPLE_FILTER}")
