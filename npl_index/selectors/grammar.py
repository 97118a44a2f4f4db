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
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

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

_LIKELY_PREDICATE = re.compile(LIKELY, re.IGNORECASE)
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
_ELLIPSIS = re.compile(r"\.\.\.(?!\.)|…")
_SPACES = re.compile(r"\s*")
_LINE_BREAKS = str.maketrans("\t\r\n", "   ")

Combinator = Literal["start", "child", "descendant"]


@dataclass(frozen=True, slots=True)
class Step:
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


@dataclass(frozen=True, slots=True)
class Selector:
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


def compile_selector(text: str) -> Selector:
    """Parse a selector; the last 1,024 selectors are cached.

    :raises SelectorSyntaxError: shows the unreadable character, and the expected text.
    """
    if len(text) > MAX_LENGTH:
        problem = f"a selector may have at most {MAX_LENGTH} characters"
        raise SelectorSyntaxError(problem, without_controls(text[: MAX_LENGTH + 100]), MAX_LENGTH)
    return _compile(text)


@lru_cache(maxsize=1024)
def _compile(text: str) -> Selector:
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
    """Return a label in quotes, as :meth:`_Reader.quoted` reads it."""
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
        self.advance(0)
        steps = self.side("expected a name, # marks, > or //")
        if self.at == len(self.text):
            return Selector(self.text, steps)
        self.advance(self.ellipsis(self.at))
        until = self.side("expected the heading that ends the range")
        if self.at < len(self.text):
            raise self.error("a range has only two ends")
        for step in (steps[-1], until[-1]):
            if (limit := _limit(step)) is not None:
                raise self.error(f"[{limit}=…] cannot be used in a range", step.bracket)
        return Selector(self.text, steps, until)

    def side(self, expected: str) -> tuple[Step, ...]:
        if self.ended(self.at):
            raise self.error(expected)
        steps: list[Step] = []
        if self.text[self.at] not in ">#" and not self.text.startswith("//", self.at):
            steps.append(self.start())
        while not self.ended(self.at):
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
        return replace(step, combinator="descendant") if asks_for_traits else step

    def part(self, outer: int | None) -> Step:
        begin = self.at
        combinator = self.combinator()
        marks = self.run("#", self.at)
        if marks > 6:
            raise self.error("headings have at most six # marks", self.at + 6)
        if marks and self.at == begin and outer is not None and marks <= outer:
            problem = f"a {'#' * marks} heading cannot lie inside a {'#' * outer} heading"
            raise self.error(problem, hint=_HINT_INSIDE)
        self.advance(marks)
        name = None
        if not self.is_predicate(self.at):
            expected = f"expected a name or * after {' '.join(self.text[begin : self.at].split())}"
            name = self.name(marked=marks > 0, expected=expected)
        return self.step(combinator, marks or None, name, begin)

    def combinator(self) -> Combinator:
        """Read the combinator before a part's name or marks."""
        if self.text[self.at] == "#":
            return "descendant"
        sign = next((sign for sign in (">", "//") if self.text.startswith(sign, self.at)), "")
        if not sign:
            raise self.error("expected >, //, # marks, [ or ...", hint=_HINT_QUOTES)
        self.advance(len(sign))
        if self.text.startswith((">", "//") if sign == ">" else (">", "/"), self.at):
            raise self.error(f"expected a name, * or # marks after {sign}", hint=_HINT_ONE_OPERATOR)
        return "child" if sign == ">" else "descendant"

    def step(self, combinator: Combinator, level: int | None, name: str | None, begin: int) -> Step:
        """Read the predicates and finish a step."""
        bracket = stop = begin + len(self.text[begin : self.at].rstrip())
        conditions = Conditions()
        self.advance(0)
        if self.text.startswith("[", self.at):
            bracket = self.at
        while self.text.startswith("[", self.at):
            conditions, stop = read_predicate(self.text, self.at, conditions)
            self.at = self.after_spaces(stop)
        return Step(combinator, level, name, conditions, begin, bracket, stop)

    def name(self, *, marked: bool, expected: str) -> str | None:
        begin = self.at
        quote = self.text[begin : begin + 1]
        if quote == "*" and self.follows(begin + 1):
            self.at += 1
            return None
        if quote in ('"', "'"):
            quotation = self.quoted()
            if quotation is None and quote == '"':
                raise self.error("the quotation mark is not closed")
            # After marks, or with an apostrophe, it may be a heading that only begins with a quotation.
            if quotation is not None and (self.follows(quotation[1]) or (quote == '"' and not marked)):
                self.at = quotation[1]
                self.drop_closing_marks(marked)
                return label(quotation[0])
        self.at = self.plain_end()
        name = label(self.text[begin : self.at])
        if not name:
            raise self.error(expected, begin)
        self.drop_closing_marks(marked)
        return name

    def quoted(self) -> tuple[str, int] | None:
        """Read a quotation; return its text and the offset after it, or ``None`` if it is not closed."""
        quotation = _QUOTATION.match(self.text, self.at)
        return (_ESCAPE.sub(_unescaped, quotation[2]), quotation.end()) if quotation else None

    def plain_end(self) -> int:
        """Return the end of the unquoted name that starts here."""
        i = self.at
        while i < len(self.text) and not self.stops(i):
            i += self.literal(i)
        return i

    def literal(self, i: int) -> int:
        """Return the number of characters here that belong to a name although they resemble an operator."""
        if self.text[i] == "<":
            close = self.text.find(">", i)
            inner = self.text[i + 1 : max(close, 0)]
            if inner and inner == inner.strip() and "<" not in inner:
                return close - i + 1
        if self.text[i] == "`":
            fence = "`" * self.run("`", i)
            close = self.text.find(fence, i + len(fence))
            return len(fence) if close < 0 else close - i + len(fence)
        if self.text.startswith("://", i):
            return 3
        return 2 if self.text.startswith(("->", "=>", ">="), i) else 1

    def stops(self, i: int) -> bool:
        """Return whether an operator or a predicate ends an unquoted name here."""
        character = self.text[i]
        if character == ">":
            return not self.text.startswith(">=", i)
        if character == "#":
            return self.text[i - 1].isspace() and self.is_mark(i)
        if character == "[":
            return self.is_predicate(i)
        if character in ".…":
            return self.is_range(i)
        return self.text.startswith("//", i)

    def is_predicate(self, i: int) -> bool:
        """Return whether a known predicate begins here, where a name could also stand."""
        return _LIKELY_PREDICATE.match(self.text, i) is not None

    def is_mark(self, i: int) -> bool:
        """Return whether ``#`` after a space is a heading's mark: two of them, or a space follows."""
        behind = i + self.run("#", i)
        return (
            behind > i + 1 or behind == len(self.text) or self.text[behind].isspace() or self.operator(behind)
        )

    def is_range(self, i: int) -> bool:
        """Return whether ``...`` inside an unquoted name separates the ends of a range."""
        if not self.ellipsis(i):
            return False
        behind = self.after_spaces(i + self.ellipsis(i))
        if self.text.startswith("#", behind):
            return self.is_mark(behind)
        return self.text.startswith("//", behind) or (
            self.document != "" and self.text.startswith(self.document, behind)
        )

    def drop_closing_marks(self, marked: bool) -> None:
        """Skip the ``#`` marks that may close a heading's line."""
        begin = self.after_spaces(self.at)
        behind = begin + self.run("#", begin)
        if marked and behind > begin and self.follows(behind):
            self.at = behind

    def operator(self, i: int) -> bool:
        """Return whether the text here, outside of a name, can follow a name."""
        return self.text[i] in ">#[" or self.text.startswith("//", i) or self.ellipsis(i) > 0

    def follows(self, i: int) -> bool:
        """Return whether, after spaces, the selector ends or an operator follows."""
        i = self.after_spaces(i)
        return self.ended(i) or self.operator(i)

    def ended(self, i: int) -> bool:
        """Return whether this side of the selector ends here."""
        return i == len(self.text) or self.ellipsis(i) > 0

    def ellipsis(self, i: int) -> int:
        """Return the length of the range operator here, or 0; in a longer run the last three dots count."""
        dots = _ELLIPSIS.match(self.text, i)
        return len(dots[0]) if dots else 0

    def run(self, character: str, i: int) -> int:
        """Count the repetitions of a character here."""
        rest = self.text[i:]
        return len(rest) - len(rest.lstrip(character))

    def after_spaces(self, i: int) -> int:
        """Return the offset of the next character that is not a space."""
        spaces = _SPACES.match(self.text, i)
        return spaces.end() if spaces else i

    def advance(self, count: int) -> None:
        """Skip characters and the spaces after them."""
        self.at = self.after_spaces(self.at + count)

    def error(self, problem: str, at: int | None = None, *, hint: str | None = None) -> SelectorSyntaxError:
        return SelectorSyntaxError(problem, self.text, self.at if at is None else at, hint=hint)
