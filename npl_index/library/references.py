"""References: a caller's names of documents, checked once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from npl_index.deadline import CALL
from npl_index.errors import InvalidRequestError, MissingRequestError

# Untypable and unreadable characters; lone surrogates mean names that are not UTF-8.
UNSPEAKABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

#: File name suffixes of served documents; case is ignored.
MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".mdc", ".qmd", ".rmd")

#: Starts of addresses outside the roots. A file with such a name would have the address of something else.
ADDRESSES = ("artifact:", "cr:", "lib:")

#: File name suffixes of other texts, which walks count.
OTHER_TEXTS = (".adoc", ".ipynb", ".rst", ".txt")

#: Ends of the names of question files: ``questions.md`` and ``*.questions.md``. They are not documents.
QUESTION_SUFFIXES = ("questions.md",)

_ENDS = "|".join(map(re.escape, MARKDOWN_SUFFIXES))
_NAMED = re.compile(
    rf"(@?(?:npl://file/)?(?:(?P<file>.+(?:{_ENDS}))|(?P<name>[^#]+?)))(?P<part>#[\s\S]*|(?::[0-9]+){{1,2}})?",
    re.IGNORECASE,
)
_QUESTIONS = re.compile(r"(?:^|[/\\.])questions\.md$", re.IGNORECASE)
_HIDDEN_BUT_WALKED = frozenset({".npl", ".agents", ".claude", ".cursor", ".github", ".windsurf"})
_NEVER_WALKED = frozenset({".git", ".pytest_cache", "node_modules", "__pycache__", "venv", "site-packages"})
_NEVER_WALKED_BELOW = ("/.claude/worktrees", "/.github/ISSUE_TEMPLATE")
_MAX_ARGUMENT = 4096


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """A caller's reference to documents; all ``None`` means the core reference.

    :param file: path, folder, pattern or item name.
    :param kind: kind of ``item``.
    :param item: item name, or a pattern of item names.
    :raises InvalidRequestError: ``file`` is given together with ``item`` or ``kind``, or a name is empty, too
        long or contains control characters.
    :raises MissingRequestError: only one of ``kind`` and ``item``.
    """

    file: str | None = None
    kind: str | None = None
    item: str | None = None

    def __post_init__(self) -> None:
        for parameter, value in (("file", self.file), ("resource_type", self.kind), ("item", self.item)):
            if value is not None:
                check_name(value, parameter)
        if self.file is not None and (self.item is not None or self.kind is not None):
            other = "item" if self.item is not None else "resource_type"
            problem = f"'file' and {other!r} each name a document"
            raise InvalidRequestError(problem, parameter=other, hint="give one of them")
        if (self.item is None) != (self.kind is None):
            present, absent = ("item", "resource_type") if self.kind is None else ("resource_type", "item")
            problem = f"{present!r} needs {absent!r}"
            raise MissingRequestError(problem, parameter=absent, hint="give both, or 'file'")


def check_name(value: str, parameter: str) -> None:
    """Refuse a name that no file can have.

    :raises InvalidRequestError: it is empty, longer than 4,096 characters, or contains control characters.
    """
    if not value.strip():
        raise InvalidRequestError(f"{parameter} is empty", parameter=parameter)
    if len(value) > _MAX_ARGUMENT:
        problem = f"{parameter} has {len(value):,} characters"
        raise InvalidRequestError(problem, parameter=parameter, hint=f"use at most {_MAX_ARGUMENT:,}")
    if UNSPEAKABLE.search(value) is not None:
        raise InvalidRequestError(f"{parameter} contains control characters", parameter=parameter)


def plain_name(text: str) -> str:
    """Return a file's name without what agents add to it: ``@``, ``npl://file/``, an anchor, a line, blanks.

    Backslashes become slashes. Other texts stay.
    """
    named = _NAMED.fullmatch(text.strip())
    return named["file"].replace("\\", "/") if named and named["file"] else text


def page_and_part(text: str) -> tuple[str, str]:
    """Return a file's name without the anchor or the line that agents add to it, and that part."""
    named = _NAMED.fullmatch(text.strip())
    return (named[1], named["part"]) if named and named["file"] and named["part"] else (text, "")


def name_and_part(text: str) -> tuple[str, str]:
    """Return the name of a document, with or without a suffix, and the anchor or the line after it."""
    named = _NAMED.fullmatch(text)
    return (named["file"] or named["name"], named["part"] or "") if named else (text, "")


def has_suffix(path: str, suffixes: tuple[str, ...]) -> bool:
    """Return whether a file is of the kind with these suffixes; case is ignored.

    A question file would be the best hit for its own questions, so it is of the kind
    :data:`QUESTION_SUFFIXES` alone.
    """
    is_questions = _QUESTIONS.search(path) is not None
    return path.lower().endswith(suffixes) and is_questions == (suffixes == QUESTION_SUFFIXES)


def is_walked(name: str, folder: str) -> bool:
    """Return whether a walk visits entries with this name in a folder.

    :param folder: its real path.
    """
    usable = not name.startswith(ADDRESSES) and UNSPEAKABLE.search(name) is None
    never = name in _NEVER_WALKED or f"{folder}/{name}".endswith(_NEVER_WALKED_BELOW)
    return usable and not never and not is_hidden(name)


def is_hidden(name: str) -> bool:
    """Return whether a folder with this name is hidden, and may hold documents."""
    return name.startswith(".") and name not in _HIDDEN_BUT_WALKED | _NEVER_WALKED


def kinds_of_unusable(name: str) -> Iterator[str]:
    """Yield the kind of an unusable name, for people."""
    if UNSPEAKABLE.search(name):
        yield "unusable names"
    elif name.startswith(ADDRESSES):
        yield "names that look like addresses"


def document_name(path: str) -> str:
    """Return a file's name in selectors: its path without ``.md``, which selectors may omit."""
    name = path.removesuffix(".md")
    return path if name.lower().endswith(MARKDOWN_SUFFIXES) else name


def path_ends(path: str) -> Iterator[str]:
    """Yield the ends of a path without its suffix, with slashes and, like item names, with dots."""
    parts = PurePosixPath(path).with_suffix("").parts
    for start in range(len(parts)):
        yield "/".join(parts[start:])
        yield ".".join(parts[start:])


def near_names(wanted: str, known: Iterable[str], limit: int = 5, *, parts: bool = False) -> tuple[str, ...]:
    """Return the known names most similar to a wanted name, best first.

    :param parts: for a list that callers can show whole: names that contain the wanted one, are a part of
        it, or differ by a slip; ``depth`` and ``path`` share three letters in order by chance.
    :raises DocumentTimeoutError: the deadline of the call has passed.
    """
    CALL.get().check()
    from rapidfuzz import fuzz, process  # only failures need it, and it is slow to import

    scorer, least = (fuzz.WRatio, 75) if parts else (fuzz.ratio, 60)
    names = {name: name.lower() for name in known}
    matches = process.extract(wanted.lower(), names, scorer=scorer, limit=limit, score_cutoff=least)
    return tuple(name for _, _, name in matches)
