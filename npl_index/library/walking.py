"""Walks: the files below a folder of the search roots.

A folder whose state and rules are unchanged is not read again, if an earlier walk is known.
"""

# A path object for each file costs more than the system call.
# ruff: noqa: PTH112

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple

from npl_index import errors
from npl_index.deadline import CALL
from npl_index.library import references
from npl_index.library.catalog import Root
from npl_index.library.fingerprints import entry_state, settled_states
from npl_index.library.ignoring import RULES_FILE, Rules, everything
from npl_index.library.patterns import PathPattern, fits
from npl_index.library.roots import DocumentFile, Roots, real_path, too_many

_SAMPLE = 1_000
_MOST_ASIDE = 4_000  # about 20 ms

Walked = list[tuple[str, DocumentFile]]  # files of one folder, with their paths below the start of a walk
Waiting = list[tuple[str, str, Rules | None]]  # folders with their paths, and the rules above them


class WalkedFolder(NamedTuple):
    """The content of a folder for a walk, valid while neither the folder nor its file of rules changes.

    :param states: states of the folder and of the file of rules; the latter is empty without a file.
    :param above: the rules above it.
    :param visited: number of its visited entries.
    :param files: its files.
    :param folders: folders to enter.
    :param skipped: numbers of its skipped files and folders.
    :param aside: its folders that are not served.
    """

    states: tuple[tuple[int, ...], ...]
    above: Rules | None
    visited: int
    files: Walked
    folders: Waiting
    skipped: Counter[str]
    aside: Waiting

    def is_current(self, folder: str, above: Rules | None, most: int) -> bool:
        """Return whether a walk certainly finds the same again.

        :param above: the rules above it.
        :param most: maximum entries to visit.
        """
        state, rules = self.states
        same = self.above is above and self.visited <= most and entry_state(folder) == state
        return same and (not rules or entry_state(f"{folder}/{RULES_FILE}") == rules)


Known = dict[str, WalkedFolder]


@dataclass
class Walk:
    """Walks below real folders.

    Linked folders are entered once, and only if they lie under a root. A walk skips hidden folders without
    instructions for agents, folders of installed packages, and folders below the depth limit. It also skips
    ignored files and folders, except in roots declared as NPL.

    :param pattern: pattern of the path below the folder; ``None`` matches all.
    :param most: maximum directory entries to visit below a folder, by default from the limits.
    :param counted: whether ``skipped`` counts the files of folders that are not served as well.
    :param known: folders of an earlier equal walk; the files of unchanged ones are the same objects.
    :param skipped: numbers of the skipped files and folders.
    :param aside: folders that are not served.
    :param entered: folders that are not entered again.
    """

    roots: Roots
    suffixes: tuple[str, ...] = references.MARKDOWN_SUFFIXES
    pattern: PathPattern | None = None
    most: int = 0
    counted: bool = False
    known: Known = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    aside: Waiting = field(default_factory=list)
    entered: set[str] = field(default_factory=set)
    _waiting: Waiting = field(default_factory=list, init=False)
    _visited: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.most = self.most or self.roots.limits.max_entries

    def files(self, start: str) -> Iterator[tuple[str, DocumentFile]]:
        """Yield each file below a folder; see :meth:`folders`."""
        return chain.from_iterable(self.folders(start))

    def folders(self, start: str) -> Iterator[Walked]:
        """Yield the files of each folder below a folder, with their paths below that, in no order.

        :raises DocumentTooLargeError: more entries than the limit.
        :raises DocumentTimeoutError: the deadline of the call has passed.
        """
        self._waiting, self._visited = [(start, "", self.roots.rules_above(start))], 0
        return self._run(start)

    def count_aside(self) -> Counter[str]:
        """Return the numbers of files in folders that are not served, from a short walk."""
        aside, entered = self.aside.copy(), {root.path for root in self.roots}
        walk = Walk(self.roots, self.suffixes, most=_MOST_ASIDE, counted=True, aside=aside, entered=entered)
        for _ in walk._run(""):
            pass
        return walk.skipped

    def _run(self, start: str) -> Iterator[Walked]:
        while self._waiting or (self.counted and self.aside):
            if not self._waiting:
                self._waiting, self.aside = self.aside, []
            CALL.get().check()
            folder, below, above = self._waiting.pop()
            if folder in self.entered or (located := self.roots.locate(folder)) is None:
                continue
            self.entered.add(folder)
            direct = folder == f"{start}/{below}"[:-1]  # a link may lead to a different folder the next time
            with suppress(OSError):  # unreadable or deleted
                walked = self.known.pop(folder, None) if direct else None
                if walked and walked.is_current(folder, above, self.most - self._visited):
                    self._visited += walked.visited
                    self._waiting += walked.folders
                    self.aside += walked.aside
                    self.skipped.update(walked.skipped)
                    yield walked.files
                else:
                    walked = yield from self._read(*located, folder, below, above)
                if walked and direct:
                    self.known[folder] = walked

    def _read(
        self, root: Root, prefix: str, folder: str, below: str, above: Rules | None
    ) -> Generator[Walked, None, WalkedFolder | None]:
        """Yield the files of a folder, and return what it holds; ``None`` if that may change unnoticed."""
        states, before = settled_states(folder, f"{folder}/{RULES_FILE}"), self._visited
        entries, rules = self._listed(folder, root, above)
        known, aside = self.skipped.copy(), len(self.aside)
        files: Walked = []
        folders: Waiting = []
        for number, entry in enumerate(entries):
            if not references.is_walked(entry.name, folder) and number < self.most:
                self.skipped.update(references.kinds_of_unusable(entry.name))
                if references.is_hidden(entry.name) and entry.is_dir(follow_symlinks=False):
                    self._skip(entry, below + entry.name, self._label(entry, rules) or f"in {entry.name}")
                continue
            self._visited += 1
            if self._visited > self.most or number >= self.most:
                yield files
                self._end(rules)
                return None
            path = below + entry.name
            if label := self._label(entry, rules):
                self._skip(entry, path, label)
            elif entry.is_symlink():
                states = None  # its target may change
                files += self._follow(entry, path)
            elif entry.is_dir(follow_symlinks=False):
                if self._may_enter(path):
                    folders.append((entry.path, f"{path}/", rules))
            elif references.has_suffix(entry.name, self.suffixes):
                if fits(self.pattern, path) and entry.is_file(follow_symlinks=False):
                    file = DocumentFile(root, f"{prefix}/{entry.name}" if prefix else entry.name, root.label)
                    files.append((path, file))
            elif entry.name.lower().endswith(references.OTHER_TEXTS):
                self.skipped[entry.name.lower()[entry.name.rindex(".") :]] += 1
        self._waiting += folders
        yield files
        if not states:
            return None
        skipped, visited = self.skipped - known, self._visited - before
        return WalkedFolder(states, above, visited, files, folders, skipped, self.aside[aside:])

    def _end(self, rules: Rules | None) -> None:
        """End at the limit of entries.

        :param rules: the rules for the last entries.
        :raises DocumentTooLargeError: these entries are served.
        """
        self._waiting.clear()
        self.aside.clear()
        if rules is None or rules.folder:
            raise too_many(f"{self.most:,} entries")
        # Of ignored files, there are more than were counted.
        self.skipped[f"or more {rules.label}"] = self.skipped.pop(rules.label, 0)

    def _listed(
        self, folder: str, root: Root, rules: Rules | None
    ) -> tuple[list[os.DirEntry[str]], Rules | None]:
        """Return the entries of a folder, and the rules for them; ``rules`` are those above it."""
        with os.scandir(folder) as scanned:
            entries = list(islice(scanned, self.most + 1))
        unread = len(entries) > self.most  # its rules may be among the other entries
        ignoring = self.roots.ignoring
        if ignoring.gitignore and (unread or RULES_FILE in [entry.name for entry in entries]):
            rules = ignoring.within(root.path, folder, rules)
        return entries, rules

    def _label(self, entry: os.DirEntry[str], rules: Rules | None) -> str:
        """Return the description of an ignored entry; ``""`` for other entries, and in roots of NPL."""
        if rules is None or f"{entry.path}/".startswith(self.roots.npl_prefixes):
            return ""
        CALL.get().check()
        return rules.label_of(entry.path, entry.is_dir(follow_symlinks=False))

    def _skip(self, entry: os.DirEntry[str], path: str, label: str) -> None:
        """Count a file that is not served, or the files of such a folder later."""
        if entry.is_dir(follow_symlinks=False):
            self.aside.append((entry.path, f"{path}/", everything(label)))
        elif references.has_suffix(entry.name, self.suffixes):
            self.skipped[label] += 1

    def _follow(self, entry: os.DirEntry[str], path: str) -> Walked:
        """Return the file at the target of a link, or enter the folder there; the target may be unusable."""
        real = real_path(entry.path)
        located = None if real is None else self.roots.locate(real)
        if real is None or located is None or located[1].startswith(references.ADDRESSES):
            if located is None and references.has_suffix(entry.name, self.suffixes):
                self.skipped["links out of the roots"] += 1
            return []
        if os.path.isdir(real):
            if self._may_enter(path):
                self._waiting.append((real, f"{path}/", self.roots.rules_above(real)))
            return []
        with suppress(errors.DocumentError, errors.DocumentNotFoundError):
            linked = self.roots.regular(real, entry.name, self.suffixes)
            return [(path, linked)] if fits(self.pattern, path) else []
        return []

    def _may_enter(self, path: str) -> bool:
        """Return whether a walk enters a folder; count it if it lies deeper than the limit."""
        most = self.roots.limits.max_depth
        if path.count("/") >= most:
            self.skipped[f"folders below {most} levels"] += 1
            return False
        return self.pattern is None or self.pattern.may_hold(path.split("/"))


def sample(roots: Roots) -> Iterator[str]:
    """Yield the paths of a sample of files below each root, and of their folders, from a short walk."""
    for root in roots:
        with suppress(errors.DocumentTooLargeError):
            for _, file in Walk(roots, most=_SAMPLE).files(root.path):
                yield from (file.path, file.path.rpartition("/")[0])
