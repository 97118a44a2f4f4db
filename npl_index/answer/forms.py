"""The forms of an answer, and the cost of its parts in each form.

``json`` is for programs: the fields of :class:`~npl_index.answer.values.Tailored` by name. ``markdown`` is
for models: the unchanged passages, each under one mark with the headings above it, and a last mark with
pointers to the next sections::

    <!-- guide.md ## Trees > ### Pruning .92 -->
    ### Pruning

    Prune fruit trees in late winter.

    <!-- more:
    "guide > ## Compost" 210: Turn the heap every two weeks.
    no section has: bonsai -->

The cost of a part is the token count of its text as sent. Counts of parts add up because each part starts a
new token: in Markdown see :mod:`~npl_index.tokens.counting`; in JSON every text begins with the backslash of
its escaped line end, and no sign follows a letter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from npl_index.answer.assembling import digest, pointer, row, selector
from npl_index.answer.document_set import AnswerUnit, DocumentSet, SectionPart
from npl_index.answer.marks import change_marks, in_mark, note
from npl_index.answer.values import Guide, Pointer, RankedSection, Suggestion, Tailored
from npl_index.tokens.counting import starts_token
from npl_index.tokens.sections import dumped, escaped_tokens

NO_GUIDE = Guide()


# All forms have the same parameters.
# ruff: noqa: ARG002


class Form:
    """A form of answers, with the cost of their parts in tokens.

    This form has only the content and the marks of files. Other parts cost nothing, because they are shown
    elsewhere, such as on a command line.
    """

    lean = False
    """Whether the answer omits facts that its reader can infer."""

    shows_lines = False
    """Whether pointers show their matching lines."""

    def text(self, documents: DocumentSet, part: SectionPart) -> int:
        """Return the cost of a part's text with a blank line after it."""
        return max(part.size)

    def entry(self, documents: DocumentSet, document: int) -> int:
        """Return the additional cost of a document's first unit: the mark of the file."""
        return documents.counter.count(documents.mark(document) + "\n") if documents.several else 0

    def row(self, documents: DocumentSet, unit: AnswerUnit) -> str:
        """Return the description of a unit."""
        return ""

    def pointer(self, pointer: Pointer) -> str:
        """Return a pointer."""
        return ""

    def named(self, text: str) -> str:
        """Return a remark."""
        return ""

    def further(self, one: str | Suggestion) -> str:
        """Return a keyword or a suggestion."""
        return ""

    def frame(self, nothing: Tailored, documents: DocumentSet, held: tuple[str, ...]) -> str:
        """Return an answer without sections, with the text between its parts.

        :param nothing: the answer.
        :param held: see :class:`~npl_index.answer.values.Guide`.
        """
        return ""

    def write(
        self, answer: Tailored, documents: DocumentSet, kept: Sequence[AnswerUnit], guide: Guide = NO_GUIDE
    ) -> str:
        """Return the whole answer.

        :param guide: remarks for a model.
        """
        return answer.content


class Json(Form):
    """The fields by name, as compact JSON without escapes of characters outside ASCII.

    :param before: text to send before the answer.
    :param after: text to send after it.
    """

    lean = True

    def __init__(self, before: str = "", after: str = "") -> None:
        self._before, self._after = before, after

    def text(self, documents: DocumentSet, part: SectionPart) -> int:
        """Count the escaped text, once for each section."""
        if documents.is_whole(part):
            return documents.counts(part.document).escaped(part.section)
        return documents.once(
            ("escaped", part.place, part.lines),
            lambda: escaped_tokens(documents.part_text(part), documents.counter),
        )

    def entry(self, documents: DocumentSet, document: int) -> int:
        """Count the mark of the file."""
        return escaped_tokens(documents.mark(document), documents.counter) if documents.several else 0

    def row(self, documents: DocumentSet, unit: AnswerUnit) -> str:
        """Return the row."""
        return self.named(row(documents, unit, lean=self.lean))

    def pointer(self, pointer: Pointer) -> str:
        """Return the selector as a string."""
        return self.named(pointer.selector)

    def named(self, text: Any) -> str:
        """Return an entry of a list."""
        return dumped(_fields(text)) + ","

    def further(self, one: str | Suggestion) -> str:
        """Return a string, or the fields of a suggestion."""
        return self.named(one)

    def frame(self, nothing: Tailored, documents: DocumentSet, held: tuple[str, ...]) -> str:
        """Return the empty fields."""
        return self.write(nothing, documents, ())

    def write(
        self, answer: Tailored, documents: DocumentSet, kept: Sequence[AnswerUnit], guide: Guide = NO_GUIDE
    ) -> str:
        """Return the fields; lone surrogates, which are invalid in UTF-8, become U+FFFD."""
        text = f"{self._before}{dumped(_fields(answer))}{self._after}"
        if text.isascii():
            return text
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _fields(value: Any) -> Any:
    """Return a value for JSON, without fields that are ``None``."""
    if isinstance(value, tuple):
        return [_fields(part) for part in value]
    if not is_dataclass(value):
        return value
    every = ((name, getattr(value, name)) for name in _field_names(value.__class__))
    return {
        name: _fields(part) if part.__class__ is tuple else part for name, part in every if part is not None
    }


class Markdown(Form):
    """The unchanged passages, best first, each under a mark, and a last mark with pointers and remarks."""

    lean = True
    shows_lines = True

    def text(self, documents: DocumentSet, part: SectionPart) -> int:
        """Return the count of the text with a blank line after it, from the document's counts."""
        # Its first character may continue the last token of the mark before it.
        return part.size.followed + (0 if starts_token(documents.part_text(part)) else 2)

    def entry(self, documents: DocumentSet, document: int) -> int:
        """Count the path, which the first mark of a document has instead of a shorter name."""
        longer = documents.counter.count(documents.name(document, by_path=True)) + 2
        shorter = 0 if documents.complete else documents.counter.count(documents.name(document))
        return max(0, longer - shorter)

    def row(self, documents: DocumentSet, unit: AnswerUnit) -> str:
        """Return the mark."""
        return _mark(documents, unit)

    def pointer(self, pointer: Pointer) -> str:
        """Return the line of a pointer."""
        return f"{_pointer(pointer)}\n"

    def named(self, text: str) -> str:
        """Return the line of a remark."""
        return f"{in_mark(text)}\n"

    def frame(self, nothing: Tailored, documents: DocumentSet, held: tuple[str, ...]) -> str:
        """Return the last mark without its pointers."""
        return self.write(nothing, documents, (), Guide((), held)) + note("more:", documents.tag)

    def write(
        self, answer: Tailored, documents: DocumentSet, kept: Sequence[AnswerUnit], guide: Guide = NO_GUIDE
    ) -> str:
        """Return the texts under their marks."""
        pieces = [change_marks(answer.changed or ())]
        seen: set[int] = set()
        for unit in kept:
            pieces.append(_mark(documents, unit, by_path=unit.document not in seen))
            seen.add(unit.document)
            for part in unit.parts:
                pieces += (documents.part_text(part), "\n")
        notes = [*map(_pointer, guide.pointers), *_notes(answer, guide)]
        if guide.pointers or answer.absent or answer.weak:
            head = "more:\n" if guide.pointers else "\n"
            pieces.append(note(head + "\n".join(notes), documents.tag))
        elif notes:
            pieces.append(note("; ".join(notes), documents.tag))
        if answer.ranking is not None:
            pieces += [note(f"ranking {_ranked(hit)}", documents.tag) for hit in answer.ranking]
        return "".join(pieces)


def _mark(documents: DocumentSet, unit: AnswerUnit, *, by_path: bool = False) -> str:
    """Return the mark of a unit, with the headings above it."""
    place = in_mark(selector(documents, unit, above=True, by_path=by_path))
    shown = digest(documents, unit)
    return note(f"{place} {_score(unit.score)}{f' ={shown}' if shown else ''}", documents.tag)


def _pointer(pointer: Pointer) -> str:
    line = f": {in_mark(pointer.line)}" if pointer.line else ""
    number = f" in {pointer.sections} sections" if pointer.sections else ""
    return f"{_selector_in_quotes(pointer.selector)} {pointer.tokens}{number}{line}"


def _notes(answer: Tailored, guide: Guide) -> Iterator[str]:
    """Yield the remarks after the pointers."""
    if answer.missing_files is not None:
        yield partial_note(answer.missing_files)
    if not (answer.content or answer.absent or guide.pointers):
        yield "no text fits" if answer.truncated else "no text"
    if answer.excluded_tokens is not None:
        yield f"{answer.excluded_tokens} tokens excluded"
    for one in (*(answer.not_found or ()), *(answer.unreadable or ())):
        yield in_mark(" ".join(one.split()))
    if answer.absent:
        yield f"no section has: {', '.join(map(in_mark, answer.absent))}"
    if answer.weak:
        yield f"weak: best has {', '.join(map(in_mark, guide.held))}"


def partial_note(missing: int) -> str:
    """Return the remark on an answer from a part of a set."""
    return f"partial: {missing:,} file{'s' if missing > 1 else ''} not indexed yet, ask again"


def _ranked(hit: RankedSection) -> str:
    parts = (f"{name} {_score(getattr(hit, name))}" for name in ("score", "name", "content", "topic"))
    where = f"{hit.file}:{hit.start_line}" if hit.file else f"line {hit.start_line}"
    return f"{' '.join(parts)} {_selector_in_quotes(hit.selector)} {in_mark(where)}"


def _selector_in_quotes(selector: str) -> str:
    return dumped(in_mark(selector))


def _score(score: float) -> str:
    """Return a score to two places, without the leading zero."""
    return f"{score:.2f}".removeprefix("0").removesuffix(".00") or "0"


class Prices:
    """Costs of the parts of one answer in its form, in tokens as sent; costs add up.

    :param free: there is no budget, so nothing is counted.
    """

    def __init__(self, documents: DocumentSet, form: Form, *, free: bool = False) -> None:
        self.documents, self.form, self._free = documents, form, free

    def text(self, unit: AnswerUnit) -> int:
        """Return the cost of a unit's text."""
        return 0 if self._free else sum(self.form.text(self.documents, part) for part in unit.parts)

    def row(self, unit: AnswerUnit) -> int:
        """Return the cost of its description."""
        return self._tokens(("row", unit), lambda: self.form.row(self.documents, unit))

    def entry(self, document: int) -> int:
        """Return the additional cost of a document's first unit."""
        return 0 if self._free else self.form.entry(self.documents, document)

    def trace(self, unit: AnswerUnit) -> int:
        """Return the cost of naming a unit."""
        return 0 if self._free else self.pointer(pointer(self.documents, unit))

    def pointer(self, pointer: Pointer) -> int:
        """Return the cost of a pointer."""
        return self._tokens(("pointer", pointer), lambda: self.form.pointer(pointer))

    def named(self, text: str) -> int:
        """Return the cost of a remark."""
        return self._tokens(("named", text), lambda: self.form.named(text))

    def further(self, one: str | Suggestion) -> int:
        """Return the cost of a keyword or a suggestion."""
        return self._tokens(("further", one), lambda: self.form.further(one))

    def _tokens(self, part: Hashable, written: Callable[[], str]) -> int:
        if self._free:
            return 0
        return self.documents.once(part, lambda: self.documents.counter.count(written()))
