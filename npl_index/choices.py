"""What users may choose: parts of a score, vocabulary for counting tokens, form of answers."""

from __future__ import annotations

from dataclasses import dataclass

VOCABULARIES = ("o200k_base", "o200k_harmony", "cl100k_base")
"""Vocabularies of tiktoken whose tokens can be counted."""


FORMATS = ("json", "markdown")
"""Forms of an answer: for programs, and for models."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part of a score counts; the weight of an absent part goes to the others in proportion."""

    name: float = 0.4
    content: float = 0.3
    topic: float = 0.3
