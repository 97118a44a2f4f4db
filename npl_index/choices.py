"""User settings: the weights of a score, the vocabulary for token counts, the format of answers."""

from __future__ import annotations

from dataclasses import dataclass

VOCABULARIES = ("o200k_base", "o200k_harmony", "cl100k_base")
"""Vocabularies of tiktoken that token counts can use."""


DEFAULT_BUDGET = 700
"""Default token budget of an answer. A larger budget has room for more than the best sections."""

FORMATS = ("json", "markdown")
"""Formats of an answer: for programs, and for models."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each part of a score; the weight of an absent part goes to the others in proportion."""

    name: float = 0.4
    content: float = 0.3
    topic: float = 0.3
