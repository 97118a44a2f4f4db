"""Audit of an answer: every section of the documents with its score and its state.

The states come from the ranking and the packing of the answer itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from npl_index.answer.document_set import DocumentSet, SectionPart
from npl_index.answer.finding import matching_line, nowhere
from npl_index.answer.forms import Form
from npl_index.answer.plan import Plan
from npl_index.answer.request import TailorRequest
from npl_index.answer.steps import Findings
from npl_index.answer.tailoring import answer, find
from npl_index.answer.units import places_of
from npl_index.choices import Weights
from npl_index.ranking.analysis import searched_terms
from npl_index.ranking.scoring import DEFAULT_WEIGHTS
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.names import Place
from npl_index.selectors.selection import select_in

TAKEN, CUT, NO_ROOM, BELOW, KNOWN = "taken", "cut", "no_room", "below", "known"
"""States of a section: completely in the answer; partly in the answer; wanted, but without room; matching,
but not worth its tokens; excluded by the caller. Other sections have no state."""

MAX_MATCHES = 500
"""Maximum matching sections in a list; hits are fewer, but a selector may match a whole file."""


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

    :param file: its document.
    :param selector: its selector, with the path of the file, so that it is unique in any set of documents.
    :param title: its heading; for the text before the first heading, the title in the front matter or the
        document's name.
    :param start_line: first line in the file, from 1.
    :param end_line: line after its last one.
    :param tokens: tokens of its text.
    :param path: headings above it.
    :param held: words of the question in its text, heading path or file name.
    :param missing: the other words of the question.
    :param state: its state, see the module; ``None`` without a match.
    :param rank: its rank, from 1; ``None`` if it is not ranked.
    :param score: 0 to 1.
    :param taken_tokens: tokens of its text in the answer.
    :param chosen: true if a selector matches it.
    :param pieces: its pieces in the answer.
    :param line: its line with the most words of the question, outside the answer.
    :param text: its own text, if it was asked for.
    """

    file: str
    selector: str
    title: str
    start_line: int
    end_line: int
    tokens: int
    path: tuple[str, ...]
    held: tuple[str, ...]
    missing: tuple[str, ...]
    state: str | None = None
    rank: int | None = None
    score: float | None = None
    taken_tokens: int | None = None
    chosen: bool | None = None
    pieces: tuple[Piece, ...] | None = None
    line: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """An answer and its material.

    :param text: the whole text of the answer, exactly as sent.
    :param tokens: its tokens, which the budget limits.
    :param content_tokens: tokens of the sections' texts.
    :param states: number of sections by state.
    :param documents: number of files.
    :param matches: the matching sections: matches of selectors, then the others by rank.
    :param opened: the requested section.
    :param verdict: ``held``, ``weak`` or ``absent``; see :class:`~npl_index.ranking.verdict.Verdict`.
    :param absent: words of the question that no section contains.
    :param near: similar words of the documents by word of the question; the ranking reads a misspelt word as
        the correct one, which is then not ``absent``.
    :param held: words of the question in the best section.
    :param not_found: reasons for selectors without a match.
    :param unreadable: reasons for omitted files.
    :param missing_files: number of files that are not indexed yet; ask again for them.
    """

    text: str
    tokens: int
    content_tokens: int
    states: Mapping[str, int]
    documents: int
    verdict: str
    matches: tuple[AuditedSection, ...]
    absent: tuple[str, ...] | None = None
    near: Mapping[str, tuple[str, ...]] | None = None
    held: tuple[str, ...] | None = None
    opened: AuditedSection | None = None
    not_found: tuple[str, ...] | None = None
    unreadable: tuple[str, ...] | None = None
    missing_files: int | None = None


def audit(
    request: TailorRequest,
    section: str | None,
    documents: DocumentSet,
    form: Form,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
) -> Audit:
    """Answer a request, with the state of each section.

    :param section: selector of one section to show completely.
    :raises SectionNotFoundError: a selector matches nothing.
    """
    with documents.collection.reading():
        findings = find(request, documents, weights)
        answered = answer(request, findings, form)
        view = _View(findings, answered.plan)
        near = nowhere(findings.documents, findings.ranking.coverage)
        return Audit(
            text=answered.text,
            tokens=documents.counter.count(answered.text),
            content_tokens=answered.value.total_tokens,
            states=Counter(view.states.values()),
            documents=len(documents.collection.documents),
            verdict=findings.verdict.state,
            matches=view.matches(),
            absent=findings.verdict.absent or None,
            near={word: others for word, others in near.items() if others} or None,
            held=findings.verdict.held or None,
            opened=None if section is None else view.opened(section),
            not_found=findings.failures or None,
            unreadable=documents.unreadable or None,
            missing_files=documents.missing or None,
        )


class _View:
    """The documents with the states of their sections in an answer."""

    def __init__(self, findings: Findings, plan: Plan) -> None:
        self._documents, self._words = findings.documents, findings.ranking.coverage.words
        self._scores = {hit.place: (rank, hit.score) for rank, hit in enumerate(findings.ranking.hits, 1)}
        self._chosen = dict.fromkeys(places_of(findings.selected))
        self._pieces: dict[Place, list[SectionPart]] = {}
        self.states = dict.fromkeys(self._scores, BELOW) | dict.fromkeys(findings.excluded, KNOWN)
        self.states |= dict.fromkeys(places_of(plan.left_out), NO_ROOM)
        for unit in plan.kept:
            for part in unit.parts:
                self.states[part.place] = CUT if unit.cut else TAKEN
                self._pieces.setdefault(part.place, []).append(part)

    def matches(self) -> tuple[AuditedSection, ...]:
        """Return the sections with a state, best first."""
        ranked = sorted(self._scores, key=lambda place: self._scores[place][0])
        places = dict.fromkeys((*self._chosen, *ranked, *sorted(self.states)))
        return tuple(map(self._section, islice(places, MAX_MATCHES)))

    def opened(self, selector: str) -> AuditedSection:
        """Return the section of a row's selector, with its text."""
        selected = select_in(self._documents.scope(), compile_selector(selector))[0]
        place = selected.tree, selected.head
        return replace(self._section(place), text=self._documents.text(place))

    def _section(self, place: Place) -> AuditedSection:
        """Return a section with the question's words in it, and its pieces in the answer."""
        documents, tree = self._documents, self._documents.tree(place[0])
        section, file = documents.section(place), documents.path(place[0])
        rank, score = self._scores.get(place, (None, None))
        pieces = sorted(self._pieces.get(place, ()), key=lambda part: part.lines.start)
        path = tuple(tree.sections[above].title for above in tree.ancestors(place[1])[1:])
        terms = frozenset(searched_terms("\n".join((file, *path, documents.text(place)))))
        covered = [word.shown for word in self._words if terms.issuperset(word.meant)]
        line = None if pieces else matching_line(documents, documents.part(place))
        return AuditedSection(
            file=file,
            selector=documents.selector(place, own=True, by_path=True),
            title=section.title,
            start_line=section.own.start + 1,
            end_line=section.own.stop + 1,
            tokens=documents.counts(place[0]).last(place[1]),
            path=path,
            held=tuple(covered),
            missing=tuple(word.shown for word in self._words if word.shown not in covered),
            state=self.states.get(place),
            rank=rank,
            score=None if score is None else score.rounded()["score"],
            taken_tokens=sum(part.size.last for part in pieces) if pieces else None,
            chosen=True if place in self._chosen else None,
            pieces=tuple(Piece(part.lines.start + 1, part.lines.stop + 1, part.text) for part in pieces)
            or None,
            line=line and line[1],
        )
