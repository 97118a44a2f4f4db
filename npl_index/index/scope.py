"""The requested documents in the index, and reading of their rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from cachetools import LRUCache, cachedmethod

from npl_index.cached import cached_property
from npl_index.errors import UnreadableDocumentError
from npl_index.index.database import IndexDatabase, reading_errors
from npl_index.index.writing import AMONG, ROOT_ROW, verified
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

    :param path: path of a document, for messages.
    :param changed: called when other contents replaced documents; the argument tells whether the index is
        damaged.
    """

    def __init__(
        self, database: IndexDatabase, scope: DocumentScope, path: str, changed: Callable[[bool], None]
    ) -> None:
        self.scope = scope
        self._database, self._path, self._changed = database, path, changed
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
            raise DocumentChangedError(self._path) from None

    def rows(self, statement: str, *parameters: object) -> list[Any]:
        """Return the rows of a statement."""
        with self.reading():
            return self._database.rows(statement, *parameters)

    def verified(self, statement: str, *parameters: object) -> list[Any]:
        """Return the rows of a statement whose last column is a checksum, without it."""
        with self.reading():
            return verified(self._database.rows(statement, *parameters))

    @cachedmethod(attrgetter("_matching"), lock=attrgetter("_lock"))
    def matching(self, expression: str) -> NDArray[Any]:
        """Return the positions of the documents that match an expression of FTS5, in any order."""
        # One text takes half the time of many rows.
        select = "SELECT json_group_array(rowid) FROM word WHERE word MATCH ?"
        ((numbers,),) = self.rows(select, expression)
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

    def lost(self, path: str | None = None) -> DocumentChangedError:
        """Return the error for a document that the index no longer has."""
        # In unchanged roots, only damage can lose one.
        self._changed(self.is_current())
        return DocumentChangedError(path or self._path)
