"""Which documents of the index some files are, and which of them have to be indexed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from npl_index.errors import DocumentNotFoundError, DocumentTooLargeError
from npl_index.index import writing
from npl_index.index.asking import Scope
from npl_index.index.database import Database
from npl_index.index.entries import Asked, Entry
from npl_index.index.writing import AMONG
from npl_index.library.documents import Fingerprint, Found
from npl_index.ranking.arrays import NDArray, np

MOST_SECTIONS = 2_000_000
"""Sections of the roots of one set."""

MOST_BYTES = 2 << 30
"""Bytes of the files of one set: as many sections of usual length. It is known before a file is read."""

_VERSION = "SELECT version FROM root WHERE id = ?"

States = Sequence[tuple[Found, Fingerprint]]

_Key = tuple[str, str]  # name of a root, path


class OvertakenError(Exception):
    """Another process replaced documents of a set while it was looked at."""


def root_name(found: Found) -> str:
    """Return the name of the root of a file, with all else that its terms depend on."""
    parts = (found.root.path, found.home, "npl" if found.root.npl else "")
    return "\0".join(parts).rstrip("\0")


def _key(found: Found) -> _Key:
    return root_name(found), found.path


@dataclass(frozen=True)
class Members:
    """What was found out about some files.

    :param states: the files, and what they were.
    :param numbers: of their documents; 0 where there is none.
    :param unsettled: places of those that have to be read again to know whether they changed.
    :param failures: those that cannot be indexed, and why, by path.
    :param version: of their roots.
    :param complete: these are all documents of their roots.
    :param alone: there are no other roots.
    """

    states: States
    numbers: NDArray[Any]
    unsettled: frozenset[int]
    failures: Mapping[str, tuple[Fingerprint, str]] = field(default_factory=dict)
    version: tuple[tuple[int, int], ...] = ()
    complete: bool = False
    alone: bool = False

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The files that were left out, and why."""
        return tuple(text for _, text in self.failures.values())

    @property
    def roots(self) -> list[int]:
        """Numbers of their roots."""
        return [root for root, _ in self.version]

    def is_current(self, states: States) -> bool:
        """Tell whether files are certainly as they were."""
        return not self.unsettled and (states is self.states or list(states) == list(self.states))

    def documents(self) -> list[tuple[Found, Fingerprint]]:
        """Return the files that are documents, with their states."""
        return [self.states[place] for place in self.numbers.nonzero()[0].tolist()]

    def scope(self) -> Scope:
        """Return the documents as they are asked for.

        :raises DocumentNotFoundError: there is none.
        """
        documents = self.numbers[self.numbers > 0]
        if not len(documents):
            problem = f"none of the {len(self.states)} files can be read"
            raise DocumentNotFoundError(problem, hint=next(iter(self.unreadable), None))
        return Scope(self.version, documents, self.complete, self.alone)


class Update:
    """Finds out which documents some files are, and takes what is indexed of the others.

    :param known: what was found out before.
    :param whole: these are all files of their roots; what else the index has of them goes.
    :raises DocumentTooLargeError: these are more than can be indexed.
    """

    def __init__(self, database: Database, states: States, known: Members | None, *, whole: bool) -> None:
        if sum(state.size for _, state in states) > MOST_BYTES:
            raise _too_many(f"{MOST_BYTES >> 30} GiB of Markdown")
        self.states, self._database, self._whole = states, database, whole
        self._seen = {} if known is None else dict(known.version)
        self._unsettled: set[int] = set()
        self._failures: dict[str, tuple[Fingerprint, str]] = {}
        self._asked: dict[_Key, tuple[int, Asked]] = {}
        self.numbers = np.array(_known_numbers(states, known), np.int64)
        self._look({} if known is None else known.failures)

    def _look(self, failures: Mapping[str, tuple[Fingerprint, str]]) -> None:
        """Find the documents of the files that are not known.

        :param failures: files that could not be indexed before.
        """
        places = (self.numbers == 0).nonzero()[0].tolist()
        rows = self._rows([self.states[place] for place in places])
        for place in places:
            found, state = self.states[place]
            row = rows.get(_key(found))
            before = failures.get(state.path)
            if row is not None and row[:4] == (state.mtime_ns, state.size, state.ctime_ns, 1):
                self.numbers[place] = row[5]
            elif before is not None and before[0] == state:
                self._failures[state.path] = before
            else:
                self.numbers[place] = 0 if row is None else row[5]
                self._asked[_key(found)] = place, Asked(found, state, None if row is None else row[4])

    def _rows(self, wanted: States) -> dict[_Key, tuple[Any, ...]]:
        """Return what the index has of some files."""
        select = (
            "SELECT path, mtime, size, ctime, settled, digest, document FROM file"
            f" WHERE root = (SELECT id FROM root WHERE name = ?) AND path {AMONG}"
        )
        by_root: dict[str, list[str]] = {}
        for one, _ in wanted:
            by_root.setdefault(root_name(one), []).append(one.path)
        rows: dict[_Key, tuple[Any, ...]] = {}
        with self._database.reading():
            if not self._seen:
                self._seen = dict(self._versions()[0])
            for name, paths in by_root.items():
                found = self._database.rows(select, name, json.dumps(paths))
                rows.update(((name, path), tuple(row)) for path, *row in found)
        return rows

    @property
    def asked(self) -> list[Asked]:
        """The files that have to be read."""
        return [asked for _, asked in self._asked.values()]

    @property
    def size(self) -> int:
        """Bytes of the files that have to be indexed, as many as take that long; others are compared."""
        return sum(one.state.size + 1024 for one in self.asked if one.digest is None)

    def put(self, entries: Iterable[Entry]) -> dict[str, int]:
        """Write what came of some files.

        :returns: the numbers of the documents that were written, by their absolute paths.
        :raises DocumentTooLargeError: their roots have too many sections.
        """
        by_root: dict[str, list[Entry]] = {}
        for one in entries:
            by_root.setdefault(root_name(one.found), []).append(one)
        written: dict[str, int] = {}
        for name, group in by_root.items():
            with self._changing(name) as (connection, root):
                numbers = writing.put(connection, root, group)
                (sections,) = connection.execute("SELECT sections FROM root WHERE id = ?", (root,)).fetchone()
                if sections > MOST_SECTIONS:
                    raise _too_many(f"{MOST_SECTIONS:,} sections")
            for one in group:
                path = one.found.path
                if path in numbers:
                    written[one.state.path] = numbers[path]
                place, asked = self._asked.pop((name, path), (None, None))
                if place is None or asked is None:
                    continue
                self.numbers[place] = numbers.get(path, self.numbers[place])
                if one.failure is not None:
                    self.numbers[place] = 0
                    self._failures[asked.state.path] = asked.state, one.failure
                elif not one.settled:
                    self._unsettled.add(place)
        return written

    @contextmanager
    def _changing(self, name: str) -> Iterator[tuple[Any, int]]:
        """Yield a connection and the number of a root in a transaction that changes it."""
        with self._database.writing() as connection:
            root = writing.root_of(connection, name)
            (before,) = connection.execute(_VERSION, (root,)).fetchone()
            yield connection, root
            if self._seen.get(root, 0) == before:
                (self._seen[root],) = connection.execute(_VERSION, (root,)).fetchone()

    def _versions(self) -> tuple[tuple[tuple[int, int], ...], bool]:
        """Return the versions of the roots, and whether there are no other roots."""
        some = {(id(found.root), found.home): found for found, _ in self.states}
        names = set(map(root_name, some.values()))
        every = self._database.rows("SELECT id, name, version FROM root ORDER BY id")
        version = tuple((root, number) for root, name, number in every if name in names)
        return version, len(version) == len(every)

    def _check(self, numbers: NDArray[Any]) -> None:
        """Make sure that the index has the documents as it had them.

        :raises OvertakenError: another process replaced some of them.
        """
        rows = self._database.rows("SELECT name, path, document FROM file JOIN root ON root.id = root")
        there = {(name, path): number for name, path, number in rows}
        for (found, _), number in zip(self.states, numbers.tolist(), strict=True):
            if number and there.get(_key(found)) != number:
                raise OvertakenError

    def result(self) -> Members:
        """Return what is known by now; files that were not read yet are missing.

        :raises OvertakenError: another process replaced some of the documents meanwhile.
        """
        numbers = self.numbers.copy()
        numbers[[place for place, _ in self._asked.values()]] = 0
        with self._database.reading():
            version, alone = self._versions()
            if dict(version) != self._seen:
                self._check(numbers)
            roots = json.dumps([root for root, _ in version])
            ((there,),) = self._database.rows(f"SELECT count(*) FROM file WHERE root {AMONG}", roots)
        present = int(np.count_nonzero(numbers))
        if there > present and not self._asked and self._purged():
            return self.result()
        return Members(
            self.states,
            numbers,
            frozenset(self._unsettled),
            dict(self._failures),
            version,
            there == present,
            alone,
        )

    def _purged(self) -> bool:
        """Remove what the index has of files that are gone; return whether there was any."""
        paths: dict[str, set[str]] = {}
        for found, _ in self.states:
            paths.setdefault(root_name(found), set()).add(found.path)
        purged = False
        for name, own in paths.items():
            select = "SELECT path FROM file WHERE root = (SELECT id FROM root WHERE name = ?)"
            extra = [path for (path,) in self._database.rows(select, name) if path not in own]
            if not self._whole:
                folder = name.partition("\0")[0]
                is_folder = os.path.isabs(folder)  # noqa: PTH117
                extra = [path for path in extra if is_folder and not os.path.lexists(f"{folder}/{path}")]
            if extra:
                with self._changing(name) as (connection, root):
                    writing.remove(connection, root, extra)
                purged = True
        return purged


def _known_numbers(states: States, known: Members | None) -> list[int]:
    """Return the numbers of the documents that files were before and certainly are; 0 for others."""
    if known is None:
        return [0] * len(states)
    every = enumerate(zip(known.states, known.numbers.tolist(), strict=True))
    number_of = {id(state): number for place, ((_, state), number) in every if place not in known.unsettled}
    return [number_of.get(id(state), 0) for _, state in states]


def _too_many(what: str) -> DocumentTooLargeError:
    return DocumentTooLargeError(f"there is more than {what}", hint="name a folder of it")
