"""Weights of the ranking's features, learned from labelled questions.

Each question is asked in its file and in its folder. The weights are those for which a softmax over the rank
values of the best sections gives the right ones most probability: half of it the labelled section itself,
half any section inside it. Questions count by families, so that many questions of one kind do not decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.relevance.indexed import read_documents
from benchmarks.relevance.questions import (
    Label,
    Question,
    QuestionSet,
    Scope,
    asked_in,
    family_of,
    reciprocal_rank,
)
from npl_index.ranking.arrays import top_positions
from npl_index.ranking.features import FEATURE_WEIGHTS
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, find_candidates

ROWS = 100
"""Sections of a question that are compared, best first."""

UNLABELLED = ("topic", "behind")
"""Features that no labelled question needs; named cases decide about their weights."""

FITTED = [feature for feature in FEATURE_WEIGHTS if feature.name not in UNLABELLED]
_SIGNS = np.sign([feature.weight for feature in FITTED])
_STIFFNESS = 1e-3
_STEPS = 50


class Asked(NamedTuple):
    """A question and the features of its best sections.

    :param scope: ``file`` or ``folder``.
    :param columns: a row for each section, best first.
    :param right: whether each of them is the labelled section, and whether it is inside it.
    """

    name: str
    scope: str
    columns: NDArray[Any]
    right: NDArray[Any]


def ask(name: str, scope: str, place: Scope, question: Question, labels: Sequence[Label]) -> Asked:
    """Ask a question and keep the features of the best sections."""
    collection = place.collection
    with collection.reading():
        table = find_candidates(collection, Query(extract_keywords(question.text))).table
        columns = np.column_stack([feature.of(table) for feature in FITTED]).astype(float)
        values = columns @ [feature.weight for feature in FITTED]
        best = top_positions(np.where(table.is_related, values.clip(1e-9), 0), ROWS, table.copies)
        places = list(zip(*table.passages.locate(best), strict=True))
    wanted = [set().union(*(place.places(label, exact=exact) for label in labels)) for exact in (True, False)]
    return Asked(
        name, scope, columns[best], np.array([[section in some for section in places] for some in wanted])
    )


def learned(asked: Sequence[Asked], families: Mapping[str, str], use: Sequence[int]) -> NDArray[Any]:
    """Return the weights of some features, by Newton's method with signs as bounds."""
    asked = [question for question in asked if question.right[0].any()]
    kinds = [(question.scope, families[question.name]) for question in asked]
    sizes = Counter(kinds)
    share = np.array([1 / sizes[kind] for kind in kinds])
    x = np.concatenate([question.columns[:, use] for question in asked])
    right = np.concatenate([question.right for question in asked], axis=1).astype(float)
    lengths = [len(question.columns) for question in asked]
    starts, owner = np.cumsum([0, *lengths[:-1]]), np.repeat(np.arange(len(asked)), lengths)
    signs = _SIGNS[use]

    def loss(weights: NDArray[Any]) -> tuple[float, NDArray[Any], NDArray[Any]]:
        values = x @ weights
        power = np.exp(values - np.maximum.reduceat(values, starts)[owner])
        whole = np.add.reduceat(power, starts)
        chance = power / whole[owner]
        means = np.add.reduceat(x * chance[:, None], starts)
        total, slope = _STIFFNESS * weights @ weights, 2 * _STIFFNESS * weights
        for chosen in right:
            part = np.add.reduceat(power * chosen, starts)
            total -= (share * np.log(part / whole)).sum() / 2
            slope = slope - x.T @ ((power * chosen / part[owner] - chance) * share[owner]) / 2
        bend = x.T @ (x * (chance * share[owner])[:, None]) - (means * share[:, None]).T @ means
        return total, slope, bend + 2 * _STIFFNESS * np.eye(len(weights))

    weights = signs.astype(float)
    total, slope, bend = loss(weights)
    for _ in range(_STEPS):
        free = (weights != 0) | (slope * signs < 0)
        step = np.zeros(len(weights))
        step[free] = np.linalg.solve(bend[np.ix_(free, free)], -slope[free])
        size, before = 1.0, total
        while size > _STIFFNESS:
            after = weights + size * step
            after = np.where(after * signs > 0, after, 0)
            total, slope, bend = loss(after)
            if total <= before:
                break
            size /= 2
        weights = after
        if before - total < 1e-6:
            break
    return weights


def ranks(asked: Sequence[Asked], weights: NDArray[Any]) -> NDArray[Any]:
    """Return the reciprocal rank of the labelled section, and of one inside it, for each question."""
    orders = [np.argsort(-question.columns @ weights, kind="stable") for question in asked]
    pairs = zip(asked, orders, strict=True)
    return np.array(
        [[reciprocal_rank(right[order].tolist()) for right in question.right] for question, order in pairs]
    )


def report(asked: Sequence[Asked], families: Mapping[str, str]) -> Iterator[str]:
    """Yield what ``--fit`` prints."""
    everything = range(len(FITTED))
    present = np.array([feature.weight for feature in FITTED])
    fitted = learned(asked, families, everything)
    apart = {
        name: learned([question for question in asked if question.name != name], families, everything)
        for name in sorted({question.name for question in asked})
    }
    fitted, *others = (weights / abs(fitted[0]) * abs(present[0]) for weights in (fitted, *apart.values()))
    spread = np.std(others, axis=0) if others else np.zeros(len(FITTED))
    yield f"{'feature':10} weight  fitted  spread   loss without it: file, folder (exact, nested)"
    whole = _means(asked, ranks(asked, present), families)
    for number, feature in enumerate(FITTED):
        less = present * (np.arange(len(FITTED)) != number)
        without = _means(asked, ranks(asked, less), families)
        losses = "  ".join(
            f"{before - after:+.4f}" for before, after in zip(whole.values(), without.values(), strict=True)
        )
        yield f"{feature.name:10} {feature.weight:6} {fitted[number]:7.2f} {spread[number]:7.2f}   {losses}"
    alone = np.concatenate(
        [ranks([question for question in asked if question.name == name], apart[name]) for name in apart]
    )
    order = [question for name in apart for question in asked if question.name == name]
    rows = {"present": (asked, ranks(asked, present)), "left out": (order, alone)}
    for label, (questions, figures) in rows.items():
        for family in (None, *sorted(set(families.values()))):
            means = _means(questions, figures, families, family)
            cells = "  ".join(f"{scope} {kind} {mean:.3f}" for (scope, kind), mean in means.items())
            yield f"{label:8}  {family or 'all':16}  {cells}"


def _means(
    asked: Sequence[Asked], figures: NDArray[Any], families: Mapping[str, str], only: str | None = None
) -> dict[tuple[str, str], float]:
    """Return the means over families, or of one family, by scope and by kind of rank."""
    means: dict[tuple[str, str], float] = {}
    for scope in sorted({question.scope for question in asked}):
        by_family: dict[str, dict[str, list[Any]]] = {}
        for question, row in zip(asked, figures, strict=True):
            family = families[question.name]
            if question.scope == scope and only in (None, family):
                by_family.setdefault(family, {}).setdefault(question.name, []).append(row)
        sets = [
            np.mean([np.mean(rows, axis=0) for rows in names.values()], axis=0)
            for names in by_family.values()
        ]
        if sets:
            means |= zip(((scope, "exact"), (scope, "nested")), np.mean(sets, axis=0).tolist(), strict=True)
    return means


def fit(sets: Sequence[QuestionSet]) -> Iterator[str]:
    """Ask the questions of sets, and yield the weights and how well they rank."""
    asked = [
        ask(one.name, *question)
        for one in sets
        for question in asked_in(read_documents(one.corpus), one.questions())
    ]
    yield from report(asked, family_of({question.name for question in asked}))
