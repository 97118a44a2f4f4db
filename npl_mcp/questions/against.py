"""What got worse since a git revision: questions that were held, and lost sentences of their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from npl_index.library.documents import DocumentRef
from npl_mcp.core.app import App
from npl_mcp.questions.files import question_files
from npl_mcp.questions.format import Question
from npl_mcp.questions.running import Asked, Difference, answered, compare
from npl_mcp.questions.trial import Trial

ALIKE = 70
"""Similarity in percent from which two sentences say the same in other words."""

_SHORTEST = 3
"""Fewest words of a sentence."""

_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*+|>#]|\d+\.))")


def against(
    app: App, questions: Sequence[Question], ref: DocumentRef, revision: str
) -> tuple[Difference, ...]:
    """Ask the documents of a git revision and those of now, and return what differs.

    A question of the revision is asked with the selectors that it had there.

    :raises InvalidRequestError: a root lies in no git repository, or it has no such revision.
    """
    with Trial.at(app, revision) as trial:
        there = {one.text: one for file in question_files(trial.app) for one in file.questions}
        known = [there.get(one.text, replace(one, line=None)) for one in questions]
        before = [answered(trial.app, one, ref) for one in known]
    after = [answered(app, one, ref) for one in questions]
    differences = compare([one.outcome for one in before], [one.outcome for one in after])
    told = {one.after.question.text: one for one in differences if one.after}
    for old, new in zip(before, after, strict=True):
        lost = gone(old, new) if old.outcome.passed and new.outcome.passed else ()
        if lost:
            told[new.outcome.question.text] = Difference(old.outcome, new.outcome, lost)
    return tuple(sorted(told.values(), key=lambda one: (not one.worse, one.better)))


def gone(old: Asked, new: Asked) -> tuple[str, ...]:
    """Return the sentences of an answer that the right sections have lost and not replaced by others."""
    lost = _missing(sentences(old.shown), sentences(new.right))
    added = _missing(sentences(new.right), sentences(old.right)) if lost else []
    return tuple(lost) if len(added) < len(lost) else ()


def _missing(some: Sequence[str], others: Sequence[str]) -> list[str]:
    from rapidfuzz import fuzz, process

    new = [one for one in some if one not in set(others)]
    return [
        one for one in new if process.extractOne(one, others, scorer=fuzz.ratio, score_cutoff=ALIKE) is None
    ]


def sentences(text: str) -> list[str]:
    """Return the sentences and list items of a text on one line each, without headings."""
    parts = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return [one for one in parts if not one.startswith("#") and len(one.split()) >= _SHORTEST]
