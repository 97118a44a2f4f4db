"""Where the section commands look: what a user writes as a path, and the folders that must be shown for it.

The user of a command may read whatever the shell may, so a path outside of the working directory becomes a
root of this one call.
"""

# ruff: noqa: PTH100, PTH110, PTH111, PTH112, PTH118, PTH120, PTH206

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from npl_index.library.references import MARKDOWN_SUFFIXES

STANDARD_INPUT = "-"
INPUT_NAME = "stdin.md"
"""The name of standard input in answers."""

_PATTERN = re.compile(r"[*?\[{]")
_ONLY_A_PATH = re.compile(r"\.{1,2}/|.*/$")


class Places(NamedTuple):
    """Where a command looks.

    :param file: for the tools; ``None`` if nothing is named.
    :param roots: folders to search first, beside those of the settings.
    :param given: some of them were given as roots.
    :param close: removes what was made for standard input.
    """

    file: str | None
    roots: tuple[str, ...]
    given: bool
    close: Callable[[], object]


def read_places(given: Namespace) -> Places:
    """Return where a section command looks; words of its task that are paths are taken out of it.

    :raises UsageError: a root is not a folder, or nothing is left of the words of a search.
    """
    files: list[str] = given.file or []
    if given.command == "index":
        files, given.words = [*files, *given.words], []
    elif not files and not (given.item or given.resource_type):
        files = [word for word in given.words if _is_path(word)]
        given.words = [word for word in given.words if word not in files]
    return located(files, given.root or (), given.parser.error)


def located(files: Sequence[str], given: Sequence[str], error: Callable[[str], NoReturn]) -> Places:
    """Return where files are that a user wrote.

    :param files: paths, patterns and names of items; none means everything.
    :param given: folders to search.
    :param error: reports that one of these is none.
    """
    for root in given:
        if not os.path.isdir(root):
            error(f"--root {root} is not a folder")
    roots = [os.path.abspath(root) for root in given]
    close: Callable[[], object] = _nothing
    if STANDARD_INPUT in files:
        folder, close = _kept_input()
        roots.append(folder)
        files = [os.path.join(folder, INPUT_NAME) if file == STANDARD_INPUT else file for file in files]
    reached = [_reached(file) for file in files]
    roots += [root for _, root in reached if root]
    named = ", ".join(file for file, _ in reached) if files else None
    return Places(named, tuple(roots), bool(given), close)


def _is_path(word: str) -> bool:
    """Return whether a word of a task means a file or a folder: it is there, or it cannot be a word."""
    is_markdown = word.lower().endswith(MARKDOWN_SUFFIXES)
    if word in (os.curdir, os.pardir):
        return True
    if " " not in word and ((is_markdown and os.sep in word) or _ONLY_A_PATH.match(word)):
        return True
    return (is_markdown or os.sep in word) and os.path.exists(word)


def _reached(file: str) -> tuple[str, str | None]:
    """Return a file as the tools take it, and the root that it needs if it lies outside of this folder."""
    pattern = _PATTERN.search(file)
    fixed = file if pattern is None or os.path.exists(file) else file[: pattern.start()].rpartition(os.sep)[0]
    rest = file[len(fixed) :]
    path = os.path.expanduser(fixed or os.curdir)
    if not file or not os.path.exists(path):
        return file, None
    real, here = os.path.realpath(path), os.path.realpath(os.curdir)
    if os.path.join(real, "").startswith(os.path.join(here, "")):
        climbs = os.pardir in path.split(os.sep) or path != (fixed or os.curdir)
        return (real + rest if climbs else file), None
    return real + rest, real if os.path.isdir(real) else os.path.dirname(real)


def _kept_input() -> tuple[str, Callable[[], object]]:
    """Write standard input to a file of a folder of its own; return the folder, and what removes it."""
    from tempfile import TemporaryDirectory

    folder = TemporaryDirectory(prefix="npl-")
    with open(os.path.join(folder.name, INPUT_NAME), "wb") as copy:  # noqa: PTH123
        copy.write(sys.stdin.buffer.read())
    return os.path.realpath(folder.name), folder.cleanup


def _nothing() -> None:
    """Remove nothing."""
