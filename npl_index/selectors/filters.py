"""Filters: conditions on the traits of sections and on the front matter of their documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from npl_index.errors import InvalidRequestError
from npl_index.library.references import near_names
from npl_index.markdown.front_matter import folded_value
from npl_index.markdown.traits import (
    CONDITIONS,
    FLAGS,
    NO_TRAITS,
    TraitFilter,
    bits_of,
    brief,
    checked_condition,
    condition_of,
    invalid_filter,
)

_FIELD = "fm."
_MAX_NAMES = 12


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
            raise invalid_filter(f"filter must be an object of conditions, not {brief(conditions)}")
        traits, fields = dict[str, Any](), list[FieldTest]()
        for key, value in conditions.items():
            if value is not None and condition_of(key):
                traits |= [checked_condition(key, value)]
            elif value not in (None, []):
                fields.append(_field_test(str(key).strip().removeprefix(_FIELD), value))
        return cls(TraitFilter(**traits), tuple(fields))

    @property
    def set_bits(self) -> int:
        """Bits of a section's kind that must be set."""
        return bits_of(name for name in FLAGS if getattr(self.traits, name) is True)

    @property
    def clear_bits(self) -> int:
        """Bits of a section's kind that must not be set."""
        return bits_of(name for name in FLAGS if getattr(self.traits, name) is False)


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
        raise invalid_filter(f"filter: {brief(name)} must be a value or a list of values, not {brief(value)}")
    return str(value)


def unknown_field(name: str, counts: Mapping[str, int]) -> InvalidRequestError:
    """Return the error for a field that no document has.

    :param counts: number of documents with each field.
    """
    ordered = sorted(counts, key=lambda field: (-counts[field], field))
    shown = list(dict.fromkeys([*near_names(name, ordered, 3), *ordered]))[:_MAX_NAMES]
    fields = ", ".join(f"{field} ({counts[field]})" for field in shown) or "none"
    traits = ", ".join(near_names(name, CONDITIONS, 3) or CONDITIONS)
    problem = f"filter: no document has the field {brief(name)}; fields: {fields}; traits: {traits}"
    return invalid_filter(problem)
