"""Reading of the rows of the requested documents."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter
from typing import Any, NamedTuple

from cachetools import LRUCache, cachedmethod

from npl_index.errors import UnreadableDocumentError
from npl_index.index.database import IndexDatabase, reading_errors
from npl_index.index.members import Members
from npl_index.index.writing import AMONG, ROOT_ROW, unsealed, verified
from npl_index.ranking.arrays import NDArray, np

_NESTED = nullcontext()

MAX_MATCHING = 1 << 20
"""Maximum bytes of kept positions of documents, by word."""


class Matching(NamedTuple):
    """Positions of documents with some terms, in any order.

    :param anywhere: the documents.
    :param in_names: those with the terms in headings or paths.
    """

    anywhere: NDArray[Any]
    in_names: NDArray[Any]


class DocumentChangedError(UnreadableDocumentError):
    """A document changed while an answer was being made from it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} changed while it was read", hint="try again")


class IndexReader:
    """Reads the index for some documents.

    :param members: the documents, at least one.
    :param changed: called when other contents replaced documents; the argument tells whether the index is
        damaged.
    """

    def __init__(self, database: IndexDatabase, members: Members, changed: Callable[[bool], None]) -> None:
        self.members = members
        self._database, self._changed = database, changed
        # Questions repeat words, and a document never changes.
        self._matching: LRUCache[str, Matching] = LRUCache(MAX_MATCHING, _bytes_of)
        self._lock = threading.Lock()

    def reading(self) -> AbstractContextManager[None]:
        """Read one state of the index within the context; contexts of a thread nest.

        :raises DocumentChangedError: the index is damaged, or has different content of a document.
        """
        return _NESTED if self._database.is_reading else self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._database.reading():
                yield
        except reading_errors() as error:
            self._changed(self._database.is_damaged(error))
            raise DocumentChangedError(self.members.indexed[0][0].path) from None

    def rows(self, statement: str, *parameters: object) -> list[Any]:
        """Return the rows of a statement."""
        with self.reading():
            return self._database.rows(statement, *parameters)

    def verified(self, statement: str, *parameters: object) -> list[Any]:
        """Return the rows of a statement whose last column is a checksum, without it."""
        with self.reading():
            return verified(self._database.rows(statement, *parameters))

    def documents(self, numbers: Sequence[int], *columns: str) -> dict[int, tuple[Any, ...]]:
        """Return the digest, the language and further columns of some documents, by number.

        :raises DocumentChangedError: the index no longer has one of them.
        """
        select = f"SELECT id, digest, language, {', '.join(columns)} FROM document WHERE id {AMONG}"
        with self.reading():
            read: dict[int, tuple[Any, ...]] = {}
            for number, digest, language, *sealed in self._database.rows(select, json.dumps(numbers)):
                plain = (unsealed(data, digest, language) for data in sealed)
                read[number] = digest, language, *plain
            if lost := [number for number in numbers if number not in read]:
                raise self.lost(lost[0])
        return read

    @cachedmethod(attrgetter("_matching"), lock=attrgetter("_lock"))
    def matching(self, *terms: str) -> Matching:
        """Return the positions of the documents with all of some terms."""
        # One text takes half the time of many rows.
        select = "(SELECT json_group_array(rowid) FROM word WHERE word MATCH ?)"
        texts = (term.replace('"', '""') for term in terms)
        quoted = " AND ".join(f'"{text}"' for text in texts)
        ((*columns,),) = self.rows(f"SELECT {select}, {select}", quoted, f"name : ({quoted})")
        numbers = (np.array(json.loads(column), np.int64) for column in columns)
        return Matching(*(self.members.find(column).astype(np.uint32) for column in numbers))

    def is_current(self) -> bool:
        """Return whether the roots still have their versions."""
        select = f"SELECT {ROOT_ROW} FROM root WHERE id {self.members.in_roots} ORDER BY id"
        with self.reading():
            rows = verified(self._database.rows_once(select))
        return tuple((number, version) for number, version, *_ in rows) == self.members.version

    def check(self) -> None:
        """Check that the index still has the documents; another process may have replaced some.

        :raises DocumentChangedError: it has not.
        """
        if not self.is_current():
            select = f"SELECT count(*) FROM document WHERE id {AMONG}"
            ((there,),) = self.rows(select, self.members.as_json)
            if there < len(self.members.documents):
                raise self.lost()

    def lost(self, number: int = 0) -> DocumentChangedError:
        """Return the error for a document that the index no longer has.

        :param number: the document; 0 if it is not known.
        """
        # In unchanged roots, only damage can lose one.
        self._changed(self.is_current())
        return DocumentChangedError(self.members.indexed[self.members.positions.get(number, 0)][0].path)


def _bytes_of(matching: Matching) -> int:
    return 300 + sum(positions.nbytes for positions in matching)
