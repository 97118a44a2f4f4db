"""The use case: the sections for a task, within a token budget."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, partial_note
from npl_index.answer.ledger import MAX_TOKENS, SHARE, Ledger
from npl_index.answer.plan import Plan
from npl_index.answer.request import MAX_SELECTORS, TailorRequest
from npl_index.answer.steps import (
    BEST,
    LIMITS,
    Findings,
    Step,
    default_steps,
    further_steps,
    reading_steps,
    related,
)
from npl_index.answer.suggestions import further_parts
from npl_index.answer.units import (
    AnswerUnit,
    Excluded,
    content_of,
    places_of,
    ranked_units,
    row,
    selected_lines,
    selected_units,
)
from npl_index.answer.values import RankedSection, Suggestion, Tailored, Written
from npl_index.choices import DEFAULT_BUDGET, Weights
from npl_index.errors import SectionNotFoundError
from npl_index.ranking.analysis import searched_terms
from npl_index.ranking.naming import read
from npl_index.ranking.scoring import DEFAULT_WEIGHTS, Hit, Query, Ranking, rank
from npl_index.ranking.verdict import Coverage, Verdict, is_rare, judge
from npl_index.selectors.grammar import Selector
from npl_index.selectors.names import Place
from npl_index.selectors.selection import Selected, select_in

ADVICE = "no section has most of these words"

FLOOD = "{:,} sections of {:,} tokens match: send the selector of one, a longer selector, or token_budget."

MAX_OPEN = 6_000
MAX_LISTED = 1_000
"""Maximum tokens of sections without a budget whose selectors match several each; of the list of these
sections instead, which has no more names than a request has selectors."""

MAX_FILES = 3
"""Maximum files in remarks; the section index names all."""


@dataclass(frozen=True, slots=True)
class Answered(Written[Tailored]):
    """An answer with its parts.

    :param plan: its parts.
    """

    plan: Plan


def write(
    request: TailorRequest,
    documents: DocumentSet,
    form: Form,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
) -> Answered:
    """Answer a request.

    :param form: form of the text, which the budget limits.
    :param weights: weights of the parts of a score.
    :raises SectionNotFoundError: no selector matches.
    """
    with documents.collection.reading():
        findings = find(request, documents, weights)
        return answer(request, findings, form)


def answer(request: TailorRequest, findings: Findings, form: Form, tag: str = "") -> Answered:
    """Plan and write the answer to a request.

    :param form: form of the text, which the budget limits.
    :param tag: nonce of marks, see :func:`~npl_index.answer.marks.tag_for`.
    """
    documents, verdict = findings.documents, findings.verdict
    form = form.on(documents, tag, verdict.held)
    form.is_list = request.is_open and _is_long(findings, form)
    ledger = Ledger(form, MAX_LISTED if form.is_list else request.token_budget)
    not_found, unreadable = _remarks(findings, ledger)
    frame = Tailored(
        indexed=partial_note(len(documents.collection.documents), documents.missing),
        changed=documents.changed,
        token_counter=documents.counter.name if request.explain or not form.lean else None,
        file=documents.file,
        mark=tag if documents.several and tag else None,
        absent=verdict.absent or None,
        not_served=ledger.short(documents.not_served() if verdict.absent else ""),
        advice=_advice(findings, ledger),
        weak=True if verdict.state == "weak" else None,
        excluded_tokens=findings.excluded_tokens,
        not_found=not_found or None,
        unreadable=unreadable or None,
        partial=True if documents.missing else None,
        missing_files=documents.missing or None,
    )
    ledger.reserve_frame(frame)
    plan = _plan(request, findings, ledger)
    if form.for_models and findings.verdict.state != "absent":  # a line would look like an answer
        plan.add_lines()
    elif not form.for_models:
        plan.add(further_parts(findings, plan))
    marked = documents.several or form.for_models
    if marked and not tag and documents.tag(places_of(plan.kept)):
        # With these marks, different units may fit; no text of the wanted units may imitate them.
        wanted = (*findings.selected, *findings.answers, *findings.further)
        return answer(request, findings, form, documents.tag(places_of(wanted)))
    content, total = content_of(documents, plan.kept, form.mark)
    value = replace(
        frame,
        content=content,
        sections=tuple(row(documents, unit, lean=form.lean) for unit in plan.kept),
        truncated=bool(plan.left_out),
        request_more=tuple(pointer.selector for pointer in plan.pointers),
        notes={pointer.selector: note for pointer in plan.pointers if (note := form.note(pointer))} or None,
        suggestions=tuple(part for part in plan.further if isinstance(part, Suggestion)),
        keywords_extracted=tuple(part for part in plan.further if isinstance(part, str)),
        total_tokens=total,
        ranking=_explained(documents, findings.ranking) if request.explain else None,
    )
    text = form.write(value, plan.kept, plan.pointers)
    return Answered(value, text, plan, is_json=not form.for_models)


def _plan(request: TailorRequest, findings: Findings, ledger: Ledger) -> Plan:
    """Return the plan of an answer within its budget."""
    plan, answers, wanted = Plan(findings.documents, ledger), findings.answers, [*findings.answers]
    if ledger.form.is_list:
        names = (Step(unit, 0) for unit in findings.selected[:MAX_SELECTORS])
        plan.follow(names, findings.selected)
    elif request.reading:
        reading = list(reading_steps(findings))
        plan.follow(reading, [step.unit for step in reading])
    elif not findings.selected or plan.select(findings.selected):
        beyond: Iterable[Step] = ()
        if findings.verdict.state == "held" and request.token_budget is None:
            beyond = (Step(unit, MAX_TOKENS) for unit in answers)
        elif findings.verdict.state == "held" and ledger.budget > DEFAULT_BUDGET:
            beyond = further_steps(findings)
            wanted += findings.further
        steps = list(default_steps(findings))
        first = 1 + max((at for at, step in enumerate(steps) if step.unit == steps[0].unit), default=-1)
        plan.follow(chain(steps[first:], beyond), wanted, steps[:first])
    return plan


def _is_long(findings: Findings, form: Form) -> bool:
    """Return whether selectors that match several sections each bring too many tokens for no budget."""
    broad = (unit for unit in findings.selected if not findings.broad.isdisjoint(unit.places))
    costs = (form.documents.counter.count(form.row(unit)) + sum(map(form.text, unit.parts)) for unit in broad)
    return any(total > MAX_OPEN for total in accumulate(costs))


def _advice(findings: Findings, ledger: Ledger) -> str | None:
    """Return the advice for the next call, if selectors match too much or nothing answers the question."""
    if ledger.form.is_list:
        return FLOOD.format(len(findings.selected), sum(unit.tokens for unit in findings.selected))
    is_absent = findings.verdict.state == "absent" and not findings.documents.missing
    return ledger.short(ADVICE) if is_absent else None


def _remarks(findings: Findings, ledger: Ledger) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the remarks on failed selectors and on omitted files: the first of each, and a count."""
    room, result = ledger.budget // SHARE, list[tuple[str, ...]]()
    unreadable = findings.documents.unreadable
    for texts, most, what, state in (
        (findings.failures, len(findings.failures), "selector", "found nothing"),
        (unreadable, MAX_FILES, "file", "left out"),
    ):
        totals = list(accumulate(map(ledger.named, texts[:most]), initial=0))
        shown = bisect_right(totals, room) - 1
        room -= totals[shown]
        others, more = len(texts) - shown, " more" if shown else ""
        count = (f"{others:,}{more} {what}{'' if others == 1 else 's'} {state}",) if others else ()
        result.append((*texts[:shown], *count))
    return result[0], result[1]


def find(request: TailorRequest, documents: DocumentSet, weights: Weights) -> Findings:
    """Return the findings for a request, without regard to the budget.

    :raises SectionNotFoundError: no selector matches.
    """
    matches, failures = _selected(documents, "selectors", request.selectors)
    exclusions, exclusion_failures = _selected(documents, "exclude", request.exclude)
    query = Query(read(request.context, documents.collection), request.topics)
    ranking = rank(documents.collection, query, weights=weights, among=request.among)
    documents, verdict = documents.ranked_by(ranking), judge(ranking.coverage)
    excluded = Excluded(selected_lines(documents, chain.from_iterable(exclusions.values())))
    exact = [
        match
        for selector, found in matches.items()
        for match in found
        if request.depth is not None or not _is_plain(selector)
    ]
    broad = [match for found in matches.values() if len(found) > 1 for match in found]
    wanted = [match for each in matches.items() for match in _best_first(*each, ranking)]
    selected = selected_units(documents, wanted, request.depth, excluded)
    # Without a budget selectors bring their sections alone; with one others follow that answer the question.
    hits = ranking.hits
    if request.selectors:
        hits = [] if request.token_budget is None or verdict.state != "held" else hits
        verdict = Verdict((), (), "held")
    taken = set(places_of(selected))
    about = list(related(ranking)) if hits and verdict.state != "absent" else []
    if documents.missing:
        about = [(hit, is_answer) for hit, is_answer in about if _is_sure(documents, hit, ranking.coverage)]
        sure = verdict.state if request.selectors or any(is_answer for _, is_answer in about) else "absent"
        verdict = Verdict((), verdict.held, sure)
    chosen = [hit for hit, is_answer in about if is_answer and hit.place not in taken]
    answers = ranked_units(documents, chosen[: 1 if verdict.state == "weak" else None], excluded)
    taken.update(places_of(answers))
    further = ranked_units(documents, _by_document((hit for hit, _ in about), taken), excluded)
    named = _named(documents, hits, [*selected, *answers], further, excluded)
    return Findings(
        documents=documents,
        ranking=ranking,
        verdict=verdict,
        selected=selected,
        exact=frozenset(selected_lines(documents, exact, request.depth)),
        broad=frozenset(selected_lines(documents, broad, request.depth)),
        answers=answers,
        further=further,
        named=tuple(islice(named, LIMITS[verdict.state].names)),
        excluded=excluded,
        excluded_tokens=excluded.tokens if request.exclude else None,
        failures=(*failures, *exclusion_failures),
    )


def _is_sure(documents: DocumentSet, hit: Hit, coverage: Coverage) -> bool:
    """Return whether the headings of a section have all rare words of a question.

    In a part of the documents, the best text may have the words by chance.
    """
    tree, rare = documents.tree(hit.document), [word.meant for word in coverage.words if is_rare(word)]
    sections = (tree.sections[index] for index in (*tree.ancestors(hit.section), hit.section))
    terms = searched_terms("\n".join(f"{section.title}\n{section.name}" for section in sections))
    return bool(rare) and set(terms).issuperset(chain(*rare))


def _by_document(hits: Iterable[Hit], taken: Collection[Place]) -> list[Hit]:
    """Return further hits, of which the first are of many documents: the best of each, then the second.

    :param taken: sections that the answer already has.
    """
    better = Counter(document for document, _ in taken)

    def turn(hit: Hit) -> int:
        better[hit.document] += 1
        return better[hit.document]

    return sorted((hit for hit in hits if hit.place not in taken), key=turn)


def _named(
    documents: DocumentSet,
    hits: Sequence[Hit],
    shown: Sequence[AnswerUnit],
    further: Sequence[AnswerUnit],
    excluded: Excluded,
) -> Iterator[AnswerUnit]:
    """Yield the texts of the best hits outside an answer, each text once.

    A bare heading counts as the sections below it.
    """
    known = {unit.parts[0].place: unit for unit in reversed(further)}
    taken = {*places_of(shown), *map(documents.original, places_of(shown)), *excluded}
    for number, hit in enumerate(hits):
        family, texts = [hit.place], [hit.place]
        if not hit.size:
            below = documents.tree(hit.document).subtree(hit.section) if number < BEST else ()
            family = [(hit.document, section) for section in below]
            sizes = documents.collection.sections(hit.document).sizes
            texts = [place for place in family if sizes[place[1]]]
        if texts and taken.isdisjoint([*family, documents.original(texts[0])]):
            taken.update([*family, documents.original(texts[0])])
            yield known.get(hit.place) or AnswerUnit(tuple(map(documents.part, family)), hit.score.total)


def _selected(
    documents: DocumentSet, parameter: str, selectors: Sequence[Selector]
) -> tuple[dict[Selector, tuple[Selected, ...]], tuple[str, ...]]:
    """Return the matches of selectors, and reasons for those without; all without a match are an error."""
    selected: dict[Selector, tuple[Selected, ...]] = {}
    failures: list[SectionNotFoundError] = []
    for selector in selectors:
        try:
            selected[selector] = select_in(documents.scope(), selector)
        except SectionNotFoundError as error:
            message = error.message if parameter == "selectors" else f"{parameter}: {error.message}"
            failures.append(SectionNotFoundError(message, near=error.near, hint=error.hint))
    if failures and not selected:
        # A file that is not indexed yet may have the section.
        hint = partial_note(len(documents.collection.documents), documents.missing)
        raise SectionNotFoundError(failures[0].message, hint=hint) if documents.missing else failures[0]
    return selected, tuple(map(str, failures))


def _best_first(selector: Selector, matches: Sequence[Selected], ranking: Ranking) -> Sequence[Selected]:
    """Return the matches of a selector; if it may mean several sections, those for the question first."""
    if len(matches) < 2 or not _is_plain(selector):
        return matches
    rank = {hit.place: number for number, hit in enumerate(ranking.hits)}
    ranks = [
        min(rank.get((match.tree, section), len(rank)) for section in match.sections) for match in matches
    ]
    return [match for _, match in sorted(zip(ranks, matches, strict=True), key=lambda pair: pair[0])]


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
            signals=ranking.gains_of(number),
            file=documents.path(hit.document) if documents.several else None,
        )
        for number, hit in enumerate(ranking.hits)
    )
