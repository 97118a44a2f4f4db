"""Comparison with a git revision: questions with a worse outcome, and lost sentences of their answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.questions.files import question_files
from npl_mcp.questions.format import Question
from npl_mcp.questions.running import Asked, Difference, answered, compare
from npl_mcp.questions.trial import Trial

MIN_SIMILARITY = 70
"""Similarity in percent of two sentences with the same meaning."""

_MIN_WORDS = 3
"""Words of the shortest sentence."""

_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*+|>#]|\d+\.))")


def against(
    app: App, questions: Sequence[Question], ref: DocumentRef, revision: str
) -> tuple[Difference, ...]:
    """Ask the documents of a git revision and the present ones, and return the differences.

    A question of the revision is asked with its former selectors.

    :param questions: present questions.
    :param ref: documents to ask.
    :param revision: branch, tag or commit of git.
    :raises InvalidRequestError: a root is not in a git repository, or the repository has no such revision.
    """
    with Trial.at(app, revision) as trial:
        former = {
            question.text: question for file in question_files(trial.app) for question in file.questions
        }
        known = [former.get(question.text, replace(question, line=None)) for question in questions]
        before = [answered(trial.app, question, ref) for question in known]
    after = [answered(app, question, ref) for question in questions]
    changed = compare([asked.outcome for asked in before], [asked.outcome for asked in after])
    differences = {pair.after.question.text: pair for pair in changed if pair.after}
    for old, new in zip(before, after, strict=True):
        lost = lost_sentences(old, new) if old.outcome.passed and new.outcome.passed else ()
        if lost:
            differences[new.outcome.question.text] = Difference(old.outcome, new.outcome, lost)
    return tuple(sorted(differences.values(), key=lambda pair: (not pair.worse, pair.better)))


def lost_sentences(old: Asked, new: Asked) -> tuple[str, ...]:
    """Return the sentences of an answer that the right sections lost without replacing them."""
    lost = _missing(sentences(old.shown), sentences(new.right))
    added = _missing(sentences(new.right), sentences(old.right)) if lost else []
    return tuple(lost) if len(added) < len(lost) else ()


def _missing(some: Sequence[str], others: Sequence[str]) -> list[str]:
    from rapidfuzz import fuzz, process

    options: dict[str, Any] = {"scorer": fuzz.ratio, "score_cutoff": MIN_SIMILARITY}
    new = [sentence for sentence in some if sentence not in set(others)]
    return [sentence for sentence in new if process.extractOne(sentence, others, **options) is None]


def sentences(text: str) -> list[str]:
    """Return the sentences and list items of a text on one line each, without headings."""
    parts = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return [part for part in parts if not part.startswith("#") and len(part.split()) >= _MIN_WORDS]
