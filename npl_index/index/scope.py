"""The requested documents in the index, and reading of their rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cachetools import LRUCache, cachedmethod

from npl_index.cached import cached_property
from npl_index.errors import UnreadableDocumentError
from npl_index.index.database import IndexDatabase, reading_errors
from npl_index.index.writing import AMONG, ROOT_ROW, unsealed, verified
from npl_index.library.documents import DocumentFile
from npl_index.ranking.arrays import NDArray, np

_NESTED = nullcontext()

MAX_MATCHING = 1 << 20
"""Maximum bytes of kept positions of documents, by word."""


class DocumentChangedError(UnreadableDocumentError):
    """A document changed while an answer was being made from it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} changed while it was read", hint="try again")


@dataclass(frozen=True)
class DocumentScope:
    """The requested documents: all or some documents of some roots.

    :param version: numbers and versions of the roots.
    :param documents: numbers of the documents, in order.
    :param complete: in these versions, the roots have no other documents.
    """

    version: tuple[tuple[int, int], ...]
    documents: NDArray[Any]
    complete: bool

    @cached_property
    def in_roots(self) -> str:
        """Condition of SQL for a column with the number of one of the roots."""
        return f"IN ({', '.join(str(root) for root, _ in self.version)})"

    @cached_property
    def positions(self) -> dict[int, int]:
        """Positions of the documents, by number."""
        return {number: position for position, number in enumerate(self.documents.tolist())}

    @cached_property
    def _order(self) -> NDArray[Any]:
        order: NDArray[Any] = self.documents.argsort()
        return order

    def find(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the positions of those documents that are in the scope."""
        at = self.documents.searchsorted(numbers, sorter=self._order).clip(max=len(self._order) - 1)
        there: NDArray[Any] = self._order[at][self.documents[self._order[at]] == numbers]
        return there

    @cached_property
    def numbers(self) -> str:
        """Numbers of the documents, as JSON."""
        return json.dumps(self.documents.tolist())


class ScopeReader:
    """Reads the index for one scope.

    :param files: the files of the documents, for messages.
    :param changed: called when other contents replaced documents; the argument tells whether the index is
        damaged.
    """

    def __init__(
        self,
        database: IndexDatabase,
        scope: DocumentScope,
        files: Sequence[DocumentFile],
        changed: Callable[[bool], None],
    ) -> None:
        self.scope, self._files = scope, files
        self._database, self._changed = database, changed
        # Questions repeat words, and a document never changes.
        self._matching: LRUCache[str, NDArray[Any]] = LRUCache(MAX_MATCHING, lambda at: 200 + at.nbytes)
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
            raise DocumentChangedError(self._files[0].path) from None

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
    def matching(self, *terms: str) -> NDArray[Any]:
        """Return the positions of the documents with all of some terms, in any order."""
        # One text takes half the time of many rows.
        select = "SELECT json_group_array(rowid) FROM word WHERE word MATCH ?"
        quoted = (term.replace('"', '""') for term in terms)
        ((numbers,),) = self.rows(select, " AND ".join(f'"{term}"' for term in quoted))
        return self.scope.find(np.array(json.loads(numbers), np.int64)).astype(np.uint32)

    def is_current(self) -> bool:
        """Return whether the roots still have the versions of the scope."""
        select = f"SELECT {ROOT_ROW} FROM root WHERE id {self.scope.in_roots} ORDER BY id"
        with self.reading():
            rows = verified(self._database.rows_once(select))
        return tuple((number, version) for number, version, *_ in rows) == self.scope.version

    def check(self) -> None:
        """Check that the index still has the documents; another process may have replaced some.

        :raises DocumentChangedError: it has not.
        """
        if not self.is_current():
            select = f"SELECT count(*) FROM document WHERE id {AMONG}"
            ((there,),) = self.rows(select, self.scope.numbers)
            if there < len(self.scope.documents):
                raise self.lost()

    def lost(self, number: int | None = None) -> DocumentChangedError:
        """Return the error for a document that the index no longer has.

        :param number: the document, if it is known.
        """
        # In unchanged roots, only damage can lose one.
        self._changed(self.is_current())
        return DocumentChangedError(self._files[0 if number is None else self.scope.positions[number]].path)
