"""Counts of the NPL notations that a text uses.

A text is searched for each row of a table. A match for several rows counts in each of them:
``⟪📅: today⟫`` is a value placeholder and a directive. The command ``npl-load syntax`` has always printed
these counts and categories.

An expression that needs an end mark has it in the group ``end``. If the end mark is missing, the group
matches the empty text, the match is dropped, and the search continues after it. Otherwise a text with many
unclosed marks would take quadratic time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_END = "end"


def _between(start: str, stop: str, inside: str) -> str:
    """Return the expression for a text between two marks.

    :param inside: expression for the text between the marks; it cannot match the end mark.
    """
    return f"{start}{inside}(?P<{_END}>{stop}|)"


_TABLE: tuple[tuple[str, str, str], ...] = (
    ("basic_syntax", "highlight", _between("`", "`", "([^`]+)")),
    ("basic_syntax", "placeholder", _between(r"\{", r"\}", "([^}]+)")),
    ("basic_syntax", "placeholder_angle", _between("<", ">", "([^>]+)")),
    ("basic_syntax", "qualified_placeholder", r"<<([^>]+)(?:>([^>]+)(?P<end>>|)|)"),
    ("basic_syntax", "in_fill", _between(r"\[\.{3}", r"\]", r"([^\]]*)")),
    ("basic_syntax", "omission", r"\[_{3}\]"),
    ("special_syntax", "attention", r"🎯\s*(.+)"),
    ("special_syntax", "note", _between(r"\(note:", r"\)", r"\s*([^)]+)")),
    ("special_syntax", "qualifier", r"(?<!\w)(\w+)\|([^\s\]]+)"),
    ("communication", "attention_alias", r"🙋\s+(.+)"),
    ("communication", "direct_message", _between(r"@\{", r"\}", "([^}]+)")),
    ("communication", "value_placeholder", _between("⟪", "⟫", "([^⟫]+)")),
    ("validation", "validation_positive", r"✔\s+(.+)"),
    ("validation", "validation_negative", r"❌\s+(.+)"),
    ("validation", "separator", "﹍"),
    ("content_generation", "inference_dots", r"\.{3}(?!\.)"),
    ("content_generation", "inference_etc", r"\betc\.?\b"),
    ("content_generation", "literal_output", r"`\{~l\|([^`]+)\}`"),
    ("logic_operators", "summation", _between(r"∑\(", r"\)", r"[^)]+")),
    ("logic_operators", "intersection", "∩"),
    ("logic_operators", "union", "∪"),
    ("logic_operators", "subset", "⊆"),
    ("logic_operators", "element_of", "∈"),
    ("fences", "fence_simple", r"`{3}(\w+)"),
    ("fences", "fence_compound", r"`{3}(\w+-\w+)"),
    ("handlebars", "handlebars_var", r"\{\{(\w+)\}\}"),
    ("handlebars", "handlebars_foreach", r"\{\{foreach\s+(\w+)\}\}"),
    ("handlebars", "handlebars_if", _between(r"\{\{if", r"\}\}", r"\s+([^}]+)")),
    ("handlebars", "handlebars_end", r"\{\{/(\w+)\}\}"),
    ("npl_specific", "npl_tag", r"<npl-(\w+)>"),
    ("npl_specific", "npl_section_start", _between("⌜", "⌝", "([^⌝]+)")),
    ("npl_specific", "npl_section_end", _between("⌞", "⌟", "([^⌟]+)")),
    ("directives", "directive", r"⟪([^:]+)(?::\s*([^⟫]+)(?P<end>⟫|)|)"),
)


@dataclass(frozen=True, slots=True)
class Usage:
    """A notation that a text uses.

    :param name: name of the notation.
    :param category: its category.
    :param count: number of matches.
    :param matches: the first few matches; the parts of a match are joined by `` | ``.
    """

    name: str
    category: str
    count: int
    matches: tuple[str, ...]


def analyse(text: str, most: int = 0) -> tuple[Usage, ...]:
    """Count the notations of NPL in a text.

    :param most: maximum number of matches to return for each notation.
    :returns: the notations with at least one match, sorted by name.
    """
    usages = (_usage(text, category, name, expression, most) for category, name, expression in _TABLE)
    return tuple(sorted((usage for usage in usages if usage.count), key=lambda usage: usage.name))


def _usage(text: str, category: str, name: str, expression: str, most: int) -> Usage:
    count, matches = 0, []
    for match in re.finditer(expression, text):
        if match.groupdict().get(_END, True):  # a match without its end mark is dropped
            count += 1
            if count <= most:
                matches.append(_match_text(match))
    return Usage(name, category, count, tuple(matches))


def _match_text(match: re.Match[str]) -> str:
    """Return the text between the marks of a match, or the whole match if no text lies between marks."""
    end = match.re.groupindex.get(_END)
    parts = [part for number, part in enumerate(match.groups(), 1) if number != end]
    return " | ".join(part or "" for part in parts) if parts else match[0]
