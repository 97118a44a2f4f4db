"""Predicates of selectors: the conditions in brackets after a name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from npl_index.errors import SelectorSyntaxError
from npl_index.markdown.traits import FLAGS
from npl_index.selectors.filters import ALIASES
from npl_index.selectors.versions import OPERATORS, VersionTest, version_key

_SPELLINGS = {name: name for name in FLAGS} | ALIASES
_TRAITS = {spelling.replace("_", "-"): name for spelling, name in _SPELLINGS.items() if name in FLAGS}

_KNOWN_TRAITS = (f"[{name.replace('_', '-')}]" for name in sorted(FLAGS))
KNOWN_PREDICATES = ", ".join((*_KNOWN_TRAITS, "[version>=1.0.0]", "[depth=0]", "[lines=10-20]", "[2]"))

LIKELY = r"\[\s*(?:has[-_]|(?:version|depth|lines)\s*[=!<>]|[1-9][0-9]*\s*(?:\]|\Z))"
"""Expression, to be compiled with case ignored, for a bracket that is not part of a name."""

_FORM = re.compile(
    r"(?P<ordinal>[0-9]+)|(?P<word>[A-Za-z][\w-]*)\s*(?:(?P<operator>[=!<>]+)\s*(?P<value>[^=!<>\s].*)?)?"
)
_LINES = re.compile(r"(?P<first>[0-9]{1,9})\s*-\s*(?P<last>[0-9]{1,9})", re.ASCII)


class Conditions(NamedTuple):
    """Conditions of a step in addition to its name, all of which must hold.

    :param traits: required traits of the section's own text, as attributes of ``Traits``.
    :param versions: comparisons with the version that applies to the section.
    :param ordinal: number among headings with the same parent, level and text, from 1.
    :param depth: number of selected levels of subsections; ``None`` for all.
    :param lines: first and last selected line of its own text, from 1; ``None`` for all.
    :param unknown: predicates that no section fulfils, as written.
    """

    traits: tuple[str, ...] = ()
    versions: tuple[VersionTest, ...] = ()
    ordinal: int | None = None
    depth: int | None = None
    lines: tuple[int, int] | None = None
    unknown: tuple[str, ...] = ()


def read_predicate(text: str, begin: int, conditions: Conditions) -> tuple[Conditions, int]:
    """Read the predicate whose bracket opens at an offset of a selector.

    :param conditions: the previous conditions.
    :returns: the conditions including this one, and the offset after the closing bracket.
    :raises SelectorSyntaxError: the bracket is not closed, or a known predicate has invalid syntax.
    """
    close = text.find("]", begin)
    if close < 0:
        raise SelectorSyntaxError("the [ is not closed", text, begin)
    start = begin + 1
    while text[start].isspace():
        start += 1
    match = _FORM.fullmatch(text[start:close].rstrip())
    if match is None:
        raise SelectorSyntaxError("expected a predicate", text, start, hint=f"known: {KNOWN_PREDICATES}")
    word = (match["word"] or "").lower().replace("_", "-")
    if word == "version":
        conditions = conditions._replace(versions=(*conditions.versions, _version(match, text, start)))
    elif word in _READERS:
        name = word or "ordinal"
        if getattr(conditions, name) is not None:
            raise SelectorSyntaxError(f"[{word or 'n'}…] is given twice", text, start)
        conditions = conditions._replace(**{name: _READERS[word](match, text, start)})
    elif word in _TRAITS and match["operator"] is None:
        conditions = conditions._replace(traits=(*conditions.traits, _TRAITS[word]))
    else:
        conditions = conditions._replace(unknown=(*conditions.unknown, text[begin : close + 1]))
    return conditions, close + 1


def _ordinal(match: re.Match[str], text: str, start: int) -> int:
    ordinal = int(match["ordinal"])
    if ordinal == 0:
        raise SelectorSyntaxError("equal headings are counted from 1", text, start)
    return ordinal


def _version(match: re.Match[str], text: str, start: int) -> VersionTest:
    if match["operator"] not in OPERATORS:
        place = start + (match.end("word") if match["operator"] is None else match.start("operator"))
        hint = "write for example [version>=1.2.0]"
        raise SelectorSyntaxError("expected =, !=, >, >=, < or <=", text, place, hint=hint)
    key = version_key((match["value"] or "").strip("\"'"))
    if key is None:
        place = start + (match.end("operator") if match["value"] is None else match.start("value"))
        raise SelectorSyntaxError("expected a version such as 1.2.0", text, place)
    return VersionTest(match["operator"], key)


def _depth(match: re.Match[str], text: str, start: int) -> int:
    value = match["value"] or ""
    if match["operator"] != "=" or not (value.isascii() and value.isdigit()):
        hint = "[depth=0] is a heading's own text, [depth=1] has the direct subsections too"
        raise SelectorSyntaxError("expected = and a number", text, start + match.end("word"), hint=hint)
    return int(value)


def _lines(match: re.Match[str], text: str, start: int) -> tuple[int, int]:
    numbers = _LINES.fullmatch(match["value"] or "") if match["operator"] == "=" else None
    if numbers is None or not 0 < int(numbers["first"]) <= int(numbers["last"]):
        hint = "[lines=10-20] is lines 10 to 20 of the file, within the section's own text"
        place = start + match.end("word")
        raise SelectorSyntaxError("expected = and two line numbers", text, place, hint=hint)
    return int(numbers["first"]), int(numbers["last"])


_READERS: dict[str, Callable[..., Any]] = {"": _ordinal, "depth": _depth, "lines": _lines}
