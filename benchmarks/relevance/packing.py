"""What fits into a budget of tokens, and how much of what a task needs that is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.relevance.indexed import indexed_collection
from npl_index.answer.steps import related
from npl_index.ranking.collection import Collection, IndexedDocument
from npl_index.ranking.features import Feature
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Hit, Query, rank
from npl_index.tokens.estimated import estimator
from npl_index.tokens.sections import trimmed_text

BUDGETS = (1_000, 2_000, 8_000)
LEAST = 150
"""Tokens that have to be left for the beginning of a section that does not fit."""


def pack(collection: Collection, hits: Sequence[Hit], budget: int) -> list[tuple[Hit, int]]:
    """Take sections in order while there is room; of one that does not fit, what the room holds."""
    counter, room = estimator(), budget
    packed = []
    for hit in hits:
        tree = collection.documents[hit.document].tree
        tokens = counter.count(trimmed_text(tree, tree.sections[hit.section].own))
        if tokens > room < LEAST:
            continue
        packed.append((hit, min(tokens, room)))
        room -= packed[-1][1]
    return packed


def measure_tasks(
    files: dict[str, IndexedDocument], tasks: Path, features: Sequence[Feature]
) -> dict[str, dict[str, float]]:
    """Ask for several documents each time.

    :param tasks: a list of objects with ``q`` and ``gold``, the names of the files that are needed.
    """
    collection = indexed_collection([one.document for one in files.values()])
    names = list(files)
    recalls: dict[int, list[float]] = {budget: [] for budget in BUDGETS}
    precisions: dict[int, list[float]] = {budget: [] for budget in BUDGETS}
    rows = json.loads(tasks.read_text(encoding="utf-8"))
    for task in rows:
        query = Query(extract_keywords(task["q"]))
        hits = [hit for hit, _ in related(rank(collection, query, features=features))]
        wanted = set(task["gold"])
        for budget in BUDGETS:
            packed = pack(collection, hits, budget)
            touched = {names[hit.document] for hit, _ in packed}
            useful = sum(tokens for hit, tokens in packed if names[hit.document] in wanted)
            recalls[budget].append(len(wanted & touched) / len(wanted))
            precisions[budget].append(useful / (sum(tokens for _, tokens in packed) or 1))
    figures: dict[str, float] = {"questions": len(rows)}
    for budget in BUDGETS:
        figures[f"recall_{budget}"] = round(fmean(recalls[budget]), 3)
        figures[f"precision_{budget}"] = round(fmean(precisions[budget]), 3)
    return {"folder": figures}
