"""Which documents of the index some files are, and which of them have to be indexed."""

from __future__ import annotations

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
from npl_index.library.documents import Fingerprint, Found
from npl_index.ranking.arrays import NDArray, np

MOST_SECTIONS = 2_000_000
"""Sections of the roots of one set."""

MOST_BYTES = 2 << 30
"""Bytes of the files of one set: as many sections of usual length. It is known before a file is read."""

_VERSION = "SELECT version FROM root WHERE id = ?"

FEW = 64
"""Files that are looked up one by one; with more, all of their roots are."""

States = Sequence[tuple[Found, Fingerprint]]


class OvertakenError(Exception):
    """Another process replaced documents of a set while it was looked at."""


def root_name(found: Found) -> str:
    """Return the name of the root of a file, with all else that its terms depend on."""
    parts = (found.root.path, found.home, "npl" if found.root.npl else "")
    return "\0".join(parts).rstrip("\0")


def _root_names(states: States) -> set[str]:
    """Return the names of the roots of some files."""
    some = {(id(found.root), found.home): found for found, _ in states}
    return set(map(root_name, some.values()))


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

    def places(self) -> list[int]:
        """Return the places of the files that are documents."""
        found: list[int] = self.numbers.nonzero()[0].tolist()
        return found

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
        self.numbers = np.zeros(len(states), np.int64)
        self._seen = {} if known is None else dict(known.version)
        self._unsettled: set[int] = set()
        self._failures: dict[str, tuple[Fingerprint, str]] = {}
        self._asked: dict[int, Asked] = {}
        self._look(known)

    def _look(self, known: Members | None) -> None:
        """Find the documents of the files that did not change."""
        changed = range(len(self.states)) if known is None else self._take_over(known)
        failures = {} if known is None else known.failures
        rows = self._rows([self.states[place] for place in changed])
        for place in changed:
            found, state = self.states[place]
            row = rows.get((root_name(found), found.path))
            before = failures.get(state.path)
            if row is not None and row[:4] == (state.mtime_ns, state.size, state.ctime_ns, 1):
                self.numbers[place] = row[5]
            elif before is not None and before[0] == state:
                self._failures[state.path] = before
            else:
                if row is not None:
                    self.numbers[place] = row[5]
                self._asked[place] = Asked(found, state, None if row is None else row[4])

    def _take_over(self, known: Members) -> list[int]:
        """Take over what is known of files that are the same objects; return the places of the others."""
        old = [state for _, state in known.states]
        new = [state for _, state in self.states]
        begin, least = 0, min(len(old), len(new))
        while begin < least and old[begin] is new[begin]:
            begin += 1
        end = 0
        while end < least - begin and old[-1 - end] is new[-1 - end]:
            end += 1
        place_of = {id(old[at]): at for at in range(begin, len(old) - end)}
        places = np.full(len(new), -1)
        places[:begin] = np.arange(begin)
        places[len(new) - end :] = np.arange(len(old) - end, len(old))
        for at in range(begin, len(new) - end):
            places[at] = place_of.get(id(new[at]), -1)
        same = places >= 0
        self.numbers[same] = known.numbers[places[same]]
        again = {int(at) for at in same.nonzero()[0] if not self.numbers[at]} if known.failures else set()
        again |= {int(at) for one in known.unsettled for at in (places == one).nonzero()[0]}
        return sorted(
            {*(~same).nonzero()[0].tolist(), *again, *(same & (self.numbers == 0)).nonzero()[0].tolist()}
        )

    def _rows(self, wanted: States) -> dict[tuple[str, str], tuple[Any, ...]]:
        """Return what the index has of some files, by root and path."""
        run_out: dict[tuple[str, str], tuple[Any, ...]] = {}
        columns = "path, mtime, size, ctime, settled, digest, document"
        by_root: dict[str, list[str]] = {}
        for found, _ in wanted:
            by_root.setdefault(root_name(found), []).append(found.path)
        with self._database.reading() as connection:
            if not self._seen:
                self._seen = dict(self._versions(connection)[0])
            for name, paths in by_root.items():
                select = f"SELECT {columns} FROM file WHERE root = (SELECT id FROM root WHERE name = ?)"
                if len(paths) < FEW:
                    rows = [
                        row
                        for path in paths
                        for row in connection.execute(f"{select} AND path = ?", (name, path)).fetchall()
                    ]
                else:
                    rows = connection.execute(select, (name,)).fetchall()
                run_out.update(((name, path), tuple(row)) for path, *row in rows)
        return run_out

    @property
    def asked(self) -> list[Asked]:
        """The files that have to be read."""
        return list(self._asked.values())

    @property
    def size(self) -> int:
        """Bytes of the files that have to be indexed, as many as take that long; others are compared."""
        return sum(one.state.size + 1024 for one in self._asked.values() if one.digest is None)

    def put(self, entries: Iterable[Entry]) -> dict[str, int]:
        """Write what came of some files.

        :returns: the numbers of the documents that were written, by their absolute paths.
        :raises DocumentTooLargeError: their roots have too many sections.
        """
        by_root: dict[str, list[Entry]] = {}
        for one in entries:
            by_root.setdefault(root_name(one.found), []).append(one)
        numbers: dict[tuple[str, str], int] = {}
        for name, group in by_root.items():
            with self._changing(name) as (connection, root):
                written = writing.put(connection, root, group)
                sections = connection.execute("SELECT sections FROM root WHERE id = ?", (root,)).fetchone()[0]
                if sections > MOST_SECTIONS:
                    raise _too_many(f"{MOST_SECTIONS:,} sections")
            numbers.update(((name, path), number) for path, number in written.items())
        done = {(root_name(one.found), one.found.path): one for group in by_root.values() for one in group}
        for place, asked in list(self._asked.items()):
            key = root_name(asked.found), asked.found.path
            entry = done.get(key)
            if entry is None:
                continue
            del self._asked[place]
            if entry.failure is not None:
                self.numbers[place] = 0
                self._failures[asked.state.path] = asked.state, entry.failure
                continue
            self.numbers[place] = numbers.get(key, self.numbers[place])
            if not entry.settled:
                self._unsettled.add(place)
        return {done[key].state.path: number for key, number in numbers.items()}

    @contextmanager
    def _changing(self, name: str) -> Iterator[tuple[Any, int]]:
        """Yield a connection and the number of a root in a transaction that changes it."""
        with self._database.writing() as connection:
            root = writing.root_of(connection, name)
            (before,) = connection.execute(_VERSION, (root,)).fetchone()
            yield connection, root
            if self._seen.get(root, 0) == before:
                (self._seen[root],) = connection.execute(_VERSION, (root,)).fetchone()

    def _versions(self, connection: Any) -> tuple[tuple[tuple[int, int], ...], bool]:
        """Return the versions of the roots, and whether there are no other roots."""
        names = _root_names(self.states)
        every = connection.execute("SELECT id, name, version FROM root ORDER BY id").fetchall()
        version = tuple((root, number) for root, name, number in every if name in names)
        return version, len(version) == len(every)

    def _check(self, connection: Any, numbers: NDArray[Any]) -> None:
        """Make sure that the index has the documents as it had them.

        :raises OvertakenError: another process replaced some of them.
        """
        rows = connection.execute("SELECT name, path, document FROM file JOIN root ON root.id = root")
        there = {(name, path): number for name, path, number in rows}
        for place, number in enumerate(numbers.tolist()):
            found = self.states[place][0]
            if number and there.get((root_name(found), found.path)) != number:
                raise OvertakenError

    def result(self) -> Members:
        """Return what is known by now; files that were not read yet are missing.

        :raises OvertakenError: another process replaced some of the documents meanwhile.
        """
        numbers = self.numbers.copy()
        numbers[list(self._asked)] = 0
        with self._database.reading() as connection:
            version, alone = self._versions(connection)
            if dict(version) != self._seen:
                self._check(connection, numbers)
            there = sum(
                connection.execute("SELECT count(*) FROM file WHERE root = ?", (root,)).fetchone()[0]
                for root, _ in version
            )
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
            with self._database.reading() as connection:
                rows = connection.execute(
                    "SELECT path FROM file WHERE root = (SELECT id FROM root WHERE name = ?)", (name,)
                ).fetchall()
            extra = [path for (path,) in rows if path not in own]
            if not self._whole:
                folder = name.partition("\0")[0]
                extra = [
                    path
                    for path in extra
                    if os.path.isabs(folder) and not os.path.lexists(f"{folder}/{path}")  # noqa: PTH117
                ]
            if extra:
                with self._changing(name) as (connection, root):
                    writing.remove(connection, root, extra)
                purged = True
        return purged


def _too_many(what: str) -> DocumentTooLargeError:
    return DocumentTooLargeError(f"there is more than {what}", hint="name a folder of it")
