"""The arrays that a segment consists of, by name, and what takes them up while a segment is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Protocol

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.segments import Lists, Segment
from npl_index.ranking.strings import PackedStrings, pack

STRINGS = ("terms", "spelt", "labels", "folds", "written")
"""Fields of a segment that are strings; each consists of several arrays."""

Append = Callable[["NDArray[Any]"], None]


class Columns(Protocol):
    """Takes up arrays piece by piece, in memory or in a file."""

    def column(self, name: str, dtype: Any, count: int | None = None) -> Append:
        """Begin an array; return what appends to it.

        :param count: numbers it will have; ``None`` where nobody knows, then it ends where the next begins.
        """
        ...


class Arrays:
    """Takes up arrays in memory."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[NDArray[Any]]] = {}

    def column(self, name: str, dtype: Any, count: int | None = None) -> Append:  # noqa: ARG002
        """Begin an array; see :class:`Columns`."""
        self._pieces[name] = [np.empty(0, dtype)]
        return self._pieces[name].append

    def segment(self) -> Segment:
        """Return the segment that the arrays make up."""
        return segment_from_arrays({name: np.concatenate(parts) for name, parts in self._pieces.items()})


def arrays_of(segment: Segment) -> dict[str, NDArray[Any]]:
    """Return the arrays that a segment consists of, by name."""
    found: dict[str, NDArray[Any]] = {}
    for field in fields(segment):
        value = getattr(segment, field.name)
        if field.name in STRINGS:
            parts = value.packed() if isinstance(value, PackedStrings) else pack(value.all())
            found |= dict(zip((f"{field.name}.{part}" for part in PackedStrings.ARRAYS), parts, strict=True))
        elif isinstance(value, Lists):
            found[f"{field.name}.values"], found[f"{field.name}.starts"] = value
        else:
            found[field.name] = value
    return found


def segment_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Segment:
    """Return the segment that arrays make up."""
    values: dict[str, Any] = {}
    for field in fields(Segment):
        name = field.name
        if name in STRINGS:
            values[name] = PackedStrings(*(arrays[f"{name}.{part}"] for part in PackedStrings.ARRAYS))
        elif f"{name}.values" in arrays:
            values[name] = Lists(arrays[f"{name}.values"], arrays[f"{name}.starts"])
        else:
            values[name] = arrays[name]
    return Segment(**values)
