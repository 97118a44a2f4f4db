"""The forms of an answer, and the cost of its parts in each form.

``json`` is for programs: the fields of :class:`~npl_index.answer.values.Tailored` by name. ``markdown`` is
for models: the unchanged passages, each under one mark with the headings above it, and a last mark with
pointers to the next sections::

    <!-- packed.md ## Trees > ### Pruning .92 -->
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

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

from npl_index.answer.document_set import DocumentSet, SectionPart
from npl_index.answer.marks import change_marks, file_mark, in_mark, mark
from npl_index.answer.units import AnswerUnit, Pointer, digest, front_title, row, selector
from npl_index.answer.values import RankedSection, Tailored, as_dict
from npl_index.tokens.counting import starts_token
from npl_index.tokens.sections import dumped, escaped_tokens

# All forms have the same parameters.
# ruff: noqa: ARG002


class Form:
    """A form of answers, with the cost of their parts in tokens.

    This form has only the content and the marks of files. Other parts cost nothing, because they are shown
    elsewhere, such as on a command line.

    :ivar documents: documents of one answer, see :meth:`on`.
    :ivar tag: nonce of its marks, see :func:`~npl_index.answer.marks.tag_for`.
    :ivar covered: words of the question in the best section, if these are too few.
    :ivar is_list: whether pointers alone answer the request.
    """

    documents: DocumentSet
    tag = ""
    covered: tuple[str, ...] = ()
    is_list = False

    lean = False
    """Whether the answer omits facts that its reader can infer."""

    for_models = False
    """Whether models read the answer: it shows matching lines, and neither keywords nor suggestions."""

    def on(self, documents: DocumentSet, tag: str = "", covered: tuple[str, ...] = ()) -> Form:
        """Return the form of one answer."""
        form = copy(self)
        form.documents, form.tag, form.covered = documents, tag, covered
        return form

    def mark(self, document: int) -> str:
        """Return the mark of the file whose text follows; empty for a single document."""
        return file_mark(self.documents.path(document), self.tag) if self.documents.several else ""

    def text(self, part: SectionPart) -> int:
        """Return the cost of a part's text with a blank line after it."""
        return max(part.size)

    def entry(self, document: int) -> int:
        """Return the additional cost of a document's first unit: the mark of the file."""
        return self.documents.counter.count(self.mark(document) + "\n") if self.documents.several else 0

    def row(self, *_: Any, **__: Any) -> str:
        """Return the description of a unit, a pointer, a remark, a keyword or a suggestion."""
        return ""

    pointer = named = row

    def note(self, pointer: Pointer) -> str | None:
        """Return the note on a pointer."""
        return pointer.note

    def frame(self, answer: Tailored) -> str:
        """Return an answer without parts, with the text between them."""
        return ""

    def write(self, answer: Tailored, kept: Sequence[AnswerUnit], pointers: Sequence[Pointer]) -> str:
        """Return the whole answer.

        :param kept: units of the content, best first.
        :param pointers: pointers to further sections, best first.
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

    def text(self, part: SectionPart) -> int:
        """Count the escaped text, once for each section."""
        return part.escaped

    def entry(self, document: int) -> int:
        """Count the mark of the file."""
        return escaped_tokens(self.mark(document), self.documents.counter) if self.documents.several else 0

    def row(self, unit: AnswerUnit) -> str:
        """Return the row."""
        return self.named(row(self.documents, unit, lean=self.lean))

    def pointer(self, pointer: Pointer) -> str:
        """Return the selector as a string, and its note."""
        note = self.note(pointer)
        return self.named(pointer.selector) + (self.named({pointer.selector: note}) if note else "")

    def note(self, pointer: Pointer) -> str | None:
        """Return the note on a pointer, in a list after its size."""
        size = f"{pointer.unit.tokens} tokens" if self.is_list else None
        return "; ".join(filter(None, (size, pointer.note))) or None

    def named(self, text: Any) -> str:
        """Return an entry of a list."""
        return dumped(as_dict(text)) + ","

    def frame(self, answer: Tailored) -> str:
        """Return the empty fields."""
        return self.write(answer, (), ())

    def write(self, answer: Tailored, kept: Sequence[AnswerUnit], pointers: Sequence[Pointer]) -> str:
        """Return the fields; lone surrogates, which are invalid in UTF-8, become U+FFFD."""
        text = f"{self._before}{dumped(as_dict(answer))}{self._after}"
        if text.isascii():
            return text
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


class Markdown(Form):
    """The unchanged passages, best first, each under a mark, and a last mark with pointers and remarks."""

    lean = True
    for_models = True

    def text(self, part: SectionPart) -> int:
        """Return the count of the text with a blank line after it, from the document's counts."""
        text = self._shown(part)
        heading = 0 if text is part.text else self.documents.heading(part.place)[1]
        # Its first character may continue the last token of the mark before it.
        return part.size.followed - heading + (0 if starts_token(text) else 2)

    def _shown(self, part: SectionPart) -> str:
        """Return the text without the heading, which the mark of a ranked section has."""
        heading = "" if part.chosen else self.documents.heading(part.place)[0]
        body = part.text.removeprefix(heading).lstrip("\n")
        return body if heading and body and part.text.startswith(heading) else part.text

    def entry(self, document: int) -> int:
        """Count the path, which the first mark of a document has instead of a shorter name."""
        documents = self.documents
        longer = documents.counter.count(documents.name(document, by_path=True)) + 2
        shorter = 0 if documents.complete else documents.counter.count(documents.name(document))
        return max(0, longer - shorter)

    def row(self, unit: AnswerUnit, *, by_path: bool = False) -> str:
        """Return the mark of a unit, with the headings above it."""
        documents = self.documents
        place = in_mark(selector(documents, unit, above=True, by_path=by_path))
        shown = digest(documents, unit)
        about = in_brackets(
            front_title(documents, unit.document, unit.parts[0].section), documents.note(unit.parts[0])
        )
        return mark(f"{place} {_score(unit.score)}{about}{f' ={shown}' if shown else ''}", self.tag)

    def pointer(self, pointer: Pointer) -> str:
        """Return the line of a pointer."""
        return f"{_pointer(pointer)}\n"

    def named(self, text: str) -> str:
        """Return the line of a remark."""
        return f"{in_mark(text)}\n"

    def frame(self, answer: Tailored) -> str:
        """Return the remarks and the last mark without its pointers."""
        return self.write(answer, (), ()) + mark("more:", self.tag)

    def write(self, answer: Tailored, kept: Sequence[AnswerUnit], pointers: Sequence[Pointer]) -> str:
        """Return the texts under their marks."""
        pieces = [mark(answer.indexed, self.tag)] if answer.indexed else []
        pieces.append(change_marks(answer.changed or ()))
        seen: set[int] = set()
        for unit in kept:
            pieces.append(self.row(unit, by_path=unit.document not in seen))
            seen.add(unit.document)
            for part in unit.parts:
                pieces += (self._shown(part), "\n")
        notes = [*map(_pointer, pointers), *self._notes(answer, bool(pointers))]
        if pointers or answer.absent or answer.advice or answer.weak:
            more = f"{answer.advice}; nearest:\n" if answer.advice else "more:\n"
            head = more if pointers else "\n"
            pieces.append(mark(head + "\n".join(notes), self.tag))
        elif notes:
            pieces.append(mark("; ".join(notes), self.tag))
        pieces += [mark(f"ranking {_ranked(hit)}", self.tag) for hit in answer.ranking or ()]
        return "".join(pieces)

    def _notes(self, answer: Tailored, has_pointers: bool) -> Iterator[str]:
        """Yield the remarks after the pointers."""
        if not (answer.content or answer.absent or answer.advice or has_pointers):
            yield "no text fits" if answer.truncated else "no text"
        if answer.excluded_tokens is not None:
            yield f"{answer.excluded_tokens} tokens excluded"
        for remark in (*(answer.not_found or ()), *(answer.unreadable or ())):
            yield in_mark(" ".join(remark.split()))
        absent = f"no section has: {', '.join(map(in_mark, answer.absent))}" if answer.absent else ""
        unserved = f"not served: {in_mark(answer.not_served)}" if answer.not_served else ""
        absent = ". ".join(filter(None, (absent, unserved)))
        yield from filter(None, (absent, None if has_pointers else answer.advice))
        if answer.weak:
            yield f"weak: best has {', '.join(map(in_mark, self.covered))}"


def _pointer(pointer: Pointer) -> str:
    line = f": {in_mark(pointer.line)}" if pointer.line else ""
    unit = pointer.unit
    number = f" in {len(unit.parts)} sections" if unit.ranges else ""
    about = in_brackets(pointer.page, pointer.note)
    return f"{dumped(in_mark(pointer.selector))} {unit.tokens}{number}{about}{line}"


def in_brackets(*texts: str | None) -> str:
    """Return texts about a section, in brackets after a space; ``""`` without any."""
    about = "; ".join(filter(None, texts))
    return f" ({in_mark(about)})" if about else ""


def partial_note(indexed: int, missing: int) -> str | None:
    """Return the remark on an answer from a part of the files; ``None`` if all are indexed.

    :param indexed: number of files that are indexed.
    :param missing: number of the others.
    """
    asked = f"{indexed:,} of {indexed + missing:,} files are indexed; ask again for the others"
    return asked if missing else None


def _ranked(hit: RankedSection) -> str:
    parts = [f"{name} {_score(getattr(hit, name))}" for name in ("score", "name", "content", "topic")]
    parts += ["by", *(f"{name} {gain:.2g}" for name, gain in hit.signals.items())]
    where = f"{hit.file}:{hit.start_line}" if hit.file else f"line {hit.start_line}"
    return f"{' '.join(parts)} {dumped(in_mark(hit.selector))} {in_mark(where)}"


def _score(score: float) -> str:
    """Return a score to two places, without the leading zero."""
    return f"{score:.2f}".removeprefix("0").removesuffix(".00") or "0"
