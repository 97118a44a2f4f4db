"""The documents of some files in the index, and the files still to index."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter, is_, is_not, itemgetter
from typing import Any

from npl_index.cached import cached_property
from npl_index.errors import DocumentTooLargeError
from npl_index.index import writing
from npl_index.index.database import IndexDatabase
from npl_index.index.entries import IndexEntry
from npl_index.index.writing import AMONG, ROOT, ROOT_ROW
from npl_index.library.catalog import Root
from npl_index.library.documents import DocumentFile, Fingerprint
from npl_index.ranking.arrays import NDArray, np

MAX_SECTIONS = 2_000_000
"""Maximum sections of the roots of one set."""

MAX_BYTES = 2 << 30
"""Maximum bytes of the files of one set, about as much as the maximum of sections; they are known before
reading."""

States = Sequence[tuple[DocumentFile, Fingerprint]]

_FILE, _STATE, _SIZE, _ROOT = itemgetter(0), itemgetter(1), attrgetter("size"), attrgetter("root")


class OvertakenError(Exception):
    """Another process replaced documents of a set during its update."""


@dataclass(frozen=True)
class Members:
    """Some files and their documents in the index.

    :param states: the files and their states.
    :param numbers: numbers of their documents; 0 without one.
    :param unsettled: positions of the files that must be read again to detect changes.
    :param failures: states of unusable files with the reasons, by path.
    :param version: numbers and versions of their roots.
    :param complete: in these versions, the roots have no other documents.
    """

    states: States
    numbers: NDArray[Any]
    unsettled: frozenset[int]
    failures: Mapping[str, tuple[Fingerprint, str]]
    version: tuple[tuple[int, int], ...]
    complete: bool

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The reasons why files are omitted."""
        return tuple(text for _, (_, text) in sorted(self.failures.items()))

    @property
    def missing(self) -> int:
        """Number of files that are not indexed yet."""
        return len(self.states) - len(self.documents) - len(self.failures)

    @property
    def roots(self) -> list[int]:
        """Numbers of their roots."""
        return [root for root, _ in self.version]

    def is_current(self, states: States) -> bool:
        """Return whether the files are certainly unchanged."""
        return not self.unsettled and (states is self.states or list(states) == list(self.states))

    def follow(self, former: Members) -> bool:
        """Return whether these are the files of former members, at the same positions."""
        same_files = _same_files(self.states, former.states)
        return same_files and np.array_equal(self.numbers > 0, former.numbers > 0)

    @cached_property
    def documents(self) -> NDArray[Any]:
        """Numbers of the documents, in order."""
        return self.numbers[self.numbers > 0]

    @cached_property
    def indexed(self) -> States:
        """The files with documents, and their states."""
        if self.numbers.all():
            return self.states
        return [self.states[position] for position in self.numbers.nonzero()[0].tolist()]

    @cached_property
    def as_json(self) -> str:
        """Numbers of the documents, as JSON."""
        return json.dumps(self.documents.tolist())

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
        """Return the positions of those documents that are among these."""
        at = self.documents.searchsorted(numbers, sorter=self._order).clip(max=len(self._order) - 1)
        there: NDArray[Any] = self._order[at][self.documents[self._order[at]] == numbers]
        return there


class Update:
    """An update of the index for some files.

    :param former: the previous result.
    :param whole: these are all files of their roots; other files of these roots leave the index.
    :raises DocumentTooLargeError: the files are too large together.
    """

    def __init__(
        self, database: IndexDatabase, states: States, former: Members | None, *, whole: bool
    ) -> None:
        if sum(map(_SIZE, map(_STATE, states))) > MAX_BYTES:
            raise _too_many(f"{MAX_BYTES >> 30} GiB of Markdown")
        self.states, self._database, self._whole = states, database, whole
        self._unsettled: set[int] = set()
        self._failures: dict[str, tuple[Fingerprint, str]] = {}
        self._asked: dict[int, IndexEntry] = {}
        self._terms: tuple[object, dict[str, int]] = None, {}
        # Versions in which the roots have no other documents than these.
        self._complete: dict[int, int] = {}
        if former is not None and former.complete and _same_files(states, former.states):
            self._complete.update(former.version)
        self.numbers = _unchanged_numbers(states, former)
        self._look_up({} if former is None else former.failures)

    def _look_up(self, failures: Mapping[str, tuple[Fingerprint, str]]) -> None:
        """Find the documents of files without a known number.

        :param failures: previous failures.
        """
        positions = (self.numbers == 0).nonzero()[0].tolist()
        paths: dict[Root, list[str]] = defaultdict(list)
        for file in (self.states[position][0] for position in positions):
            paths[file.root].append(file.path)
        select = (
            "SELECT path, mtime, size, ctime, settled, digest, document FROM file"
            f" WHERE root = (SELECT id FROM root WHERE {ROOT}) AND path {AMONG}"
        )
        rows: dict[tuple[Root, str], Sequence[Any]] = {}
        with self._database.reading():
            for root, names in paths.items():
                stored = self._database.rows(select, root.path, root.npl, json.dumps(names))
                rows.update(((root, path), row) for path, *row in stored)
        for position in positions:
            file, state = self.states[position]
            *stamp, digest, number = rows.get((file.root, file.path), (None, 0))
            before = failures.get(state.path)
            if stamp == [state.mtime_ns, state.size, state.ctime_ns, 1]:
                self.numbers[position] = number
            elif before is not None and before[0] == state:
                self._failures[state.path] = before
            else:
                self.numbers[position] = number
                self._asked[position] = IndexEntry(file, state, position, digest)

    @property
    def asked(self) -> list[IndexEntry]:
        """The files to read."""
        return list(self._asked.copy().values())

    @property
    def size(self) -> int:
        """Size of the indexing work in bytes, without files that are only compared."""
        return sum(entry.state.size + 1024 for entry in self.asked if entry.digest is None)

    def put(self, entries: Iterable[IndexEntry]) -> None:
        """Write the entries of some files.

        :raises DocumentTooLargeError: their roots have too many sections.
        """
        by_root: dict[Root, list[IndexEntry]] = defaultdict(list)
        for entry in entries:
            by_root[entry.file.root].append(entry)
        for root, group in by_root.items():
            with self._database.writing() as connection:
                # The numbers of terms are known until another connection writes.
                state = connection, connection.execute("PRAGMA data_version").fetchone()
                terms = self._terms[1] if state == self._terms[0] else {}
                self._terms = None, {}
                number = writing.root_of(connection, root)
                select = "SELECT version, sections FROM root WHERE id = ?"
                before, _ = connection.execute(select, (number,)).fetchone()
                numbers = writing.put(connection, number, group, terms)
                version, sections = connection.execute(select, (number,)).fetchone()
                if sections > MAX_SECTIONS:
                    raise _too_many(f"{MAX_SECTIONS:,} sections")
            self._terms = state, terms
            if self._complete.get(number) == before:
                self._complete[number] = version
            for entry in group:
                position, asked = entry.position, self._asked.pop(entry.position)
                if entry.failure is not None:
                    self.numbers[position] = 0
                    self._failures[asked.state.path] = asked.state, entry.failure
                    continue
                # Without a number, another process has removed the document.
                self.numbers[position] = numbers.get(entry.file.path, self.numbers[position])
                if not entry.settled:
                    self._unsettled.add(position)

    def _versions(self) -> tuple[tuple[int, int], ...]:
        """Return the numbers and versions of the roots."""
        rows = writing.verified(self._database.rows(f"SELECT {ROOT_ROW} FROM root ORDER BY id"))
        known = tuple((number, version) for number, version, *_ in rows if number in self._complete)
        if known == (complete := tuple(self._complete.items())) and complete:
            return known
        roots = list(map(_ROOT, map(_FILE, self.states)))
        keys = {(root.path, root.npl) for root in dict(zip(map(id, roots), roots, strict=True)).values()}
        return tuple((number, version) for number, version, *key, _ in rows if tuple(key) in keys)

    def result(self) -> Members:
        """Return the present result, without unread files.

        :raises OvertakenError: another process replaced some of the documents.
        """
        numbers = self.numbers.copy()
        # Another thread may be writing entries.
        numbers[list(self._asked.copy())] = 0
        documents = numbers[numbers > 0]
        if not self._asked:
            self._terms = None, {}  # tens of megabytes for thousands of files
        # One text takes half the time of many rows.
        select = f"SELECT json_group_array(document) FROM file WHERE root {AMONG}"
        with self._database.reading():
            version = self._versions()
            complete = not self._asked and bool(version) and version == tuple(self._complete.items())
            roots = json.dumps([] if complete else [root for root, _ in version])
            ((text,),) = self._database.rows(select, roots)
        others, wanted = set(json.loads(text)), set(documents.tolist())
        if not (complete or wanted <= others):
            raise OvertakenError
        others -= wanted
        if others and not self._asked and self._purged():
            return self.result()
        unsettled, failures = frozenset(self._unsettled), dict(self._failures)
        return Members(self.states, numbers, unsettled, failures, version, not others)

    def _purged(self) -> bool:
        """Remove deleted files from the index; return whether there were any."""
        paths: dict[Root, set[str]] = defaultdict(set)
        for file, _ in self.states:
            paths[file.root].add(file.path)
        purged = False
        select = f"SELECT path FROM file WHERE root = (SELECT id FROM root WHERE {ROOT})"
        for root, listed in paths.items():
            rows = self._database.rows(select, root.path, root.npl)
            extra = [path for (path,) in rows if path not in listed]
            if not self._whole:
                gone = (path for path in extra if not os.path.lexists(f"{root.path}/{path}"))
                extra = [] if root.scheme else list(gone)
            if extra:
                with self._database.writing() as connection:
                    writing.remove(connection, writing.root_of(connection, root), extra)
                purged = True
        return purged


def _same_files(states: States, former: States) -> bool:
    return len(states) == len(former) and all(map(is_, map(_FILE, states), map(_FILE, former)))


def _unchanged_numbers(states: States, former: Members | None) -> NDArray[Any]:
    """Return the numbers of the documents of certainly unchanged files; 0 for other files."""
    numbers = np.zeros(len(states), np.int64)
    if former is None:
        return numbers
    settled, most = former.numbers.copy(), min(len(states), len(former.states))
    settled[list(former.unsettled)] = 0
    numbers[:most] = settled[:most]
    # Most files are the same objects at the same positions.
    others = list(compress(range(most), map(is_not, states, former.states)))
    places = (*others, *range(most, len(settled)))
    number_of = {id(former.states[place][1]): settled[place] for place in places}
    for place in (*others, *range(most, len(numbers))):
        numbers[place] = number_of.get(id(states[place][1]), 0)
    return numbers


def _too_many(limit: str) -> DocumentTooLargeError:
    return DocumentTooLargeError(f"there is more than {limit}", hint="name a subfolder")
