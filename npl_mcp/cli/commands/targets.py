"""Documents that a command line of ``npl-load`` names, its options, and the roots that the paths need.

A command may read all files that its user may read, so a path outside the working directory becomes a root of
this one call.
"""

# ruff: noqa: PTH100, PTH110, PTH111, PTH112, PTH118, PTH120, PTH206

from __future__ import annotations

import errno
import os
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from npl_index.answer.values import as_dict
from npl_index.errors import NPLError
from npl_index.library.files import Folder
from npl_index.library.references import page_and_part, plain_name
from npl_index.library.roots import below_root
from npl_mcp.app.file_view import Files
from npl_mcp.cli.terminal.arguments import argument, option, removed, repeated
from npl_mcp.cli.terminal.display import Display, FailedCallError
from npl_mcp.cli.transports.connecting import user_settings
from npl_mcp.tools.contract.error_codes import translate

SELECT = repeated("--select", "SELECTOR", "load only these sections", dest="selectors")
DEPTH = option("--depth", "N", type=int)
FILTER = repeated(
    "--filter",
    "P",
    "only sections with e.g. has_code=true, or of documents with this front matter: status=stable,draft or"
    " tags=!old; all conditions count",
)
ROOT = repeated("--root", "DIR", "search this folder; the first has priority")
WHERE = (
    repeated("--file", "F", "Markdown file, folder, glob or item name"),
    removed("--kind", "--file takes the name of an item"),
    removed("--item", "write the name after --file"),
    ROOT,
)
BUDGET = option("--budget", "N", dest="token_budget", type=int)
FORMS = ("text", "yaml", "json")
FORMAT = option("--format", "F", "text (default), yaml or json", choices=FORMS, default="text")
_SAME = "the same as --format json"
AS_JSON = argument("--json", action="store_const", const="json", dest="format", help=_SAME)
_FOR_AGENTS = "markdown (default, the form for agents), yaml or json"
OUTPUT = (
    option("--format", "F", _FOR_AGENTS, choices=("markdown", *FORMS[1:])),
    AS_JSON,
    *(removed(name, "the shell writes the output to a file: > FILE") for name in ("-o", "--output")),
)

MAX_BYTES = 16 << 20
"""Bytes of a file that a command writes."""

_PATTERN = re.compile(r"[*?\[{]")


def refuse_paths(given: Namespace) -> None:
    """Refuse a path among the words of a question, where it would only be searched for.

    :raises UsageError: a word is a path.
    """
    for word in given.words:
        starts = (f".{os.sep}", f"..{os.sep}", f"~{os.sep}")
        is_named = word.startswith(starts) or word.endswith(os.sep) or os.path.exists(word)
        # Later in a question, /api/users is a route.
        is_first = word == given.words[0] and word.startswith(os.sep) and word.count(os.sep) > 1
        if os.sep in word and " " not in word and (is_named or is_first):
            hint = f'write --file {word}, or quote the whole question, "where is {word}"'
            given.parser.error(f"{word} is a path, not a word of the question; {hint}")


@contextmanager
def with_files(given: Namespace, display: Display) -> Iterator[tuple[Files, Display]]:
    """Return the user's files, and the display."""
    with failures():
        yield Files(user_settings(given)), display


@contextmanager
def failures() -> Iterator[None]:
    """Raise errors as those of calls, so that they have the same exit codes.

    :raises FailedCallError: an error was raised.
    """
    try:
        yield
    except NPLError as error:
        raise FailedCallError(as_dict(translate(error, "npl-load"))) from None


def named_places(files: Sequence[str], given: Namespace) -> tuple[str | None, list[str]]:
    """Return the tools' argument ``file``, and the roots that it needs outside the working directory.

    :param files: paths, patterns and names of items; empty means all documents.
    :param given: arguments of the command, with ``--root``.
    :raises UsageError: a root is not a folder, or a path above the working directory does not exist.
    """
    for root in given.root or ():
        if not os.path.isdir(root):
            given.parser.error(f"--root {root} is not a folder")
    for file in files:
        above = os.path.normpath(file).startswith(os.pardir) and not _PATTERN.search(file)
        if above and not os.path.exists(plain_name(file)):
            given.parser.error(f"{file} does not exist")
    named = [_named_place(file) for file in files]
    return ", ".join(file for file, _ in named) if files else None, [root for _, root in named if root]


def _named_place(file: str) -> tuple[str, str | None]:
    """Return the tools' name of a file, and the root that it needs if it is outside the working directory."""
    page, part = page_and_part(file)
    if part and not os.path.exists(file):
        name, root = _named_place(page)
        return name + part, root
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


class Target:
    """A file that a command writes, as it was when it was read; its text is the path.

    :param path: path of the file, which need not exist.
    :raises OSError: it cannot be read, or a link leads out of its folder (``ELOOP``).

    ``data`` has its bytes, ``None`` if it does not exist.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.data: bytes | None = None
        if os.path.exists(path):
            with _opened(path) as (folder, name):
                self.data = folder.read(name, MAX_BYTES)[0]

    def __str__(self) -> str:
        return self._path

    @property
    def text(self) -> str:
        """The text with line feeds as line ends."""
        try:
            return (self.data or b"").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            raise OSError(errno.EILSEQ, "it is not UTF-8", self._path) from None

    def save(self, text: str) -> None:
        """Replace the text of the file; its line ends stay."""
        ends = "\r\n" if b"\r\n" in (self.data or b"") else "\n"
        self.write(text.replace("\n", ends).encode())

    def write(self, data: bytes) -> None:
        """Replace the file in one step; its mode stays.

        :raises OSError: it cannot be written, or another program has changed it.
        """
        with _opened(self._path) as (folder, name):
            if self.data is None:
                done = folder.create(name, data)
            else:
                done = folder.replace_if(name, self.data, data, MAX_BYTES) is None
            if not done:
                raise OSError(errno.EAGAIN, "another program wrote to it, try again")


@contextmanager
def _opened(path: str) -> Iterator[tuple[Folder, str]]:
    """Open the folder of a file, and yield it with the name of the file; errors name the path.

    A file that is named below the working directory stays there, any other in its folder, whatever links say.
    """
    whole, here = os.path.abspath(path), os.path.join(os.path.abspath(os.curdir), "")
    root = here if whole.startswith(here) else os.path.dirname(whole)
    try:
        real, below = below_root(root, os.path.relpath(whole, root))
    except OSError as error:
        problem = f"{error.strerror} of {root}; name the file that it leads to"
        raise OSError(error.errno, problem, path) from None
    folder, _, name = below.rpartition("/")
    try:
        with Folder.opened(real, folder) as opened:
            yield opened, name
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
