"""Files without names that hold segments while a set is made: nothing of them can be left behind."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from npl_index.library.files import Folder
from npl_index.ranking.merging import Survivor
from npl_index.ranking.packing import unpack, write_living
from npl_index.ranking.segments import Segment


class Place(NamedTuple):
    """Where a segment lies.

    :param number: of the file.
    """

    number: int
    begin: int
    size: int


class Scratch:
    """Some files; one process writes to each, at its end, and all may read.

    :param handles: their descriptors, closed when nobody refers to this any more. What is mapped stays.
    """

    def __init__(self, handles: Sequence[int]) -> None:
        self.handles = handles
        weakref.finalize(self, _close, handles)

    @classmethod
    def made(cls, folder: Path | None, count: int) -> Scratch:
        """Make files.

        :param folder: on whose disk they are; by default the system's for such files.
        :raises OSError: that is not possible there.
        """
        handles: list[int] = []
        scratch = cls(handles)
        for _ in range(count):
            with tempfile.TemporaryFile(dir=folder) as file:
                handles.append(os.dup(file.fileno()))
        return scratch

    def write(self, number: int, work: Callable[[BinaryIO], int]) -> Place:
        """Add a segment to a file.

        :param work: writes it where the file stands, and returns its size.
        :raises OSError: the disk is full.
        """
        handle = self.handles[number]
        # What is mapped begins at a page.
        begin = -(-os.fstat(handle).st_size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        with os.fdopen(os.dup(handle), "r+b") as file:
            file.seek(begin)
            return Place(number, begin, work(file))

    def segment(self, place: Place) -> Segment:
        """Return a segment, mapped into memory."""
        handle = self.handles[place.number]
        segment = unpack(mmap.mmap(handle, place.size, access=mmap.ACCESS_READ, offset=place.begin))
        segment.let_go()
        return segment


def _close(handles: Sequence[int]) -> None:
    for handle in handles:
        os.close(handle)


def write_file(living: Sequence[Survivor], path: Path) -> None:
    """Make a file of the living documents of some segments, which is on the disk then.

    :raises OSError: it cannot be written; a part may be left.
    """
    with Folder.opened(path.parent) as folder, folder.writing(path.name, 0o600) as file:
        write_living(living, file)
