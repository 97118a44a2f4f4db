"""Filters: conditions on the traits of sections and on the front matter of their documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from npl_index.errors import InvalidRequestError
from npl_index.library.references import near_names
from npl_index.markdown.front_matter import folded_value
from npl_index.markdown.traits import FLAGS, Traits, bits_of

_EXAMPLE_FILTER = '{"has_code": true, "min_word_count": 50, "status": "!draft"}'
ALIASES = {
    "has_example": "has_examples",
    "has_table": "has_tables",
    "has_definition": "has_definitions",
    "has_definition_list": "has_definitions",
    "has_definition_lists": "has_definitions",
    "level": "heading_level",
}
"""Further spellings of conditions, with ``_`` between words."""

_MAX_COUNT = 10**12
_ANY_NUMBER = 0, _MAX_COUNT, "a whole number of 0 or more"
_RANGES = {
    "min_word_count": _ANY_NUMBER,
    "max_word_count": _ANY_NUMBER,
    "heading_level": (1, 6, "a whole number from 1 to 6"),
}
_SHOWN = 40
CONDITIONS = (*FLAGS, *_RANGES)

_FIELD = "fm."
_MAX_NAMES = 12


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
            problem = f"min_word_count {low} is greater than max_word_count {high}"
            raise _invalid(f"{problem}, so nothing can match")

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


class FieldTest(NamedTuple):
    """A condition on a field of a document's front matter; names and values are folded.

    :param wanted: the document has one of these values; empty for any.
    :param unwanted: the document has none of these values.
    """

    name: str
    wanted: frozenset[str]
    unwanted: frozenset[str]


class SectionFilter(NamedTuple):
    """Conditions on sections and their documents, all of which must hold."""

    traits: TraitFilter = NO_TRAITS
    fields: tuple[FieldTest, ...] = ()

    @classmethod
    def parse(cls, conditions: Mapping[str, object] | None) -> SectionFilter:
        r"""Parse a caller's filter.

        Keys are the conditions of :class:`TraitFilter`, else names of fields; ``fm.has_code`` is a field of
        that name. The value of a field is one value or a list of alternatives; ``!`` before a value excludes
        it, and ``\!`` stands for an exclamation mark. A key with the value ``None`` is ignored.

        Singular and hyphenated spellings of conditions are accepted (``has_table``, ``has-tables``,
        ``has-definition-list``).

        :raises InvalidRequestError: a value has a wrong type or is out of range, or a range is empty; names
            the key and a valid example.
        """
        if conditions is None:
            return cls()
        if not isinstance(conditions, Mapping):
            raise _invalid(f"filter must be an object of conditions, not {_brief(conditions)}")
        traits, fields = dict[str, Any](), list[FieldTest]()
        for key, value in conditions.items():
            if value is not None and condition_of(key):
                traits |= [_checked_condition(key, value)]
            elif value not in (None, []):
                fields.append(_field_test(str(key).strip().removeprefix(_FIELD), value))
        return cls(TraitFilter(**traits), tuple(fields))

    def bits(self, value: bool) -> int:
        """Return the bits of a section's kind that must be set, or must not be set."""
        return bits_of(name for name in FLAGS if getattr(self.traits, name) is value)


ANY = SectionFilter()
"""The filter without conditions."""


def _field_test(name: str, value: object) -> FieldTest:
    texts = [_text(name, part) for part in (value if isinstance(value, list | tuple) else [value])]
    wanted = {folded_value(text.removeprefix("\\")) for text in texts if not text.startswith("!")}
    unwanted = {folded_value(text[1:]) for text in texts if text.startswith("!")}
    return FieldTest(folded_value(name), frozenset(wanted), frozenset(unwanted))


def _text(name: str, value: object) -> str:
    """Return a value as front matter spells it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise _invalid(f"filter: {_brief(name)} must be a value or a list of values, not {_brief(value)}")
    return str(value)


def condition_of(key: object) -> str | None:
    """Return the condition that a key names in any of its spellings; ``None`` for other keys."""
    folded = key.strip().lower().replace("-", "_") if isinstance(key, str) else ""
    name = ALIASES.get(folded, folded)
    return name if name in CONDITIONS else None


def _checked_condition(key: object, value: object) -> tuple[str, Any]:
    """Return a condition and its value.

    :param key: any spelling of the condition.
    :raises InvalidRequestError: the value has a wrong type or is out of range.
    """
    name = condition_of(key) or ""
    low, high, allowed = _RANGES.get(name, (0, 1, "true or false"))
    fits = isinstance(value, int) and isinstance(value, bool) is (name in FLAGS) and low <= value <= high
    if not fits:
        raise _invalid(f"filter condition {key!r} must be {allowed}, not {_brief(value)}")
    return name, value


def _brief(value: object) -> str:
    """Return an invalid value for a message: verbatim if it is short, else its type."""
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")
    if isinstance(value, int) and abs(value) > _MAX_COUNT:
        return "a number of that size"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def _invalid(problem: str) -> InvalidRequestError:
    """Return the error for an invalid filter."""
    return InvalidRequestError(problem, parameter="filter", hint=f"write for example {_EXAMPLE_FILTER}")


def unknown_field(name: str, counts: Mapping[str, int]) -> InvalidRequestError:
    """Return the error for a field that no document has.

    :param counts: number of documents with each field.
    """
    ordered = sorted(counts, key=lambda field: (-counts[field], field))
    shown = list(dict.fromkeys([*near_names(name, ordered, 3), *ordered]))[:_MAX_NAMES]
    fields = ", ".join(f"{field} ({counts[field]})" for field in shown) or "none"
    traits = ", ".join(near_names(name, CONDITIONS, 3) or CONDITIONS)
    problem = f"filter: no document has the field {_brief(name)}; fields: {fields}; traits: {traits}"
    return _invalid(problem)
