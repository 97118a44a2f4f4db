"""What a section's text holds, and filters over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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

        :raises InvalidRequestError: unknown key or wrong type; names the key, near keys and a valid example.
        """
        raise NotImplementedError

    def matches(self, traits: Traits, level: int) -> bool:
        """Say whether all given conditions hold."""
        raise NotImplementedError
