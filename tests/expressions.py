"""How many steps a backtracking matcher takes for a regular expression, and inputs that make it take many.

``re`` cannot say how many steps it took, and seconds say more about the machine than about the expression.
So the parse tree that ``re`` itself makes is walked here in the order in which ``re`` walks it, and every
attempt to match one element is counted. ``re`` has short cuts (it looks for a literal beginning before it
starts), so the count is an upper bound; where it grows in proportion to the text, so does the time of ``re``.
That both find the same is checked for every input.
"""

from __future__ import annotations

import random
import re
import string
import warnings
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

from tests.conftest import THOROUGH

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

INFINITE = 64
"""A repeat that may go on for longer is one that a text can make long."""

MOST_ENDS = 8
"""Characters that end a text, at most; nearly any of them fits nowhere."""

MOST_TEXTS = 300 if THOROUGH else 150
"""Texts for one expression; where beginnings, units and ends make more, some of them are drawn."""

MOST_STEPS = 200_000
"""Where a single input takes more, no further question is asked."""

# Plain numbers: to combine members of an enumeration takes longer than what is done with them.
_DOTALL, _IGNORECASE, _MULTILINE = int(re.DOTALL), int(re.IGNORECASE), int(re.MULTILINE)

_MAX = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
_SINGLE = {"LITERAL", "NOT_LITERAL", "ANY", "IN"}
_SPECIMENS = "aAbzZ09_- \t\n\r\x0b\x00.,:;#'\"`*[](){}<>/\\|=!?@^$%&+~éßΑЖא中\u0301\u3000\u200b🎯\U0001f64b"


class TooManyStepsError(Exception):
    """A match took more than :data:`MOST_STEPS`."""


class Matcher:
    """A compiled expression, matched as ``re`` does it, with a count of the steps."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.pattern = pattern
        source = pattern.pattern
        self.tree = sre_parse.parse(source, pattern.flags & ~re.DEBUG)
        self.ascii = bool(pattern.flags & re.ASCII) or isinstance(source, bytes)
        self.steps = 0
        self._text = ""
        self._groups: dict[int, tuple[int, int]] = {}
        self._known: dict[tuple[int, str, int], bool] = {}

    def search(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of all matches, as ``finditer`` does, the last one unfinished."""
        self._begin(text)
        found: list[tuple[int, int]] = []
        at, after_empty = 0, -1

        def advances(end: int) -> int | None:
            return None if end == at == after_empty else end

        while at <= len(text):
            end = self._match_at(at, advances)
            if end is None:
                at += 1
                continue
            found.append((at, end))
            after_empty, at = (end if end == at else -1), end
        return found

    def match(self, text: str) -> int | None:
        """Return the end of a match at the beginning."""
        self._begin(text)
        return self._match_at(0, lambda end: end)

    def fullmatch(self, text: str) -> int | None:
        """Return the end of a match of the whole text."""
        self._begin(text)
        return self._match_at(0, lambda end: end if end == len(text) else None)

    def _begin(self, text: str) -> None:
        self._text, self.steps = text, 0

    def _match_at(self, at: int, then: Callable[[int], int | None]) -> int | None:
        self._groups = {}
        return self._run(list(self.tree), 0, at, self.pattern.flags, then)

    def _run(
        self, items: list[Any], number: int, at: int, flags: int, then: Callable[[int], int | None]
    ) -> int | None:
        """Match elements from ``number`` on, then the elements after them."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooManyStepsError
        if number == len(items):
            return then(at)
        kind, value = str(items[number][0]), items[number][1]

        def rest(end: int) -> int | None:
            return self._run(items, number + 1, end, flags, then)

        if kind in _SINGLE:
            return rest(at + 1) if at < len(self._text) and self._fits(items[number], at, flags) else None
        return getattr(self, f"_{kind.lower()}")(value, at, flags, rest)

    def _fits(self, item: Any, at: int, flags: int) -> bool:
        self.steps += 1
        character = self._text[at]
        key = (id(item), character, flags)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = fits(item, character, flags, ascii_only=self.ascii)
        return found

    def _at(self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]) -> int | None:
        text, kind = self._text, str(value)
        begins, ends = at == 0, at == len(text)
        if flags & _MULTILINE:
            line_begins, line_ends = begins or text[at - 1] == "\n", ends or text[at] == "\n"
        else:
            line_begins, line_ends = begins, ends or (at == len(text) - 1 and text[at] == "\n")
        holds = {
            "AT_BEGINNING": line_begins,
            "AT_BEGINNING_STRING": begins,
            "AT_END": line_ends,
            "AT_END_STRING": ends,
        }.get(kind)
        if holds is None:
            sides = [0 <= one < len(text) and self._is_word(text[one]) for one in (at - 1, at)]
            holds = (sides[0] != sides[1]) == (kind == "AT_BOUNDARY")
        return rest(at) if holds else None

    def _is_word(self, character: str) -> bool:
        return _category("WORD", character, ascii_only=self.ascii)

    def _branch(self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]) -> int | None:
        for branch in value[1]:
            groups = dict(self._groups)
            end = self._run(list(branch), 0, at, flags, rest)
            if end is not None:
                return end
            self._groups = groups
        return None

    def _subpattern(self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]) -> int | None:
        group, added, removed, inside = value
        before = self._groups.get(group)

        def close(end: int) -> int | None:
            held = self._groups.get(group)
            if group is not None:
                self._groups[group] = (at, end)
            found = rest(end)
            if found is None and group is not None:
                self._groups.pop(group, None)
                if held is not None:
                    self._groups[group] = held
            return found

        end = self._run(list(inside), 0, at, (flags | added) & ~removed, close)
        if end is None and before is not None:
            self._groups[group] = before
        return end

    def _atomic_group(self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]) -> int | None:
        end = self._run(list(value), 0, at, flags, lambda end: end)
        return None if end is None else rest(end)

    def _assert(self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]) -> int | None:
        return rest(at) if self._looks(value, at, flags) else None

    def _assert_not(self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]) -> int | None:
        return None if self._looks(value, at, flags) else rest(at)

    def _looks(self, value: Any, at: int, flags: int) -> bool:
        direction, inside = value
        begin = at if direction > 0 else at - inside.getwidth()[0]
        return begin >= 0 and self._run(list(inside), 0, begin, flags, lambda end: end) is not None

    def _groupref(self, value: Any, at: int, _: int, rest: Callable[[int], int | None]) -> int | None:
        if value not in self._groups:
            return None
        begin, end = self._groups[value]
        held = self._text[begin:end]
        self.steps += len(held)
        return rest(at + len(held)) if self._text.startswith(held, at) else None

    def _groupref_exists(
        self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]
    ) -> int | None:
        group, yes, no = value
        return self._run(list(yes if group in self._groups else no or ()), 0, at, flags, rest)

    def _max_repeat(self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]) -> int | None:
        low, high, inside = value
        if len(inside) == 1 and str(inside[0][0]) in _SINGLE:
            end = self._longest(value, at, flags)
            for stop in range(end, at + low - 1, -1):
                found = rest(stop)
                if found is not None:
                    return found
            return None

        def again(times: int, begin: int) -> int | None:
            if times < high:
                groups = dict(self._groups)
                found = self._run(
                    list(inside),
                    0,
                    begin,
                    flags,
                    lambda end: None if end == begin and times >= low else again(times + 1, end),
                )
                if found is not None:
                    return found
                self._groups = groups
            return rest(begin) if times >= low else None

        return again(0, at)

    def _min_repeat(self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]) -> int | None:
        low, high, inside = value
        if len(inside) == 1 and str(inside[0][0]) in _SINGLE:
            for times in range(high):  # no recursion for each character
                found = rest(at + times) if times >= low else None
                if found is not None:
                    return found
                if at + times >= len(self._text) or not self._fits(inside[0], at + times, flags):
                    return None
            return rest(at + high)

        def again(times: int, begin: int) -> int | None:
            found = rest(begin) if times >= low else None
            if found is not None or times >= high:
                return found
            return self._run(
                list(inside), 0, begin, flags, lambda end: None if end == begin else again(times + 1, end)
            )

        return again(0, at)

    def _possessive_repeat(
        self, value: Any, at: int, flags: int, rest: Callable[[int], int | None]
    ) -> int | None:
        low, high, inside = value
        times, end = 0, at
        while times < high:
            stop = self._run(list(inside), 0, end, flags, lambda stop: stop)
            if stop is None or stop == end:
                break
            times, end = times + 1, stop
        return rest(end) if times >= low else None

    def _longest(self, value: Any, at: int, flags: int) -> int:
        _, high, inside = value
        end, most = at, min(len(self._text), at + int(high))
        while end < most and self._fits(inside[0], end, flags):
            end += 1
        return end


def fits(item: Any, character: str, flags: int, *, ascii_only: bool) -> bool:
    """Return whether an element of one character matches a character."""
    kind, value = str(item[0]), item[1]
    if kind == "ANY":
        return bool(flags & _DOTALL) or character != "\n"
    cases = {character}
    if flags & _IGNORECASE:
        cases |= {character.lower(), character.upper()}
    codes = {ord(case) for case in cases if len(case) == 1}
    if kind in ("LITERAL", "NOT_LITERAL"):
        return (value in codes) == (kind == "LITERAL")
    negated = str(value[0][0]) == "NEGATE"
    return any(_in_class(part, codes, character, ascii_only) for part in value[negated:]) != negated


def _in_class(part: Any, codes: set[int], character: str, ascii_only: bool) -> bool:
    kind, value = str(part[0]), part[1]
    if kind == "LITERAL":
        return value in codes
    if kind == "RANGE":
        return any(value[0] <= code <= value[1] for code in codes)
    name = str(value).removeprefix("CATEGORY_")
    return _category(name.removeprefix("NOT_"), character, ascii_only=ascii_only) != name.startswith("NOT_")


def _category(name: str, character: str, *, ascii_only: bool) -> bool:
    if ascii_only:
        return (
            character
            in {
                "DIGIT": string.digits,
                "SPACE": string.whitespace,
                "WORD": string.ascii_letters + string.digits + "_",
            }[name]
        )
    if name == "WORD":
        return character.isalnum() or character == "_"
    return character.isdecimal() if name == "DIGIT" else character.isspace()


class Attacks:
    """Texts of growing length, made from an expression's own pieces.

    A text is a beginning, one unit repeated, and an end that may not fit; or a beginning repeated, which
    makes a search begin again and again. Beginnings are texts that match the expression up to a repeat or up
    to its end; units are texts that match what repeats, and one character of every kind that the expression
    tells apart there; ends are such characters, too.
    """

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        matcher = Matcher(pattern)
        self._flags, self._ascii = pattern.flags, matcher.ascii
        self._binary = isinstance(pattern.pattern, bytes)
        singles = list(_telling(matcher.tree))
        self.alphabet = self._representatives(singles)
        beginnings = {"", *self._beginnings(list(matcher.tree))}
        repeated = {text for body in _repeated(matcher.tree) for text in self._samples(list(body))}
        self.beginnings = sorted(beginnings, key=len)
        self.units = sorted({*self.alphabet, *repeated} - {""}, key=len)
        self.ends = ["", *self.alphabet[:MOST_ENDS]]

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        texts = [
            *product(self.beginnings, self.units, self.ends),
            *product([""], self.beginnings[1:], self.ends),
        ]
        # The same ones in every run, so that a failure comes again.
        yield from texts if len(texts) <= MOST_TEXTS else random.Random(0).sample(texts, MOST_TEXTS)

    def _representatives(self, singles: list[Any]) -> list[str]:
        """Return one character for each combination of elements that it fits."""
        literals = (chr(item[1]) for item in singles if str(item[0]) in ("LITERAL", "NOT_LITERAL"))
        ranges = (
            chr(part[1] if str(part[0]) == "LITERAL" else part[1][0])
            for item in singles
            if str(item[0]) == "IN"
            for part in item[1]
            if str(part[0]) in ("LITERAL", "RANGE")
        )
        kinds: dict[tuple[bool, ...], str] = {}
        for character in (*_SPECIMENS, *literals, *ranges):
            if not self._binary or ord(character) < 128:
                fitting = tuple(self._fits(item, character) for item in singles)
                kinds.setdefault(fitting, character)
        return list(kinds.values())

    def _fits(self, item: Any, character: str) -> bool:
        return fits(item, character, self._flags, ascii_only=self._ascii)

    def _beginnings(self, items: list[Any], before: str = "") -> Iterator[str]:
        """Return texts that match all before a long repeat, and all before its end."""
        for number, item in enumerate(items):
            if any(_repeated([item])):
                for start in self._samples(items[:number]):
                    yield before + start
                    for inside in _inside(str(item[0]), item[1]):
                        yield from self._beginnings(list(inside), before + start)
                yield from (before + text for text in self._samples(items[: number + 1]))

    def _samples(self, items: list[Any]) -> list[str]:
        """Return texts that match some elements: with the fewest repeats, and with one of each."""
        return sorted({"".join(self._sample(item, least) for item in items) for least in (0, 1)})

    def _sample(self, item: Any, least: int) -> str:
        kind, value = str(item[0]), item[1]
        if kind == "LITERAL":
            return chr(value)
        if kind in _SINGLE:
            return next((one for one in self._by_taste() if self._fits(item, one)), "")
        if kind in _MAX:
            return "".join(self._sample(one, least) for one in value[2]) * max(value[0], least)
        if kind == "BRANCH":
            return "".join(self._sample(one, least) for one in value[1][0])
        if kind == "SUBPATTERN":
            return "".join(self._sample(one, least) for one in value[3])
        return ""

    def _by_taste(self) -> list[str]:
        """Return the alphabet, letters before signs and white space last."""
        return sorted(self.alphabet, key=lambda one: (one.isspace(), not one.isalnum()))


def _inside(kind: str, value: Any) -> tuple[Any, ...]:
    if kind in _MAX:
        return (value[2],)
    if kind == "BRANCH":
        return tuple(value[1])
    if kind == "SUBPATTERN":
        return (value[3],)
    if kind in ("ASSERT", "ASSERT_NOT"):
        return (value[1],)
    if kind == "ATOMIC_GROUP":
        return (value,)
    return tuple(part for part in value[1:] if part) if kind == "GROUPREF_EXISTS" else ()


def _telling(items: Any) -> Iterator[Any]:
    """Return the elements of one character that stand in long repeats or next to them."""
    for number, item in enumerate(items):
        if any(_repeated([item])):
            yield from islice(_singles(items[number + 1 :]), 1)
            yield from islice(_singles(list(items)[:number][::-1]), 1)
            if str(item[0]) in _MAX:
                yield from _singles(item[1][2])
            else:
                for inside in _inside(str(item[0]), item[1]):
                    yield from _telling(inside)


def _singles(items: Any) -> Iterator[Any]:
    for item in items:
        if str(item[0]) in _SINGLE:
            yield item
        for inside in _inside(str(item[0]), item[1]):
            yield from _singles(inside)


def _repeated(items: Any) -> Iterator[Any]:
    """Return the bodies of all repeats that a text can make long."""
    for item in items:
        kind = str(item[0])
        if kind in _MAX and item[1][1] > INFINITE:
            yield item[1][2]
        for inside in _inside(kind, item[1]):
            yield from _repeated(inside)
