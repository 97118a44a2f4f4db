"""Audit of an answer: every section of the documents with its score and its state.

The states come from the ranking and the packing of the answer itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from npl_index.answer.document_set import DocumentSet, SectionPart
from npl_index.answer.finding import matching_line
from npl_index.answer.forms import Form
from npl_index.answer.suggestions import Companions, Place
from npl_index.answer.tailoring import Answered, Findings, TailorRequest, answer, find
from npl_index.answer.values import TailoredSection
from npl_index.choices import Weights
from npl_index.ranking.analysis import Word, extract_keywords, terms
from npl_index.ranking.scoring import DEFAULT_WEIGHTS, shares_of, topic_terms
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select_in

TAKEN, CUT, NO_ROOM, BELOW, KNOWN = "taken", "cut", "no_room", "below", "known"
"""States of a section: completely in the answer; partly in the answer; wanted, but without room; matching,
but not worth its tokens; excluded by the caller. Other sections have no state."""

MAX_MATCHES = 500
"""Maximum matching sections in a list; hits are fewer, but a selector may match a whole file."""


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The shown part of the documents.

    :param opened: names of files whose sections are shown, in addition to those with a match.
    :param matching: only files with a match.
    :param section: selector of one section to show completely.
    :param offset: rows to skip; each file is a row, and each section of an open file.
    :param limit: maximum number of rows.
    :param matches: also list all matching sections, best first.
    """

    opened: tuple[str, ...] = ()
    matching: bool = False
    section: str | None = None
    offset: int = 0
    limit: int = 200
    matches: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Some lines of a section that are in the answer.

    :param start_line: first line, from 1.
    :param end_line: line after the last one.
    :param text: the text in the answer, under its heading.
    """

    start_line: int
    end_line: int
    text: str


@dataclass(frozen=True, slots=True)
class AuditedSection:
    """A section's own text, up to the next heading.

    :param selector: its selector, with the path of the file, so that it is unique in any set of documents.
    :param title: its heading; for the text before the first heading, the title in the front matter or the
        document's name.
    :param level: level of the heading, 0 for the text before the first one.
    :param start_line: first line in the file, from 1.
    :param tokens: tokens of its text.
    :param state: its state, see the module; ``None`` without a match.
    :param rank: its rank, from 1; ``None`` if it is not ranked.
    :param score: 0 to 1.
    :param name: part of the score for heading and heading path.
    :param content: share of the question's words in heading, path and text.
    :param topic: part of the score for topics.
    :param taken_tokens: tokens of its text in the answer.
    :param chosen: true if a selector matches it.
    :param file: its document, outside a list of files.
    :param path: headings above it, in a match.
    :param held: words of the question in its text, heading path or file name, in a match.
    :param missing: the other words of the question, in a match.
    :param pieces: its pieces in the answer, in a match.
    :param line: its line with the most words of the question, in a match outside the answer.
    """

    selector: str
    title: str
    level: int
    start_line: int
    tokens: int
    state: str | None = None
    rank: int | None = None
    score: float | None = None
    name: float | None = None
    content: float | None = None
    topic: float | None = None
    taken_tokens: int | None = None
    chosen: bool | None = None
    file: str | None = None
    path: tuple[str, ...] | None = None
    held: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    pieces: tuple[Piece, ...] | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class AuditedFile:
    """A document.

    :param file: its name in answers.
    :param tokens: tokens of all its sections.
    :param sections: number of its sections, the text before the first heading included.
    :param states: number of its sections by state.
    :param open: whether its sections are shown.
    :param continued: whether the previous page shows some of them.
    :param rows: its sections of this page.
    """

    file: str
    tokens: int
    sections: int
    states: Mapping[str, int]
    open: bool
    continued: bool
    rows: tuple[AuditedSection, ...]


@dataclass(frozen=True, slots=True)
class OpenedSection:
    """One complete section, with its pieces in the answer.

    :param text: its own text.
    :param end_line: line after its last one.
    :param pieces: its pieces in the answer.
    """

    section: AuditedSection
    text: str
    end_line: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class AnswerAudited:
    """The answer in one form, exactly as sent.

    :param text: the whole text.
    :param tokens: tokens of the whole text, which the budget limits.
    :param content_tokens: tokens of the sections' texts.
    :param sections: its sections, most relevant first.
    :param request_more: selectors for the next request.
    """

    text: str
    tokens: int
    content_tokens: int
    sections: tuple[TailoredSection, ...]
    request_more: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """An answer and its material.

    :param file: name of the documents in the answer.
    :param form: form whose packing gives the states.
    :param answers: answers by form.
    :param states: number of sections by state.
    :param tokens: tokens of these sections by state.
    :param weights: weights of the parts of a score.
    :param keywords: keywords of the context.
    :param items: files of this page, in order.
    :param total: rows on all pages.
    :param offset: rows before this page.
    :param limit: rows of a page.
    :param documents: number of files.
    :param token_counter: name of the token counter.
    :param opened: the requested section.
    :param matches: all matching sections, if requested: matches of selectors, then the others by rank.
    :param verdict: ``held``, ``weak`` or ``absent``; see :class:`~npl_index.ranking.coverage.Evidence`.
    :param absent: words of the question that no section contains.
    :param held: words of the question in the best section.
    :param not_found: reasons for selectors without a match.
    :param unreadable: reasons for omitted files.
    :param missing_files: number of files that are not indexed yet; ask again for them.
    """

    file: str
    form: str
    answers: Mapping[str, AnswerAudited]
    states: Mapping[str, int]
    tokens: Mapping[str, int]
    weights: Mapping[str, float]
    keywords: tuple[str, ...]
    items: tuple[AuditedFile, ...]
    total: int
    offset: int
    limit: int
    documents: int
    token_counter: str
    verdict: str
    absent: tuple[str, ...] | None = None
    held: tuple[str, ...] | None = None
    opened: OpenedSection | None = None
    matches: tuple[AuditedSection, ...] | None = None
    not_found: tuple[str, ...] | None = None
    unreadable: tuple[str, ...] | None = None
    missing_files: int | None = None


def audit(
    request: TailorRequest,
    asked: AuditRequest,
    documents: DocumentSet,
    forms: Mapping[str, Form],
    form: str,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
    companions: Companions,
) -> Audit:
    """Answer a request, with the state of each section; the request is not recorded.

    :param forms: forms of the answer, by name.
    :param form: name of the form whose packing gives the states.
    :raises SectionNotFoundError: a selector matches nothing.
    """
    found = find(request, documents, weights)
    made = {name: answer(request, found, documents, one, companions) for name, one in forms.items()}
    view = _View(documents, found, made[form], _words(request, found))
    used = shares_of(weights, with_topics=bool(topic_terms(request.topics)))
    states, tokens = view.sums()
    page, total = view.page(asked)
    return Audit(
        file=documents.file,
        form=form,
        answers={name: _answer(documents, one) for name, one in made.items()},
        states=states,
        tokens=tokens,
        weights={"name": used.name, "content": used.content, "topic": used.topic},
        keywords=found.keywords.words,
        items=page,
        total=total,
        offset=asked.offset,
        limit=asked.limit,
        documents=len(documents.collection.documents),
        token_counter=documents.counter.name,
        verdict=found.evidence.verdict,
        absent=found.evidence.absent or None,
        held=found.evidence.held or None,
        opened=None if asked.section is None else view.opened(asked.section),
        matches=view.matches() if asked.matches else None,
        not_found=found.failures or None,
        unreadable=documents.unreadable or None,
        missing_files=documents.missing or None,
    )


def _words(request: TailorRequest, found: Findings) -> tuple[Word, ...]:
    """Return the different words of the question and its topics."""
    topics = (word for topic in request.topics for word in extract_keywords(topic).written)
    return tuple({word.terms: word for word in (*found.keywords.written, *topics)}.values())


def _answer(documents: DocumentSet, made: Answered) -> AnswerAudited:
    value, text = made.written.value, made.written.text
    return AnswerAudited(
        text, documents.counter.count(text), value.total_tokens, value.sections, value.request_more
    )


class _View:
    """The documents with the states of their sections in an answer."""

    def __init__(
        self, documents: DocumentSet, found: Findings, made: Answered, words: tuple[Word, ...]
    ) -> None:
        self._documents = documents
        self._shown = made.documents
        self._words = words
        self._scores = {hit.place: (rank, hit.score) for rank, hit in enumerate(found.hits, 1)}
        packed = made.packed
        parts = (part for unit in found.wanted.units for part in unit.parts)
        self._chosen = dict.fromkeys(part.place for part in parts if part.chosen)
        self._pieces: dict[Place, list[SectionPart]] = {}
        self._states = dict.fromkeys(self._scores, BELOW) | dict.fromkeys(found.known, KNOWN)
        for unit in (*packed.dropped, *packed.rests):
            self._states |= dict.fromkeys(unit.places, NO_ROOM)
        for unit in packed.kept:
            for part in unit.parts:
                self._states[part.place] = CUT if unit.cut else TAKEN
                self._pieces.setdefault(part.place, []).append(part)
        self._by_document: dict[int, Counter[str]] = {}
        for (document, _), state in self._states.items():
            self._by_document.setdefault(document, Counter())[state] += 1

    def sums(self) -> tuple[Counter[str], Counter[str]]:
        """Return the numbers of sections by state, and their tokens by state."""
        tokens: Counter[str] = Counter()
        for place, state in self._states.items():
            tokens[state] += self._tokens(place)
        return Counter(self._states.values()), tokens

    def _tokens(self, place: Place) -> int:
        return self._documents.counts(place[0]).last(place[1])

    def matches(self) -> tuple[AuditedSection, ...]:
        """Return the sections with a state, best first."""
        ranked = sorted(self._scores, key=lambda place: self._scores[place][0])
        every = dict.fromkeys((*self._chosen, *ranked, *sorted(self._states)))
        return tuple(map(self._match, islice(every, MAX_MATCHES)))

    def _match(self, place: Place) -> AuditedSection:
        """Return a section with the question's words in it, and its pieces in the answer."""
        tree, pieces = self._documents.tree(place[0]), self._pieces_of(place)
        path = tuple(tree.sections[one].title for one in tree.ancestors(place[1])[1:])
        text = "\n".join((self._documents.path(place[0]), *path, self._documents.text(place)))
        own = frozenset(terms(text, keep_stop_words=True))
        held = [word.shown for word in self._words if own.issuperset(word.meant)]
        line = None if pieces else matching_line(self._shown, self._documents.part(place))
        return replace(
            self._section(place, named=True),
            path=path,
            held=tuple(held),
            missing=tuple(word.shown for word in self._words if word.shown not in held),
            pieces=pieces or None,
            line=line and line[1],
        )

    def _pieces_of(self, place: Place) -> tuple[Piece, ...]:
        pieces = sorted(self._pieces.get(place, ()), key=lambda part: part.lines.start)
        return tuple(
            Piece(part.lines.start + 1, part.lines.stop + 1, self._shown.part_text(part)) for part in pieces
        )

    def page(self, asked: AuditRequest) -> tuple[tuple[AuditedFile, ...], int]:
        """Return the files of a page, and the number of rows on all pages."""
        every: Sequence[int] = range(len(self._documents.collection.documents))
        wanted = set(self._by_document)
        if asked.matching:
            every = sorted(wanted)
        elif asked.opened:
            wanted.update(document for document in every if self._documents.path(document) in asked.opened)
        end, last = 0, asked.offset + asked.limit
        files: list[AuditedFile] = []
        for document in every:
            begin = end
            rows = self._shown_sections(document) if document in wanted else ()
            end += 1 + len(rows)
            if begin < last and end > asked.offset:
                own = rows[max(0, asked.offset - begin - 1) : max(0, last - begin - 1)]
                files.append(self._file(document, own, document in wanted, begin < asked.offset))
        return tuple(files), end

    def _shown_sections(self, document: int) -> Sequence[int]:
        """Return the sections of a document that are rows, without an empty first one."""
        size = self._documents.collection.sections(document).size
        before = (document, 0) in self._states or self._documents.collection.size_of(document, 0) > 0
        return range(0 if before else 1, size)

    def _file(self, document: int, rows: Iterable[int], is_open: bool, continued: bool) -> AuditedFile:
        size = self._documents.collection.sections(document).size
        return AuditedFile(
            file=self._documents.path(document),
            tokens=sum(map(self._documents.counts(document).last, range(size))),
            sections=size,
            states=self._by_document.get(document, {}),
            open=is_open,
            continued=continued,
            rows=tuple(self._section((document, one)) for one in rows),
        )

    def _section(self, place: Place, *, named: bool = False) -> AuditedSection:
        section = self._documents.tree(place[0]).sections[place[1]]
        rank, score = self._scores.get(place, (None, None))
        pieces = self._pieces.get(place)
        return AuditedSection(
            selector=self._documents.selector(place, own=True, by_path=True),
            title=section.title,
            level=section.level,
            start_line=section.own.start + 1,
            tokens=self._tokens(place),
            state=self._states.get(place),
            rank=rank,
            **({} if score is None else score.rounded()),
            taken_tokens=None if pieces is None else sum(part.size.last for part in pieces),
            chosen=True if place in self._chosen else None,
            file=self._documents.path(place[0]) if named else None,
        )

    def opened(self, selector: str) -> OpenedSection:
        """Return the section of a row's selector."""
        selected = select_in(self._documents.scope(), compile_selector(selector))[0]
        place = selected.tree, selected.head
        own = self._documents.tree(place[0]).sections[place[1]].own
        return OpenedSection(
            section=self._section(place, named=True),
            text=self._documents.text(place),
            end_line=own.stop + 1,
            pieces=self._pieces_of(place),
        )
