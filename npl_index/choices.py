"""What users may choose: the parts of a score, and the vocabularies tokens are counted with."""

from __future__ import annotations

from dataclasses import dataclass

ESTIMATED = ("o200k_base", "o200k_harmony", "cl100k_base")
"""Vocabularies for which there is an estimate."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the three factors of a score count; those of absent factors go to the others in proportion."""

    name: float = 0.4
    content: float = 0.3
    topic: float = 0.3
