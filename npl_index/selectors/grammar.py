r"""The selector language, and its parser.

A selector is a path through the headings of a document::

    npl-conventions > ## Agent Delegation > ### Work-Log Flag
    ## Usage                      every section "Usage" of level 2
    guide // * [has-code]         every section of the document whose own text holds code
    ## Start...## End             from one heading up to the end of another's section

Grammar in EBNF; spaces are allowed between all elements::

    selector  = side , [ ( "..." | "…" ) , side ] ;
    side      = [ start ] , { part } ;                       (* not empty *)
    start     = ( name | "*" ) , { predicate } | predicate , { predicate } ;
    part      = ( ">" | "//" ) , [ marks ] , test | marks , test ;
    test      = ( name | "*" ) , { predicate } | predicate , { predicate } ;
    marks     = "#" | "##" | "###" | "####" | "#####" | "######" ;
    name      = quoted | plain ;
    quoted    = '"' , { character | '\"' | '\\' | '\>' | code } , '"' ;   (* or between single quotes *)
    code      = "\x" , 2 hex | "\u" , 4 hex | "\U" , 8 hex ; (* an invisible character *)
    predicate = "[" , ( trait | version | depth | lines | ordinal ) , "]" ;
    trait     = "has-" , name ;                              (* a field of Traits *)
    version   = "version" , ( "=" | "!=" | ">" | ">=" | "<" | "<=" ) , number ;
    depth     = "depth=" , digits ;                          (* at the end of a selector *)
    lines     = "lines=" , digits , "-" , digits ;           (* at the end of a selector *)
    ordinal   = digits ;                                     (* 1 is the first of equal headings *)

- ``start`` is a document, a versioned section of a document, or else any heading. A path in quotes is also a
  document. A selector that starts with a predicate selects documents by a version, and any section by a
  trait.
- ``>`` selects a direct child, ``//`` any descendant. ``marks`` select headings of exactly that level:
  direct children after ``>``, descendants otherwise. A document's title counts as the document, so
  the headings below the title are its direct children too.
- ``[depth=0]`` selects a section's own text, ``[depth=1]`` its direct subsections as well, and so on.
- ``[lines=10-20]`` selects those lines of the file within the section's own text; an answer shows them
  under the section's heading, and table rows under the head of their table.
- A range runs from the start of the first section to the end of the second.
- Traits have aliases: ``has-table``, ``has-example``, ``has-definition`` and ``has-definition-list``; ``_``
  may replace ``-``. An unknown predicate is not a syntax error; no section fulfils it.

A ``plain`` name ends at the next operator, so a copied heading line is a valid name. Inside it these are
text: code between backticks; ``>`` in ``<tag>``, ``->``, ``=>`` and ``>=``; ``//`` after a colon; ``#``
without a space before it, and a single ``#`` without a space after it; ``[`` unless a known predicate
follows; ``...`` unless marks, ``//`` or the name of the selector's document follow. Closing marks of a
heading line are dropped.

The language has no alternatives (give several selectors), no negation, and no patterns inside names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from npl_index.errors import SelectorSyntaxError, escaped
from npl_index.selectors.labels import CONTROL, label, without_controls
from npl_index.selectors.predicates import LIKELY, Conditions, read_predicate

MAX_LENGTH = 4_096
"""Maximum characters of a selector."""

MAX_STEPS = 32
"""Maximum steps of each side of a selector."""

_HINT_QUOTES = 'if the name continues after a quotation, put the whole name in quotes, with \\" inside'
_HINT_ONE_OPERATOR = "write one > or // between two names"
_HINT_INSIDE = (
    "write more # marks for the inner heading, ... for a range, quotes if the marks belong to the name, "
    "and a separate selector for each further section"
)

_PLAIN = re.compile(  # a text that _Reader.plain_end reads as one name in any context
    r"""
    (?!["'\[]) (?!\*\s*(?:\[|\Z))
    (?: [^<>\[\]#/.…`] | (?<=\w)\#+ | /(?!/) | \.(?!\.\.) | <[^<>\[\]`\s]+> | (?!LIKELY)\[[^<>\[\]#/.…`]*\] )+
    """.replace("LIKELY", LIKELY),
    re.IGNORECASE | re.VERBOSE,
)
_COMMENT_END, _ESCAPED_END = re.compile("(--!?)>"), r"\1\\>"
_ESCAPE = re.compile(r"""\\(?:([\\"'>])|x[0-9a-f]{2}|u[0-9a-f]{4}|U000[0-9a-f]{5})""")
_QUOTATION = re.compile(r"""(["'])((?:\\[\\"'>]|\\(?![\\"'>])|(?!\1)[^\\])*)\1""")
_DOTS = r"(?:\.\.\.(?!\.)|…)"  # in a longer run the last three count
_OPERATOR = rf"(?:[>#\[]|//|{_DOTS})"  # outside of a name
_MARK = rf"\#(?:\#|\s|\Z|{_OPERATOR})"  # a heading's mark after a space: two, or a space follows
_RANGE = re.compile(rf"{_DOTS}\s*")
_ENDED = re.compile(rf"\Z|{_DOTS}")
_FOLLOWED = re.compile(rf"\s*(?:\Z|{_OPERATOR})")
_CLOSING_MARKS = re.compile(rf"\s*#+(?!#)(?={_FOLLOWED.pattern})")
_PREDICATE = re.compile(LIKELY, re.IGNORECASE)
_LITERAL = re.compile(r"<(?!\s)[^<>]+(?<!\s)>|(`+)(?:.*?\1)?|://|->|=>|>=|.", re.DOTALL)
"""Characters of an unquoted name, although they may resemble an operator."""
_STOP = re.compile(rf">(?!=)|(?<=\s){_MARK}|{LIKELY}|//|{_DOTS}\s*(?:{_MARK}|//)", re.IGNORECASE)
"""An operator or a predicate after an unquoted name."""
_LINE_BREAKS = str.maketrans("\t\r\n", "   ")

Combinator = Literal["start", "child", "descendant"]


class Step(NamedTuple):
    """An element of a path.

    :param combinator: the sections to search: documents first (``start``), the direct children, or all
        descendants of the previous step's sections (of all documents in the first step).
    :param level: heading level, ``None`` for any.
    :param name: as :func:`label` returns it, ``None`` for any.
    :param conditions: its predicates.
    :param start: offset of the step in the selector's text.
    :param bracket: offset of its first predicate, or ``stop`` without one.
    :param stop: offset after the step.
    """

    combinator: Combinator
    level: int | None
    name: str | None
    conditions: Conditions
    start: int
    bracket: int
    stop: int


class Selector(NamedTuple):
    """A compiled selector.

    :param text: the selector as written, with spaces for line breaks and tabs.
    :param steps: the path, never empty.
    :param until: the path of the section that ends a range; empty without a range.
    """

    text: str
    steps: tuple[Step, ...]
    until: tuple[Step, ...] = ()

    @property
    def document(self) -> str | None:
        """The first name, which may be a document's; ``None`` if the selector does not start with a name."""
        return self.steps[0].name if self.steps[0].combinator == "start" else None

    @property
    def depth(self) -> int | None:
        """Number of selected levels of subsections; ``None`` for all."""
        conditions = self.steps[-1].conditions
        return conditions.depth if conditions.lines is None else 0

    @property
    def lines(self) -> tuple[int, int] | None:
        """First and last selected line, from 1; ``None`` for all."""
        return self.steps[-1].conditions.lines


@lru_cache(maxsize=1024)
def compile_selector(text: str) -> Selector:
    """Parse a selector; the last 1,024 selectors are cached.

    :raises SelectorSyntaxError: shows the unreadable character, and the expected text.
    """
    if len(text) > MAX_LENGTH:
        problem = f"a selector may have at most {MAX_LENGTH} characters"
        raise SelectorSyntaxError(problem, without_controls(text[: MAX_LENGTH + 100]), MAX_LENGTH)
    text = text.translate(_LINE_BREAKS)
    if control := CONTROL.search(text):
        problem = f"control character U+{ord(control[0]):04X}"
        raise SelectorSyntaxError(problem, without_controls(text), control.start())
    return _Reader(text).selector()


def spell(name: str) -> str:
    """Return a label as a name in a selector: unchanged where possible, otherwise in quotes.

    Invisible characters are escaped, and no name can end an HTML comment, so that any answer can contain it.
    """
    return name if escaped(name) == name and _PLAIN.fullmatch(name) else quoted(name)


def quoted(name: str) -> str:
    """Return a label in quotes, as :meth:`_Reader.name` reads it."""
    name = escaped(name.replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{_COMMENT_END.sub(_ESCAPED_END, name)}"'


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character of an escape; a numeric escape may only stand for an invisible character."""
    if escape[1]:
        return escape[1]
    character = chr(int(escape[0][2:], 16))
    return escape[0] if escaped(character) == character else character


def _limit(step: Step) -> str | None:
    """Return the name of the predicate that limits a step's selected text, or ``None`` without one."""
    if step.conditions.depth is not None:
        return "depth"
    return None if step.conditions.lines is None else "lines"


@dataclass
class _Reader:
    """A parser of a selector, from left to right.

    :param at: offset of the next character.
    :param document: source of the name that the selector starts with.
    """

    text: str
    at: int = 0
    document: str = ""

    def selector(self) -> Selector:
        self.skip()
        steps = self.side("expected a name, # marks, > or //")
        if self.at == len(self.text):
            return Selector(self.text, steps)
        self.skip(1 if self.text[self.at] == "…" else 3)
        until = self.side("expected the heading that ends the range")
        if self.at < len(self.text):
            raise self.error("a range has only two ends")
        for step in (steps[-1], until[-1]):
            if (limit := _limit(step)) is not None:
                raise self.error(f"[{limit}=…] cannot be used in a range", step.bracket)
        return Selector(self.text, steps, until)

    def side(self, expected: str) -> tuple[Step, ...]:
        if _ENDED.match(self.text, self.at):
            raise self.error(expected)
        steps: list[Step] = []
        if not self.text.startswith((">", "#", "//"), self.at):
            steps.append(self.start())
        while not _ENDED.match(self.text, self.at):
            if len(steps) == MAX_STEPS:
                raise self.error(f"a selector may have at most {MAX_STEPS} steps")
            if steps and (limit := _limit(steps[-1])) is not None:
                raise self.error(f"[{limit}=…] must end the selector", steps[-1].bracket)
            steps.append(self.part(steps[-1].level if steps else None))
        return tuple(steps)

    def start(self) -> Step:
        begin = self.at
        if self.text[begin] != "[":
            name = self.name(marked=False, expected="expected a name")
            self.document = self.document or self.text[begin : self.at].rstrip()
            return self.step("start", None, name, begin)
        step = self.step("start", None, None, begin)
        asks_for_traits = step.conditions.traits or step.conditions.unknown
        return step._replace(combinator="descendant") if asks_for_traits else step

    def part(self, outer: int | None) -> Step:
        begin = self.at
        combinator: Combinator = "descendant" if self.text[begin] == "#" else self.combinator()
        place, rest = self.at, self.text[self.at :]
        marks = len(rest) - len(rest.lstrip("#"))
        self.skip(marks)
        if marks > 6:
            raise self.error("headings have at most six # marks", place + 6)
        if place == begin and outer is not None and marks <= outer:
            problem = f"a {'#' * marks} heading cannot lie inside a {'#' * outer} heading"
            raise self.error(problem, place, hint=_HINT_INSIDE)
        name = None
        if not _PREDICATE.match(self.text, self.at):
            expected = f"expected a name or * after {' '.join(self.text[begin : self.at].split())}"
            name = self.name(marked=marks > 0, expected=expected)
        return self.step(combinator, marks or None, name, begin)

    def combinator(self) -> Combinator:
        """Read the combinator before a part's name or marks."""
        sign = next((sign for sign in (">", "//") if self.text.startswith(sign, self.at)), "")
        if not sign:
            raise self.error("expected >, //, # marks, [ or ...", hint=_HINT_QUOTES)
        self.skip(len(sign))
        if self.text.startswith((">", "//") if sign == ">" else (">", "/"), self.at):
            raise self.error(f"expected a name, * or # marks after {sign}", hint=_HINT_ONE_OPERATOR)
        return "child" if sign == ">" else "descendant"

    def step(self, combinator: Combinator, level: int | None, name: str | None, begin: int) -> Step:
        """Read the predicates and finish a step."""
        bracket = stop = begin + len(self.text[begin : self.at].rstrip())
        conditions = Conditions()
        self.skip()
        if self.text.startswith("[", self.at):
            bracket = self.at
        while self.text.startswith("[", self.at):
            conditions, stop = read_predicate(self.text, self.at, conditions)
            self.skip(stop - self.at)
        return Step(combinator, level, name, conditions, begin, bracket, stop)

    def name(self, *, marked: bool, expected: str) -> str | None:
        begin = self.at
        quote = self.text[begin : begin + 1]
        if quote == "*" and _FOLLOWED.match(self.text, begin + 1):
            self.at += 1
            return None
        quotation = _QUOTATION.match(self.text, begin)
        if quotation is None and quote == '"':
            raise self.error("the quotation mark is not closed")
        # After marks, or with an apostrophe, it may be a heading that only begins with a quotation.
        if quotation and (_FOLLOWED.match(self.text, quotation.end()) or (quote == '"' and not marked)):
            self.at = quotation.end()
            name = label(_ESCAPE.sub(_unescaped, quotation[2]))
        else:
            while not self.stops() and (literal := _LITERAL.match(self.text, self.at)):
                self.at = literal.end()
            name = label(self.text[begin : self.at])
            if not name:
                raise self.error(expected, begin)
        if marked and (closing := _CLOSING_MARKS.match(self.text, self.at)):
            self.at = closing.end()
        return name

    def stops(self) -> bool:
        """Return whether an operator, a predicate or the end of a range ends an unquoted name here."""
        if _STOP.match(self.text, self.at):
            return True
        dots = _RANGE.match(self.text, self.at)
        return dots is not None and self.document != "" and self.text.startswith(self.document, dots.end())

    def skip(self, count: int = 0) -> None:
        """Skip characters and the spaces after them."""
        rest = self.text[self.at + count :]
        self.at = len(self.text) - len(rest.lstrip())

    def error(self, problem: str, at: int | None = None, *, hint: str | None = None) -> SelectorSyntaxError:
        return SelectorSyntaxError(problem, self.text, self.at if at is None else at, hint=hint)
