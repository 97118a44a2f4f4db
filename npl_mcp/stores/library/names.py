"""Names of libraries and of their contents: ``lib:docs``, ``lib:docs@12``, ``lib:docs/guide.md``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from npl_index.errors import InvalidRequestError
from npl_index.library.references import MARKDOWN_SUFFIXES, UNSPEAKABLE
from npl_mcp.stores.base.errors import DatabaseError

SCHEME = "lib"
EVERY = f"{SCHEME}:*"
"""The name of all documents of all libraries."""

MAX_PATH = 1_024
"""Maximum characters of a path: four paths fit into the longest name in a call."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NUMBER = re.compile(r"[1-9][0-9]{0,14}")
_FORMS = "write lib:docs, lib:docs/guide.md, lib:docs@12 or lib:*"


@dataclass(frozen=True, slots=True)
class LibraryRef:
    """The parts of a library's name.

    :param library: name of the library.
    :param number: number of a revision; ``None`` for the current one.
    :param path: path below the library as written; empty for the whole library.
    """

    library: str
    number: int | None = None
    path: str = ""

    @classmethod
    def parse(cls, text: str, parameter: str = "file") -> LibraryRef:
        """Parse a name.

        :param text: the name, with or without the scheme.
        :raises InvalidRequestError: the name is not valid.
        """
        head, _, path = text.removeprefix(f"{SCHEME}:").partition("/")
        library, at, number = head.partition("@")
        if not _NAME.fullmatch(library):
            raise InvalidRequestError(f"{text[:64]!r} has no library name", parameter=parameter, hint=_FORMS)
        if at and not _NUMBER.fullmatch(number):
            problem = f"{text[:64]!r} names no revision"
            raise InvalidRequestError(problem, parameter=parameter, hint="they are numbered from 1 on")
        return cls(library, int(number) if at else None, path)

    @property
    def top(self) -> str:
        """The name of the whole library, in this revision."""
        return top_of(self.library, self.number)


def top_of(library: str, number: int | None) -> str:
    """Return the name of a whole library.

    :param number: the number of a revision; ``None`` for the current one.
    """
    return f"{SCHEME}:{library}" if number is None else f"{SCHEME}:{library}@{number}"


def check_library(name: str) -> str:
    """Check the name of a library that may be new.

    :raises InvalidRequestError: the name is not valid.
    """
    if not _NAME.fullmatch(name):
        problem = f"{name[:64]!r} cannot be the name of a library"
        hint = "use a-z, 0-9, '-', '_' and '.', at most 64, e.g. docs"
        raise InvalidRequestError(problem, parameter="name", hint=hint)
    return name


def check_path(path: str) -> str:
    """Check the path of a file in a library: Markdown, below the library.

    :raises InvalidRequestError: the path is not valid.
    """
    if not _is_path(path):
        hint = f"at most {MAX_PATH:,} characters, without control characters"
        raise InvalidRequestError(f"{path[:64]!r} cannot be a file of a library", parameter="path", hint=hint)
    return path


def sound_path(path: str) -> str:
    """Return a stored path.

    :raises DatabaseError: the path is not valid.
    """
    if not _is_path(path):
        raise DatabaseError(f"the database is damaged: {path[:64]!r} is not a path of a library")
    return path


def _is_path(path: str) -> bool:
    segments = path.split("/")
    return (
        len(path) <= MAX_PATH
        and path.lower().endswith(MARKDOWN_SUFFIXES)
        and UNSPEAKABLE.search(path) is None
        and {"", ".", ".."}.isdisjoint(segments)
    )
