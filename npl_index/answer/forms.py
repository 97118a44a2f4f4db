"""An answer as it is sent, beside the value it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """An answer that is already text: exactly this is sent, and exactly this was counted.

    :param value: what the text says, for programs.
    :param text: the whole answer.
    """

    value: T
    text: str
