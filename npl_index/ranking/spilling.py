"""Arrays in a file without a name, for what is in the making and would not fit into memory."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from npl_index.ranking.packing import pieces, unpack
from npl_index.ranking.segments import Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Spill:
    """A file that grows with the arrays in it; it is gone when nobody has one of them any more.

    :param folder: on a disk, since a folder for temporary files may be in memory.
    :raises OSError: there is no room.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (it lives as long as this)
        self._size = 0
        self._areas: WeakSet[mmap.mmap] = WeakSet()

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let it go; the arrays that were made stay as long as somebody has them."""
        self._file.close()

    def empty(self, count: int, dtype: Any) -> NDArray[Any]:
        """Return an array of so many numbers of a type in the file."""
        import numpy as np  # slow to import, see postings.count

        size = count * np.dtype(dtype).itemsize
        return np.frombuffer(self._area(size), dtype) if size else np.empty(count, dtype)

    def kept(self, segment: Segment) -> Segment:
        """Return a segment whose arrays lie in the file."""
        parts = list(pieces(segment))
        area = self._area(sum(map(len, parts)))
        for part in parts:
            area.write(part)
        return unpack(area)

    def _area(self, size: int) -> mmap.mmap:
        """Return so many bytes more of the file, in memory; what was written before is there no longer."""
        if sys.platform == "linux":  # elsewhere the system decides
            for area in self._areas:
                area.madvise(mmap.MADV_DONTNEED)  # it stays in the file
        begin = -(-self._size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        self._size = begin + size
        if sys.platform == "linux":  # a disk that is full is an error now, and no signal later
            os.posix_fallocate(self._file.fileno(), begin, size)
        else:
            self._file.truncate(self._size)
        area = mmap.mmap(self._file.fileno(), size, offset=begin)
        self._areas.add(area)
        return area
