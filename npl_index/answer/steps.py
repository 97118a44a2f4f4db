"""The steps of an answer, in one sequence that no budget changes.

A step replaces what the answer has of a text: nothing, its name, a window of it, or all of it. For a question
these are the name of the best text; a few lines of it; the names of the next; its text; further answers. Here
the default answer ends. Further texts about the question follow, then the rests of all texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from npl_index.answer.cutting import PIECE, WHOLE
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.ledger import MAX_TOKENS
from npl_index.answer.units import AnswerUnit, Excluded, families
from npl_index.choices import DEFAULT_BUDGET
from npl_index.ranking.arrays import np
from npl_index.ranking.scoring import Hit, Ranking
from npl_index.ranking.verdict import Verdict
from npl_index.selectors.names import Place

BEST = 3
"""Number of the best hits: an answer has at least their names."""

AS_GOOD, EQUAL = 0.9, 0.95
"""Share of the best score for another answer, and for one that may exceed the room of whole texts."""

SUBJECT, RELATED, FURTHER = 0.33, 0.4, 0.6
"""Share of the question that makes another subject; share of the best score for its answer, and for a further
text if the answers cover the question."""

LEAD = 60
"""Tokens of the best text before the names of other texts."""

LEAST = 100
"""Minimum tokens of a part of a further text: its mark and the names of its rests cost half as much."""

MAX_READ = 1_500
"""Maximum tokens of selected texts for a question without a budget; of one text ``WHOLE``."""


class Limits(NamedTuple):
    """Limits of an answer by its verdict.

    :param whole: tokens of a text that is not cut, and of all texts.
    :param piece: tokens of a piece of a longer text.
    :param names: names of further texts, one less beside the rest of a piece.
    """

    whole: int
    piece: int
    names: int


LIMITS = {
    "held": Limits(WHOLE, PIECE, BEST),
    "weak": Limits(2 * LEAD, 2 * LEAD, BEST + 1),
    "absent": Limits(0, 0, BEST + 1),
}


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings for a request, without regard to its budget.

    :param documents: the documents, with the terms of the request.
    :param ranking: ranked sections.
    :param verdict: verdict on the question.
    :param selected: texts of selectors, most important first.
    :param exact: sections whose selected text is always complete.
    :param broad: sections of selectors that match several.
    :param answers: texts that answer the question, best first.
    :param further: further texts about the question, best first.
    :param named: texts to name, best first.
    :param excluded: excluded lines.
    :param excluded_tokens: tokens of wanted text that is excluded; ``None`` without ``exclude``.
    :param failures: reasons for selectors without a match.
    """

    documents: DocumentSet
    ranking: Ranking
    verdict: Verdict
    selected: Sequence[AnswerUnit]
    exact: frozenset[Place]
    broad: frozenset[Place]
    answers: Sequence[AnswerUnit]
    further: Sequence[AnswerUnit]
    named: Sequence[AnswerUnit]
    excluded: Excluded
    excluded_tokens: int | None
    failures: tuple[str, ...]


class Step(NamedTuple):
    """What an answer has of a text from now on.

    :param unit: the text.
    :param most: maximum tokens of it; 0 for its name.
    :param in_part: whether a part of these comes if there is no room for all.
    :param least: minimum tokens of a part.
    """

    unit: AnswerUnit
    most: int
    in_part: bool = True
    least: int = 0


def related(ranking: Ranking) -> Iterator[tuple[Hit, bool]]:
    """Yield the hits whose text is about the question, best first, and whether each answers it.

    Answers are the best hit, hits nearly as good, and the best hit of each further subject of the question.
    A section that the question names needs less to be about a further subject.
    """
    coverage, best = ranking.coverage, 0.0
    weights = coverage.weights / (coverage.weights.sum() or 1.0)
    covered = np.zeros(len(weights))
    for hit, shares, is_named in zip_longest(ranking.hits, coverage.shares.T, coverage.named):
        if not hit.size:
            continue
        best = best or hit.score.total
        if hit.score.total < best * RELATED:
            break
        is_other = weights @ (shares - covered).clip(0) >= (SUBJECT / 2 if is_named else SUBJECT)
        is_answer = hit.score.total >= best * (RELATED if is_other else AS_GOOD)
        if is_answer:
            covered = np.maximum(covered, shares)
        if is_answer or hit.score.total >= best * FURTHER * (weights @ covered):
            yield hit, is_answer


def default_steps(findings: Findings) -> Iterator[Step]:
    """Yield the steps of an answer to a question up to the default size."""
    limits, answers = LIMITS[findings.verdict.state], findings.answers
    texts, names = list(_texts(answers, limits)), limits.names
    if texts:
        best, most, *_ = texts[0]
        names -= most < best.tokens
        yield Step(best, 0)
        yield Step(best, min(LEAD, most))
    others = dict.fromkeys((*answers[1:], *findings.named))
    yield from (Step(unit, 0) for unit in list(others)[:names])
    yield from texts


def _texts(answers: Sequence[AnswerUnit], limits: Limits) -> Iterator[Step]:
    """Yield the step of the best text, then those of the next ones while each fits whole."""
    used = 0
    for unit in answers:
        room = DEFAULT_BUDGET if used and unit.score >= EQUAL * answers[0].score else limits.whole
        is_whole = unit.tokens <= room - used
        if used and not is_whole:
            break
        yield Step(unit, unit.tokens if is_whole else limits.piece, in_part=not used)
        used += unit.tokens if is_whole else limits.piece


def further_steps(findings: Findings) -> Iterator[Step]:
    """Yield the steps beyond the default size."""
    answers, further = findings.answers, findings.further
    for unit in (*answers[1:], *further):
        yield Step(unit, unit.tokens if unit.tokens <= WHOLE else PIECE, least=LEAST)
    yield from (Step(unit, MAX_TOKENS) for unit in (*answers, *further))


def reading_steps(findings: Findings) -> Iterator[Step]:
    """Yield the steps of selected texts for a question without a budget: whole, or what fits the question."""
    documents, left = findings.documents, MAX_READ
    rank = {hit.place: number for number, hit in enumerate(findings.ranking.hits)}

    def best(unit: AnswerUnit) -> int:
        return min(rank.get(place, len(rank)) for place in unit.places)

    for selected in findings.selected:
        room, waiting = min(WHOLE, left), [selected]
        left -= room
        while waiting:
            unit = waiting.pop(0)
            if findings.exact.issuperset(unit.places):
                yield Step(unit, MAX_TOKENS)
            elif unit.tokens > room and len(unit.parts) > 1:
                own, below = unit._replace(parts=unit.parts[:1]), families(documents, unit.parts[1:])
                waiting = [own, *sorted(below, key=best), *waiting]
            elif unit.tokens <= room or room >= PIECE:
                yield Step(unit, room)
                room -= min(unit.tokens, room)
            else:
                yield Step(unit, 0)
        left += room
