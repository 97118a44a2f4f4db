"""Segments as bytes: in a file that is mapped into memory, or in a row of a database.

Bytes begin with the place of a directory, which stands behind the arrays and says what each of them is, where
it lies, and its checksum. So a segment is written array by array, and nobody has to hold all of it. What is
damaged, cut off, of another version or of somebody else is never read as a segment.
"""

from __future__ import annotations

import io
import json
import mmap
import struct
import sys
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.columns import Append, arrays_of, segment_from_arrays
from npl_index.ranking.merging import Survivor, write_merged
from npl_index.ranking.segments import Segment
from npl_index.ranking.storing import INDEX_FORMAT

MAGIC = b"NPLSEGM2"

SEGMENT_FORMAT = f"5.{INDEX_FORMAT}.{unicodedata.unidata_version}.{sys.byteorder}"
"""What a segment was made by: the layout here, parsing and analysis, the characters known, the byte order."""

_START = struct.Struct("<8sQII")  # magic; place, length and checksum of the directory
_ALIGNED = 64
_PAUSE = 4 << 20


class NotASegmentError(ValueError):
    """Bytes that cannot be read as a segment."""


class _Column:
    """An array in a file."""

    def __init__(self, dtype: str, begin: int) -> None:
        self.dtype, self.begin = dtype, begin
        self.size = self.checksum = 0


class Writer:
    """Writes the arrays of a segment to a file as they come; see :class:`~npl_index.ranking.columns.Columns`.

    :param file: can be written anywhere; the segment begins where it stands.
    :param pause: is called after every few megabytes.
    """

    def __init__(self, file: BinaryIO, pause: Callable[[], None] = lambda: None) -> None:
        self._file, self._begin, self._pause = file, file.tell(), pause
        self._written = 0
        self._columns: dict[str, _Column] = {}
        self._end = _START.size
        self._open: _Column | None = None

    def column(self, name: str, dtype: Any, count: int | None = None) -> Append:
        """Begin an array; see :class:`~npl_index.ranking.columns.Columns`."""
        kind = np.dtype(dtype)
        column = self._columns[name] = _Column(kind.str, self._place())
        self._open = column if count is None else None
        self._end = column.begin + (count or 0) * kind.itemsize

        def append(values: NDArray[Any]) -> None:
            data = np.ascontiguousarray(values, kind).view("uint8").data if len(values) else b""
            self._file.seek(self._begin + column.begin + column.size)
            self._file.write(data)
            column.size += len(data)
            column.checksum = zlib.crc32(data, column.checksum)
            self._written += len(data)
            if self._written >= _PAUSE:
                self._written = 0
                self._pause()

        return append

    def finish(self) -> int:
        """Write what stands before and behind the arrays; return the number of bytes of all."""
        arrays = {name: (one.dtype, one.size, one.begin, one.checksum) for name, one in self._columns.items()}
        directory = json.dumps({"format": SEGMENT_FORMAT, "arrays": arrays}).encode()
        place = self._place()
        self._file.seek(self._begin + place)
        self._file.write(directory)
        self._file.seek(self._begin)
        self._file.write(_START.pack(MAGIC, place, len(directory), zlib.crc32(directory)))
        self._file.flush()
        return place + len(directory)

    def _place(self) -> int:
        """Return where the next thing begins."""
        if self._open is not None:
            self._end = self._open.begin + self._open.size
            self._open = None
        return -(-self._end // _ALIGNED) * _ALIGNED


def write(segment: Segment, file: BinaryIO) -> int:
    """Write a segment to a file where it stands; return the number of its bytes."""
    writer = Writer(file)
    for name, array in arrays_of(segment).items():
        writer.column(name, array.dtype, len(array))(array)
    return writer.finish()


def write_living(living: Sequence[Survivor], file: BinaryIO) -> int:
    """Write the living documents of some segments as one segment, as :func:`write` does."""

    def let_go() -> None:
        # Pages that were written lately and only this process has mapped count as its own memory.
        for one in living:
            one.segment.let_go()

    writer = Writer(file, let_go)
    write_merged(living, writer)
    let_go()
    return writer.finish()


def packed(segment: Segment) -> bytes:
    """Return a segment as bytes."""
    file = io.BytesIO()
    write(segment, file)
    return file.getvalue()


def unpack(data: bytes | mmap.mmap) -> Segment:
    """Return the segment that bytes hold; its arrays lie in them.

    :raises NotASegmentError: they hold none, or not a whole one.
    """
    with memoryview(data) as view:
        if len(view) < _START.size:
            raise NotASegmentError("it is too short")
        magic, place, length, checksum = _START.unpack(view[: _START.size])
        if magic != MAGIC:
            raise NotASegmentError("it is something else")
        if place + length != len(view) or zlib.crc32(view[place:]) != checksum:
            raise NotASegmentError("it is damaged")
        directory = json.loads(bytes(view[place : place + length]))
        if directory["format"] != SEGMENT_FORMAT:
            raise NotASegmentError("it is of another version")
        for _, size, begin, checksum in directory["arrays"].values():
            if zlib.crc32(view[begin : begin + size]) != checksum:
                raise NotASegmentError("it is damaged")
    return segment_from_arrays(
        {
            name: np.frombuffer(data, dtype, size // np.dtype(dtype).itemsize, begin)
            for name, (dtype, size, begin, _) in directory["arrays"].items()
        }
    )
