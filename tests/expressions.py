"""Long texts that make a backtracking matcher slow, and a process that tries them.

    python -m tests.expressions

Reads expressions from standard input, each as ``(pattern, flags, use)``, and tries each with many texts. It
names each text before it tries it. The system ends a process that a text costs more than :data:`SECONDS`:
where the time grows with the text it is milliseconds, and where it grows with its square many seconds.
"""

import ast
import random
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from tests.conftest import THOROUGH

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_compile
    import sre_parse

SECONDS = 0.5
"""Processor time for one text."""

LENGTH = 50_000
"""Characters of a text."""

INFINITE = 64
"""A repeat with a greater limit can be made long by a text."""

MOST_ENDS = 8
"""The maximum number of characters that end a text; nearly any of them fits nowhere."""

MOST_TEXTS = 300 if THOROUGH else 150
"""The maximum number of texts for an expression; if beginnings, units and ends make more, some are drawn."""

_MAX = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
_SINGLE = {"LITERAL", "NOT_LITERAL", "ANY", "IN"}
_SPECIMENS = "aAbzZ09_- \t\n\r\x0b\x00.,:;#'\"`*[](){}<>/\\|=!?@^$%&+~éßΑЖא中\u0301\u3000\u200b🎯\U0001f64b"


class Attacks:
    """Texts of growing length, made from an expression's own pieces.

    A text is a beginning, one unit repeated, and an end that may not fit; or a beginning repeated, which
    makes a search begin again and again. Beginnings are texts that match the expression up to a repeat or up
    to its end; units are texts that match what repeats, and one character of every kind that the expression
    tells apart there; ends are such characters, too.
    """

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        tree = sre_parse.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self._pattern, self._state = pattern, tree.state
        self._binary = isinstance(pattern.pattern, bytes)
        self._compiled: dict[int, re.Pattern[Any]] = {}
        singles = list(_telling(tree))
        self.alphabet = self._representatives(singles)
        beginnings = {"", *self._beginnings(list(tree))}
        repeated = {text for body in _repeated(tree) for text in self._samples(list(body))}
        units = {*self.alphabet, *repeated} - {""}
        self.beginnings, self.units = (sorted(sorted(texts), key=len) for texts in (beginnings, units))
        self.ends = ["", *self.alphabet[:MOST_ENDS]]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Give each text as an expression of Python, and itself."""
        for parts in (self.beginnings, self.units, self.ends), ([""], self.beginnings[1:], [""]):
            texts = list(product(*parts))
            # The same ones in every run, so that a failure comes again.
            drawn = texts if len(texts) <= MOST_TEXTS else random.Random(0).sample(texts, MOST_TEXTS)
            for before, unit, after in drawn:
                times = LENGTH // len(unit)
                text = before + unit * times + after
                yield f"{before!r} + {unit!r} * {times} + {after!r}", self._encoded(text)

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
        if id(item) not in self._compiled:
            alone = sre_parse.SubPattern(self._state, [item])
            self._compiled[id(item)] = sre_compile.compile(alone, self._pattern.flags & ~re.DEBUG)
        return self._compiled[id(item)].match(self._encoded(character)) is not None

    def _encoded(self, text: str) -> Any:
        return text.encode("latin-1") if self._binary else text

    def _beginnings(self, items: list[Any], before: str = "") -> Iterator[str]:
        """Return texts that match all before a long repeat, and all before its end."""
        for number, item in enumerate(items):
            if any(_repeated([item])):
                for start in self._starts(items[:number], item):
                    yield before + start
                    for inside in _inside(str(item[0]), item[1]):
                        yield from self._beginnings(list(inside), before + start)
                yield from (before + text for text in self._samples(items[: number + 1]))

    def _starts(self, items: list[Any], after: Any) -> list[str]:
        """Return texts that match some elements; if what is after looks back, with each sign as the last."""
        if not items or str(items[-1][0]) not in _SINGLE or "ASSERT" not in repr(after):
            return self._samples(items)
        signs = [sign for sign in self.alphabet if self._fits(items[-1], sign)]
        return [text + sign for text in self._samples(items[:-1]) for sign in signs]

    def _samples(self, items: list[Any]) -> list[str]:
        """Return texts that match some elements: with the fewest repeats, and with one of each."""
        return sorted({"".join(self._sample(item, least) for item in items) for least in (0, 1)})

    def _sample(self, item: Any, least: int) -> str:
        kind, value = str(item[0]), item[1]
        if kind == "LITERAL":
            return chr(value)
        if kind in _SINGLE:
            return next((sign for sign in self._by_taste() if self._fits(item, sign)), "")
        if kind in _MAX:
            return "".join(self._sample(part, least) for part in value[2]) * max(value[0], least)
        if kind == "BRANCH":
            return "".join(self._sample(part, least) for part in value[1][0])
        if kind == "SUBPATTERN":
            return "".join(self._sample(part, least) for part in value[3])
        return ""

    def _by_taste(self) -> list[str]:
        """Return the alphabet, letters before signs and white space last."""
        return sorted(self.alphabet, key=lambda sign: (sign.isspace(), not sign.isalnum()))


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
    """Return the single-character elements in long repeats or next to them."""
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


def main() -> None:
    for line in sys.stdin:
        source, flags, use = ast.literal_eval(line)
        pattern = re.compile(source, flags)
        for name, text in Attacks(pattern):
            print(f"{source!r} {use} {name}", flush=True)
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            list(pattern.finditer(text) if use == "search" else [getattr(pattern, use)(text)])
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


if __name__ == "__main__":
    main()
