"""Rules of ``.gitignore`` files, and of the setting ``exclude``, which has the same form."""

from __future__ import annotations

import fnmatch
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from cachetools import LRUCache, cached

from npl_index.deadline import CALL
from npl_index.errors import InvalidRequestError
from npl_index.library.files import Folder
from npl_index.library.patterns import PathPattern

RULES_FILE = ".gitignore"
BY_SETTING = "left out by --exclude"

MAX_BYTES, MAX_RULES = 64 * 1024, 1_000
"""Size of a file of rules, and number of its rules; a larger file names nothing."""

_MAX_KEPT = 20_000
"""Cached rules, each of about a kilobyte."""

_ESCAPED = re.compile(r"\\(.)")
_NEGATED = re.compile(r"(?<!\\)\[\^")


class Rule(NamedTuple):
    """The rule of a line.

    :param pattern: pattern of paths below the folder of its file.
    :param ignores: false for a line with ``!``.
    :param only_folders: whether it names only folders.
    """

    pattern: PathPattern
    ignores: bool
    only_folders: bool


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Rules of one file, or of a setting. The next ones count for entries that they do not name.

    :param folder: real path of the folder below which they apply.
    :param rules: the rules, the last line first.
    :param names: expression for the names of all entries that they may name.
    :param label: description of the named entries, for people.
    :param next: the rules of the folders above.
    """

    folder: str
    rules: tuple[Rule, ...]
    names: re.Pattern[str]
    label: str
    next: Rules | None

    def label_of(self, path: str, is_folder: bool) -> str:
        """Return the description of an ignored entry, else ``""``.

        :param path: real path of the entry, whose folder is not ignored.
        """
        folder, _, name = path.rpartition("/")
        if self.names.match(name):
            for rule, numbers in zip(self.rules, _parts_in(self, folder), strict=True):
                if (is_folder or not rule.only_folders) and rule.pattern.ends(numbers, name):
                    return self.label if rule.ignores else ""
        return "" if self.next is None else self.next.label_of(path, is_folder)


_parts: LRUCache[tuple[Rules, str], tuple[int, ...]] = LRUCache(_MAX_KEPT, len)
_lock = threading.Lock()


def _parts_in(rules: Rules, folder: str) -> tuple[int, ...]:
    """Return for each rule the parts of its pattern that may name an entry of a folder.

    They follow from those of the folder above: the cost of a folder does not depend on its depth.
    """
    below, known = list[str](), None
    while len(folder) > len(rules.folder.rstrip("/")) and known is None:
        with _lock:
            known = _parts.get((rules, folder))
        if known is None:
            folder, _, name = folder.rpartition("/")
            below.append(name)
    known = known or tuple(rule.pattern.start for rule in rules.rules)
    for name in reversed(below):
        CALL.get().check()
        folder = f"{folder}/{name}"
        known = tuple(rule.pattern.after(parts, name) for rule, parts in zip(rules.rules, known, strict=True))
        with _lock:
            _parts[rules, folder] = known
    return known


@cached(LRUCache(_MAX_KEPT, lambda rules: 1 if rules is None else len(rules.rules)), lock=threading.Lock())
def rules_of(folder: str, text: str, label: str, above: Rules | None) -> Rules | None:
    """Return the rules of a text in the form of ``.gitignore``; the same object for the same arguments."""
    lines = [_without_spaces(line.removesuffix("\r")) for line in text.split("\n")]
    rules = [rule for line in lines if (rule := _rule(line)) is not None]
    if not rules or len(rules) > MAX_RULES:
        return above
    names = "|".join({fnmatch.translate(name): None for _, name in rules})
    return Rules(folder, tuple(rule for rule, _ in reversed(rules)), re.compile(names), label, above)


class Ignoring(NamedTuple):
    """Entries that walks leave out below roots of documents.

    :param gitignore: whether ``.gitignore`` files count.
    :param exclude: lines in the form of ``.gitignore`` that apply below each root.
    """

    gitignore: bool = False
    exclude: tuple[str, ...] = ()

    def above(self, root: str, folder: str) -> Rules | None:
        """Return the rules of the setting and of the folders above a folder.

        :param root: real path of its root.
        """
        path, rules = root, rules_of(root, "\n".join(self.exclude), BY_SETTING, None)
        for segment in filter(None, folder[len(root) :].split("/")):
            rules = self.within(root, path, rules)
            path = f"{path}/{segment}"
        return rules

    def within(self, root: str, folder: str, above: Rules | None) -> Rules | None:
        """Return the rules for the entries of a folder.

        :param above: the rules above it.
        """
        if above is not None and not above.folder:
            return above  # in an ignored folder no file counts
        below = above.next if above is not None and above.label == BY_SETTING else above
        with suppress(OSError), Folder.opened(folder) as opened:
            data = opened.read(RULES_FILE, MAX_BYTES)[0] if self.gitignore else b""
            label = f"ignored by {folder[len(root) :]}/{RULES_FILE}".replace(" /", " ", 1)
            below = rules_of(folder, data.decode("utf-8-sig", "surrogateescape"), label, below)
        return rules_of(root, "\n".join(self.exclude), BY_SETTING, below)  # no file overrides it


NOTHING = Ignoring()


@cache
def everything(label: str) -> Rules:
    """Return rules that name everything."""
    rule = Rule(PathPattern.compile(["**"], parameter="exclude"), True, False)
    return Rules("", (rule,), re.compile(""), label, None)


def _rule(line: str) -> tuple[Rule, str] | None:
    """Return the rule of a line, and the pattern of the names of its entries; ``None`` for no rule."""
    path = line.removeprefix("!").removesuffix("/")
    if not path or line.startswith("#"):
        return None
    segments = path.removeprefix("/").split("/")
    if "/" not in path:
        segments.insert(0, "**")
    segments = [_ESCAPED.sub(_literal, _NEGATED.sub("[!", segment)) for segment in segments]
    if any(map(_is_open, segments)):
        return None  # as in git
    try:
        pattern = PathPattern.compile(segments, parameter="exclude")
    except InvalidRequestError:  # too long
        return None
    return Rule(pattern, not line.startswith("!"), line.endswith("/")), segments[-1]


def _without_spaces(line: str) -> str:
    """Return a line without its last spaces, except one after a backslash."""
    bare = line.rstrip(" ")
    return f"{bare} " if bare.endswith("\\") and bare != line else bare


def _is_open(segment: str) -> bool:
    """Return whether a bracket of a segment is not closed."""
    at = segment.find("[")
    while at >= 0:
        begin = at + 1 + segment.startswith("!", at + 1)
        end = segment.find("]", begin + segment.startswith("]", begin))
        if end < 0:
            return True
        at = segment.find("[", end)
    return False


def _literal(escaped: re.Match[str]) -> str:
    return f"[{escaped[1]}]" if escaped[1] in "*?[" else escaped[1]
