"""The use case: the sections for a task, within a token budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from npl_index.answer.cutting import PIECE, WHOLE
from npl_index.answer.document_set import AnswerUnit, DocumentSet
from npl_index.answer.forms import Form, partial_note
from npl_index.answer.ledger import Ledger
from npl_index.answer.packing import (
    BEST,
    MAX_CHOSEN_NAMED,
    MORE_POINTERS,
    POINTERS,
    Findings,
    Packing,
    remarks,
)
from npl_index.answer.request import TailorRequest
from npl_index.answer.suggestions import Companions, further_parts
from npl_index.answer.units import Excluded, choose, content_of, row, selected_lines
from npl_index.answer.values import RankedSection, Suggestion, Tailored, Written
from npl_index.choices import DEFAULT_BUDGET, Weights
from npl_index.errors import SectionNotFoundError
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.cut import best_of_each_subject, cut
from npl_index.ranking.scoring import DEFAULT_WEIGHTS, Hit, Query, Ranking, rank
from npl_index.ranking.topics import OTHER_FORM
from npl_index.ranking.verdict import Verdict, judge
from npl_index.selectors.grammar import Selector
from npl_index.selectors.names import Place
from npl_index.selectors.selection import Selected, select_in

ADVICE = "Nothing here answers this: ask again in the documents' own terms (npl://map names them)."

FLOOD = "{:,} sections of {:,} tokens match: send the selector of one, a longer selector, or token_budget."

ADVICE_DIVISOR = 5
"""Divisor of the budget for the limit of the advice."""

MAX_OPEN = 6_000
MAX_LISTED = 1_000
"""Maximum tokens of sections without a budget whose selectors match several each, and of the list of these
sections instead."""

MAX_WEAK_PASSAGE = 120
MAX_WEAK_WHOLE = 250
"""Maximum tokens of a text without enough evidence: of a piece, and of a section that is not cut."""


@dataclass(frozen=True, slots=True)
class Answered(Written[Tailored]):
    """An answer with its parts.

    :param packed: its packed parts.
    """

    packed: Packing


def write(
    request: TailorRequest,
    documents: DocumentSet,
    form: Form,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
    companions: Companions | None = None,
) -> Answered:
    """Answer a request.

    :param form: form of the text, which the budget limits.
    :param weights: weights of the parts of a score.
    :param companions: record of sections that earlier calls requested together; this call is added.
    :raises SectionNotFoundError: no selector matches.
    """
    companions = companions or Companions()
    with documents.collection.reading():
        findings = find(request, documents, weights)
        answered = answer(request, findings, form, companions)
    companions.record(documents.collection, findings.used)
    return answered


def answer(
    request: TailorRequest, findings: Findings, form: Form, companions: Companions, tag: str = ""
) -> Answered:
    """Pack and write the findings of a request.

    :param form: form of the text, which the budget limits.
    :param tag: nonce of marks, see :func:`~npl_index.answer.marks.tag_for`.
    """
    documents, verdict = findings.documents, findings.verdict
    form = form.on(documents, tag, verdict.held)
    form.is_list = request.is_open and _is_long(findings, form)
    ledger = Ledger(form, MAX_LISTED if form.is_list else request.token_budget)
    if form.is_list:
        matches = findings.units
        flood = FLOOD.format(len(matches), sum(unit.tokens for unit in matches))
        listed = matches[:MAX_CHOSEN_NAMED]
        findings = replace(findings, units=(), only_named=listed, pointers=MAX_CHOSEN_NAMED, advice=flood)
    not_found, unreadable = remarks(findings, ledger)
    has_advice = verdict.state == "absent" and ledger.named(ADVICE) <= ledger.budget // ADVICE_DIVISOR
    unserved = documents.not_served() if verdict.absent else ""
    frame = Tailored(
        changed=documents.changed,
        content="",
        sections=(),
        suggestions=(),
        truncated=True,
        request_more=(),
        keywords_extracted=(),
        total_tokens=0,
        token_counter=documents.counter.name if request.explain or not form.lean else None,
        file=documents.file,
        mark=tag if documents.several and tag else None,
        absent=verdict.absent or None,
        not_served=unserved
        if unserved and ledger.named(unserved) <= ledger.budget // ADVICE_DIVISOR
        else None,
        advice=ADVICE if has_advice else findings.advice,
        weak=True if verdict.state == "weak" else None,
        excluded_tokens=findings.excluded_tokens,
        not_found=not_found or None,
        unreadable=unreadable or None,
        partial=True if documents.missing else None,
        missing_files=documents.missing or None,
    )
    further = () if form.for_models else further_parts(findings, companions)
    packed = Packing(findings, ledger, frame, further).pack()
    marked = documents.several or form.for_models
    if marked and not tag and documents.tag(packed.kept):
        # With these marks, different units may fit; no text of the wanted units may imitate them.
        return answer(request, findings, form, companions, documents.tag(findings.units))
    content, total = content_of(documents, packed.kept, form.mark)
    value = replace(
        frame,
        content=content,
        sections=tuple(row(documents, unit, lean=form.lean) for unit in packed.kept),
        truncated=packed.truncated or form.is_list,
        request_more=tuple(pointer.selector for pointer in packed.pointers),
        notes={pointer.selector: note for pointer in packed.pointers if (note := form.note(pointer))} or None,
        suggestions=tuple(part for part in packed.further if isinstance(part, Suggestion)),
        keywords_extracted=tuple(part for part in packed.further if isinstance(part, str)),
        total_tokens=total,
        ranking=_explained(documents, findings.ranking) if request.explain else None,
    )
    return Answered(value, form.write(value, packed.kept, packed.pointers), packed)


def find(request: TailorRequest, documents: DocumentSet, weights: Weights) -> Findings:
    """Return the findings for a request, without regard to the budget.

    :raises SectionNotFoundError: no selector matches.
    """
    selections, failures = _selected(documents, "selectors", request.selectors)
    exclusions, exclusion_failures = _selected(documents, "exclude", request.exclude)
    excluded = selected_lines(documents, (match for match, _ in exclusions))
    query = Query(extract_keywords(request.context), request.topics)
    ranking = rank(documents.collection, query, weights=weights, among=request.among)
    documents = documents.ranked_by(ranking)
    # With selectors, only their sections are returned; the context chooses what to show of them.
    ranked, is_limited = not request.selectors, request.token_budget is not None
    verdict = _verdict(ranking) if ranked else Verdict((), (), "held")
    hits = _useful_hits(documents, ranking, verdict, request.token_budget) if ranked else []
    # Of several matches of one selector, those that fit the question come first.
    ranks = {hit.place: rank for rank, hit in enumerate(ranking.hits)}
    selections.sort(key=lambda found: (request.selectors.index(found[1]), _rank(found[0], ranks)))
    selected = [match for match, _ in selections]
    matches_of = Counter(selector for _, selector in selections)
    broad = [match for match, selector in selections if matches_of[selector] > 1]
    units, excluded_tokens = choose(documents, selected, hits, request.depth, excluded)
    exact = [match for match, selector in selections if request.depth is not None or not _is_plain(selector)]
    only_named = _others(documents, ranking.hits if ranked else (), units, excluded)
    weak_limits, limits = (MAX_WEAK_WHOLE, MAX_WEAK_PASSAGE, MORE_POINTERS), (WHOLE, PIECE, POINTERS)
    whole, piece, pointers = limits if verdict.state == "held" else weak_limits
    return Findings(
        documents=documents,
        units=units,
        only_named=tuple(islice(only_named, pointers)),
        best=frozenset(hit.place for hit in ranking.hits[:BEST]) - excluded.keys(),
        whole=whole if ranked and is_limited else None,
        piece=piece,
        reading=request.reading,
        exact=frozenset(selected_lines(documents, exact, request.depth)),
        broad=frozenset(selected_lines(documents, broad, request.depth)),
        pointers=pointers,
        ranking=ranking,
        verdict=verdict,
        excluded=excluded,
        excluded_tokens=excluded_tokens if request.exclude else None,
        failures=(*failures, *exclusion_failures),
        used=[(match.tree, match.head) for match, _ in (*selections, *exclusions)] if selections else (),
    )


def _rank(match: Selected, ranks: Mapping[Place, int]) -> int:
    """Return the rank of the best section of a match."""
    return min(ranks.get((match.tree, section), len(ranks)) for section in match.sections)


def _is_long(findings: Findings, form: Form) -> bool:
    """Return whether selectors that match several sections each bring too many tokens for no budget."""
    broad = (unit for unit in findings.units if not findings.broad.isdisjoint(unit.places))
    costs = (form.documents.counter.count(form.row(unit)) + sum(map(form.text, unit.parts)) for unit in broad)
    return any(total > MAX_OPEN for total in accumulate(costs))


def _verdict(ranking: Ranking) -> Verdict:
    """Return the verdict on a question; common words alone distinguish only headings ("How to")."""
    best = [hit.score for hit in ranking.hits[:1]]
    is_named = any(max(score.name, score.topic) > OTHER_FORM for score in best)
    return judge(ranking.coverage) if ranking.coverage.words or is_named else Verdict((), (), "absent")


def _useful_hits(documents: DocumentSet, ranking: Ranking, verdict: Verdict, budget: int | None) -> list[Hit]:
    """Return the hits whose text answers a question, best first; more for a budget above the default."""
    if verdict.state == "absent":
        return []
    if budget is None:
        hits = cut(ranking)
    else:
        hits = best_of_each_subject(ranking, documents.collection)[: 1 if verdict.state == "weak" else None]
        if budget > DEFAULT_BUDGET:
            hits += [hit for hit in cut(ranking, generous=True) if hit not in hits]
    # Sections that stand behind others are only named.
    return [hit for hit in hits if hit.document not in ranking.behind] or hits


def _others(
    documents: DocumentSet, hits: Sequence[Hit], units: Sequence[AnswerUnit], excluded: Excluded
) -> Iterator[AnswerUnit]:
    """Yield the best hits that are neither wanted nor excluded, for pointers.

    A bare heading counts as the sections below it.
    """
    taken = {place for unit in units for place in unit.places} | excluded.keys()
    for number, hit in enumerate(hits[: MORE_POINTERS + len(taken)]):
        family, has_text = [hit.place], hit.size > 0
        if not has_text:
            below = documents.tree(hit.document).subtree(hit.section) if number < BEST else range(0)
            family = [(hit.document, section) for section in below]
            sizes = documents.collection.sections(hit.document).sizes
            has_text = bool(sizes[below.start : below.stop].any())
        if has_text and taken.isdisjoint(family):
            yield AnswerUnit(tuple(map(documents.part, family)), hit.score.total)


def _selected(
    documents: DocumentSet, parameter: str, selectors: Sequence[Selector]
) -> tuple[list[tuple[Selected, Selector]], tuple[str, ...]]:
    """Evaluate all selectors; failures are returned unless all fail."""
    selected: list[tuple[Selected, Selector]] = []
    failures: list[SectionNotFoundError] = []
    for selector in selectors:
        scope = documents.once("scope", documents.scope)
        try:
            selected += ((match, selector) for match in select_in(scope, selector))
        except SectionNotFoundError as error:
            message = error.message if parameter == "selectors" else f"{parameter}: {error.message}"
            failures.append(SectionNotFoundError(message, near=error.near, hint=error.hint))
    if failures and not selected:
        # A file that is not indexed yet may have the section.
        hint = partial_note(documents.missing)
        raise SectionNotFoundError(failures[0].message, hint=hint) if documents.missing else failures[0]
    return selected, tuple(map(str, failures))


def _is_plain(selector: Selector) -> bool:
    """Return whether a selector names a section, and no lines, depth or range."""
    return selector.depth is None and selector.lines is None and not selector.until


def _explained(documents: DocumentSet, ranking: Ranking) -> tuple[RankedSection, ...]:
    return tuple(
        RankedSection(
            selector=documents.selector(hit.place, own=True),
            title=documents.section(hit.place).title,
            start_line=documents.section(hit.place).own.start + 1,
            **hit.score.rounded(),
            signals=ranking.signals_of(number),
            file=documents.path(hit.document) if documents.several else None,
        )
        for number, hit in enumerate(ranking.hits)
    )
