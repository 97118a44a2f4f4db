"""Segments as bytes: in a file that is mapped into memory, or in a row of a database.

Bytes begin with a header that says where each array lies, and carry a checksum of all of it. What is damaged,
cut off, of another version or of somebody else is never read as a segment.
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from npl_index.ranking.segments import Lists, Segment
from npl_index.ranking.storing import INDEX_FORMAT
from npl_index.ranking.strings import PackedStrings, pack

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"NPLSEGM1"

SEGMENT_FORMAT = f"4.{INDEX_FORMAT}.{unicodedata.unidata_version}.{sys.byteorder}"
"""What a segment was made by: the layout here, parsing and analysis, the characters known, the byte order."""

_START = struct.Struct("<8sII")  # magic, length of the header, checksum of what follows this
_ALIGNED = 64
_STRINGS = ("terms", "spelt", "labels", "folds", "written")


class NotASegmentError(ValueError):
    """Bytes that cannot be read as a segment."""


def arrays_of(segment: Segment) -> dict[str, NDArray[Any]]:
    """Return the arrays that a segment consists of, by name."""
    found: dict[str, NDArray[Any]] = {}
    for field in fields(segment):
        value = getattr(segment, field.name)
        if field.name in _STRINGS:
            parts = value.packed() if isinstance(value, PackedStrings) else pack(value.all())
            found |= dict(zip((f"{field.name}.{part}" for part in PackedStrings.ARRAYS), parts, strict=True))
        elif isinstance(value, Lists):
            found[f"{field.name}.values"], found[f"{field.name}.starts"] = value
        else:
            found[field.name] = value
    return found


def pieces(segment: Segment) -> Iterator[bytes | memoryview]:
    """Return a segment as bytes, piece by piece; the first piece is the start with the checksum."""
    import numpy as np  # slow to import, see postings.count

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays_of(segment).items()}
    places, at = {}, 0
    for name, array in arrays.items():
        places[name] = (array.dtype.str, len(array), at)
        at += -(-array.nbytes // _ALIGNED) * _ALIGNED
    header = json.dumps({"format": SEGMENT_FORMAT, "size": at, "arrays": places}).encode()
    header += b" " * (-(len(header) + _START.size) % _ALIGNED)
    body: list[bytes | memoryview] = [header]
    for array in arrays.values():
        body += [array.view("uint8").data if len(array) else b"", b"\0" * (-array.nbytes % _ALIGNED)]
    checksum = 0
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    yield _START.pack(MAGIC, len(header), checksum)
    yield from body


def unpack(data: bytes | mmap.mmap) -> Segment:
    """Return the segment that bytes hold; its arrays lie in them.

    :raises NotASegmentError: they hold none, or not a whole one.
    """
    import numpy as np

    view = memoryview(data)
    if len(view) < _START.size:
        raise NotASegmentError("it is too short")
    magic, length, checksum = _START.unpack(view[: _START.size])
    if magic != MAGIC:
        raise NotASegmentError("it is something else")
    if zlib.crc32(view[_START.size :]) != checksum:
        raise NotASegmentError("it is damaged")
    header = json.loads(bytes(view[_START.size : _START.size + length]))
    if header["format"] != SEGMENT_FORMAT:
        raise NotASegmentError("it is of another version")
    begin = _START.size + length
    return segment_from_arrays(
        {
            name: np.frombuffer(data, dtype, count, begin + at)
            for name, (dtype, count, at) in header["arrays"].items()
        }
    )


def segment_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Segment:
    """Return the segment that arrays make up."""
    values: dict[str, Any] = {}
    for field in fields(Segment):
        name = field.name
        if name in _STRINGS:
            values[name] = PackedStrings(*(arrays[f"{name}.{part}"] for part in PackedStrings.ARRAYS))
        elif f"{name}.values" in arrays:
            values[name] = Lists(arrays[f"{name}.values"], arrays[f"{name}.starts"])
        else:
            values[name] = arrays[name]
    return Segment(**values)
