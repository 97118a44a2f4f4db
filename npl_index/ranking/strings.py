"""Sorted strings, each with its row: in memory for one document, in a mapped file for many."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Protocol

from npl_index.ranking.arrays import NDArray, np

PREFIX = 8
"""Bytes of a string that are compared as one number before the string itself is read."""

_KEPT = 1 << 14


class Strings(Protocol):
    """Strings in ascending order, none twice; the row of one is its position."""

    def __len__(self) -> int: ...

    def row(self, text: str) -> int | None:
        """Return the row of a string, ``None`` where it is not there."""
        ...

    def rows(self, texts: Sequence[str]) -> list[int]:
        """Return the row of each of some strings, -1 where one is not there."""
        ...

    def first(self, text: str) -> int:
        """Return the row of the first string that is not less."""
        ...

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the strings of some rows."""
        ...

    def all(self) -> Sequence[str]:
        """Return all strings."""
        ...


class KeptStrings:
    """Strings as objects.

    :param texts: sorted, none twice.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._row_of = {text: row for row, text in enumerate(texts)}
        self.row = self._row_of.get

    def __len__(self) -> int:
        return len(self._texts)

    def rows(self, texts: Sequence[str]) -> list[int]:
        """Return the row of each of some strings, -1 where one is not there."""
        return [self._row_of.get(text, -1) for text in texts]

    def first(self, text: str) -> int:
        """Return the row of the first string that is not less."""
        return bisect_left(self._texts, text)

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the strings of some rows."""
        return [self._texts[row] for row in rows]

    def all(self) -> Sequence[str]:
        """Return all strings."""
        return self._texts


class PackedStrings:
    """Strings as arrays, which may lie in a mapped file; what is asked for often is kept.

    Strings in order of their characters are in order of their UTF-8 bytes, too.

    :param bytes_: all strings in UTF-8, a line end behind each, uint8; none has a line end of its own.
    :param starts: where each begins, and where the last one ends, int64.
    :param prefixes: the first bytes of each as one number, uint64.
    """

    ARRAYS = ("bytes", "starts", "prefixes")

    def __init__(self, bytes_: NDArray[Any], starts: NDArray[Any], prefixes: NDArray[Any]) -> None:
        self._bytes, self._starts, self._prefixes = bytes_, starts, prefixes
        self._rows: dict[str, int | None] = {}

    def packed(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return its arrays."""
        return self._bytes, self._starts, self._prefixes

    def __len__(self) -> int:
        return len(self._prefixes)

    def row(self, text: str) -> int | None:
        """Return the row of a string, ``None`` where it is not there."""
        try:
            return self._rows[text]
        except KeyError:
            found = self.first(text)
            there = found < len(self) and self._at(found) == text.encode(errors="surrogatepass")
        if len(self._rows) >= _KEPT:
            self._rows = {}
        self._rows[text] = row = found if there else None
        return row

    def rows(self, texts: Sequence[str]) -> list[int]:
        """Return the row of each of some strings, -1 where one is not there."""
        encoded = [text.encode(errors="surrogatepass") for text in texts]
        wanted = _prefixes(encoded)
        begins = np.searchsorted(self._prefixes, wanted).tolist()
        ends = np.searchsorted(self._prefixes, wanted, side="right").tolist()
        found = []
        for text, begin, end in zip(encoded, begins, ends, strict=True):
            row = begin if end - begin == 1 else self._among(text, begin, end)
            found.append(row if row < end and self._at(row) == text else -1)
        return found

    def first(self, text: str) -> int:
        """Return the row of the first string that is not less."""
        encoded = text.encode(errors="surrogatepass")
        prefix = np.uint64(int.from_bytes(encoded[:PREFIX].ljust(PREFIX, b"\0"), "big"))
        begin, end = self._prefixes.searchsorted(prefix), self._prefixes.searchsorted(prefix, side="right")
        return self._among(encoded, int(begin), int(end))

    def _among(self, text: bytes, begin: int, end: int) -> int:
        """Return the first row from ``begin`` to ``end`` whose string is not less."""
        while begin < end:
            middle = (begin + end) // 2
            if self._at(middle) < text:
                begin = middle + 1
            else:
                end = middle
        return begin

    def _at(self, row: int) -> bytes:
        return self._bytes[self._starts[row] : self._starts[row + 1] - 1].tobytes()

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the strings of some rows."""
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            whole = self._bytes[self._starts[rows[0]] : self._starts[rows[-1] + 1] - 1].tobytes()
            return whole.decode().split("\n")
        return [self._at(row).decode() for row in rows]

    def all(self) -> Sequence[str]:
        """Return all strings."""
        return self.texts(range(len(self)))

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return int(self._bytes.nbytes + self._starts.nbytes + self._prefixes.nbytes)


def pack(texts: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the arrays of :class:`PackedStrings`.

    :param texts: sorted, none twice, without line ends.
    """
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) + 1 for text in encoded], out=starts[1:])
    joined = b"\n".join((*encoded, b""))
    return np.frombuffer(joined, np.uint8), starts, _prefixes(encoded)


def _prefixes(encoded: Sequence[bytes]) -> NDArray[Any]:
    return np.array(encoded, dtype=f"S{PREFIX}").view(">u8").astype(np.uint64)
