"""Standard input whose lines have an end: the protocol's package reads a line of any length into memory."""

from __future__ import annotations

import io
import os
import sys


class BoundedLines(io.RawIOBase):
    """Reads a file and cuts each line off at a limit; what is left of it cannot be a message.

    :param file: descriptor to read, closed with this.
    :param limit: bytes of the longest line.
    """

    def __init__(self, file: int, limit: int) -> None:
        self._file = io.FileIO(file, "rb")
        self._limit = limit
        self._length = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Return the next bytes that are within the limit; 0 at the end."""
        while data := self._file.read(len(buffer)):
            if kept := self._cut(data):
                buffer[: len(kept)] = kept
                return len(kept)
        return 0

    def _cut(self, data: bytes) -> bytes:
        if self._length + len(data) <= self._limit:
            end = data.rfind(b"\n")
            self._length = self._length + len(data) if end < 0 else len(data) - end - 1
            return data
        kept = bytearray()
        *lines, rest = data.split(b"\n")
        for line in lines:
            kept += line[: max(0, self._limit - self._length)] + b"\n"
            self._length = 0
        kept += rest[: max(0, self._limit - self._length)]
        self._length += len(rest)
        return bytes(kept)


def bound_standard_input(limit: int) -> None:
    """Replace standard input by one whose lines end at a limit; programs that are run see none.

    :param limit: bytes of the longest line.
    """
    own = os.dup(sys.stdin.fileno())
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is wanted, not a path
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    sys.stdin = io.TextIOWrapper(io.BufferedReader(BoundedLines(own, limit), 65536), encoding="utf-8")
