"""The files that git sees in a repository: their texts, or the tree of their folders.

:raises OutsideRootError: the path lies outside the search roots.
:raises UnreadableDocumentError: git refuses to list the files.
:raises DocumentTimeoutError: the call took longer than its limit.
"""

# Lists of many files are handled as plain strings, as in npl_index.library.documents.
# ruff: noqa: PTH112, PTH117, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from npl_index import errors
from npl_index.answer.marks import tag_for
from npl_index.library.patterns import PathPattern
from npl_index.library.references import check_name, near_names
from npl_index.library.roots import outside, real_path, resolve, too_many
from npl_index.library.walking import sample
from npl_mcp.app.context import Context
from npl_mcp.projects.git import visible
from npl_mcp.tools.contract.spec import ToolSpec

MAX_ANSWER_BYTES = 1 << 20
"""Bytes of text in one answer. A dump leaves out files that do not fit; a larger tree is an error."""

MAX_LEFT_OUT = 100
"""Files left out that an answer names; further ones are only counted."""

# A header, or the line at the end of a text.
_LIKE_A_HEADER = re.compile(r"^[ \t]*(?:\* ?\* ?\*|#.*\r?\n[ \t]*---)[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that a dump leaves out.

    :param path: path of the file in the form of the dump.
    :param reason: reason why it is left out.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class DumpReply:
    """Texts of files, one after another.

    :param content: for each file an empty line, ``# path``, ``---``, its unchanged text, an empty line and
        ``* * *``; paths are relative to the search root.
    :param files: number of files.
    :param total_bytes: size of their texts in UTF-8.
    :param mark: nonce at the end of each line with a path, if a text has a line of this form; no text
        contains it.
    :param left_out: binary files, links and files that did not fit, at most 100.
    :param left_out_count: number of all files left out.
    """

    content: str
    files: int
    total_bytes: int
    mark: str | None
    left_out: tuple[LeftOut, ...] | None
    left_out_count: int


@dataclass(frozen=True, slots=True)
class TreeReply:
    """A drawn tree.

    :param content: requested folder, then a line for each folder and file below it.
    :param directories: number of folders below the requested one.
    :param files: number of files.
    """

    content: str
    directories: int
    files: int


@dataclass(frozen=True, slots=True)
class DepthReply:
    """Folders and their depths.

    :param content: a line ``folder depth`` for each folder, ``. 0`` for the requested one.
    :param directories: number of lines.
    """

    content: str
    directories: int


def dump_files(
    app: Context,
    path: Annotated[str, "Folder or file"],
    glob_filter: Annotated[str | None, "glob of the paths"] = None,
) -> DumpReply:
    """Show the text of all files git sees below a folder.

    :param path: folder or file in a git repository.
    :returns: texts of files, one after another.
    :raises InvalidRequestError: the path is not in a git repository, or the glob is invalid.
    :raises DocumentNotFoundError: the path does not exist, or git does not see the file.
    :raises DocumentTooLargeError: there are too many files.
    """
    pattern = None
    if glob_filter is not None:
        check_name(glob_filter, "glob_filter")
        pattern = PathPattern.compile(glob_filter.removeprefix("./").split("/"), parameter="glob_filter")
    target = _existing(app, path)
    folder = target if os.path.isdir(target) else os.path.dirname(target)
    below = os.curdir if folder == target else os.path.basename(target)
    names = visible(folder, path, app.settings.time_limit, below)
    if folder != target and not names:
        problem, hint = f"git does not see {path!r}", "git ignores it; name another file"
        raise errors.DocumentNotFoundError(problem, hint=hint)
    if pattern is not None:
        parts = [name.split("/") for name in names]
        names = ["/".join(part) for part in parts if pattern.matches(part) or pattern.matches(part[-1:])]
    if len(names) > app.library.limits.max_files:
        raise too_many(f"{app.library.limits.max_files:,} files")
    return _dump(app, [os.path.join(folder, name) for name in names], path)


def git_tree(app: Context, path: str = ".") -> TreeReply:
    """Draw the tree of the files git sees below a folder.

    :param path: folder in a git repository.
    :returns: a drawn tree.
    :raises InvalidRequestError: the path is not in a git repository, or is a file.
    :raises DocumentNotFoundError: the path does not exist.
    :raises DocumentTooLargeError: there are too many files.
    """
    names = visible(_existing_folder(app, path), path, app.settings.time_limit)
    content = _within_limit([errors.escaped(path), *_tree_lines(names)])
    return TreeReply(content=content, directories=len(_folders_of(names)), files=len(names))


def git_tree_depth(app: Context, path: str) -> DepthReply:
    """List the folders git sees below a folder, with their depths.

    :param path: folder in a git repository.
    :returns: folders and their depths.
    :raises InvalidRequestError: the path is not in a git repository, or is a file.
    :raises DocumentNotFoundError: the path does not exist.
    :raises DocumentTooLargeError: there are too many folders.
    """
    folders = sorted(_folders_of(visible(_existing_folder(app, path), path, app.settings.time_limit)))
    lines = [". 0", *(f"{errors.escaped('/'.join(folder))} {len(folder)}" for folder in folders)]
    return DepthReply(content=_within_limit(lines), directories=len(lines))


def _existing(app: Context, path: str) -> str:
    """Return the real path of a path in the first search root that has it.

    :raises DocumentNotFoundError: no root has it.
    :raises OutsideRootError: it lies outside every root.
    """
    check_name(path, "path")
    clean = os.path.normpath(path)
    if clean.split(os.sep, 1)[0] == os.pardir:
        raise outside(path)
    roots = app.library.roots
    reals = [real_path(clean)] if os.path.isabs(clean) else [resolve(root.path, clean) for root in roots]
    for real in reals:
        if real is not None and roots.is_there(real, path):
            return real
    near = near_names(clean, sample(roots))
    hint = None if near else "give a path below a search root"
    raise errors.DocumentNotFoundError(f"there is no file or folder {path!r}", near=near, hint=hint)


def _existing_folder(app: Context, path: str) -> str:
    real = _existing(app, path)
    if not os.path.isdir(real):
        problem = f"{path!r} is not a folder"
        raise errors.InvalidRequestError(problem, parameter="path", hint="give its folder")
    return real


def _dump(app: Context, files: Sequence[str], path: str) -> DumpReply:
    """Return the texts of files; files beyond the limit of an answer are left out.

    :param path: the caller's path, for messages.
    """
    deadline = time.monotonic() + app.settings.time_limit
    parts: list[tuple[str, str]] = []
    left_out: list[LeftOut] = []
    total = 0
    for file in files:
        if time.monotonic() > deadline:
            problem = f"reading {path!r} took longer than {app.settings.time_limit:g} seconds"
            raise errors.DocumentTimeoutError(problem, hint="name a smaller folder, or set glob_filter")
        located = app.library.roots.locate(file)
        name = errors.escaped(located[1] if located else os.path.basename(file))
        try:
            data = _read_text_file(app, file, name, MAX_ANSWER_BYTES - total)
        except (errors.DocumentError, errors.DocumentNotFoundError) as error:
            left_out.append(LeftOut(name, error.message))
            continue
        parts.append((name, data.decode()))
        total += len(data)
    tag = tag_for([text for _, text in parts], _LIKE_A_HEADER.search)
    end = f" #{tag}" if tag else ""
    return DumpReply(
        content="".join(f"\n# {name}{end}\n---\n{text}\n* * *\n" for name, text in parts),
        files=len(parts),
        total_bytes=total,
        mark=tag or None,
        left_out=tuple(left_out[:MAX_LEFT_OUT]) or None,
        left_out_count=len(left_out),
    )


def _read_text_file(app: Context, file: str, name: str, room: int) -> bytes:
    """Read a text file without following links.

    :param room: bytes that still fit the answer.
    :raises DocumentError: it is not a regular file, is too large, or is not UTF-8 text.
    """
    located = app.library.roots.regular(file, name, ("",))
    if located.stat().size > room or len(data := app.library.read(located).data) > room:
        raise errors.DocumentTooLargeError(f"an answer has at most {MAX_ANSWER_BYTES:,} bytes")
    if b"\0" in data:
        raise errors.UnreadableDocumentError("binary")
    try:
        data.decode()
    except UnicodeDecodeError:
        raise errors.UnreadableDocumentError("not UTF-8") from None
    return data


def _folders_of(names: Sequence[str]) -> set[tuple[str, ...]]:
    """Return all folders above the files with some paths, each as its segments."""
    folders: set[tuple[str, ...]] = set()
    for name in names:
        folder = tuple(name.split("/"))[:-1]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder[:-1]
    return folders


def _tree_lines(names: Sequence[str]) -> Iterator[str]:
    """Yield a line for each folder and file, without recursion: folders may nest deeper than calls can."""
    tree: dict[str, Any] = {}
    for name in names:
        folder = tree
        for segment in name.split("/"):
            folder = folder.setdefault(segment, {})
    waiting = _branches("", tree)
    while waiting:
        line, below, children = waiting.pop()
        yield line
        waiting += _branches(below, children)


def _branches(before: str, children: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return line, indentation of children and children of each child, the last child first."""
    drawn: list[tuple[str, str, dict[str, Any]]] = []
    bend, gap = "└── ", "    "
    for name in reversed(children):
        drawn.append((before + bend + errors.escaped(name), before + gap, children[name]))
        bend, gap = "├── ", "│   "
    return drawn


def _within_limit(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    if len(text.encode("utf-8", "surrogatepass")) > MAX_ANSWER_BYTES:
        raise too_many(f"{MAX_ANSWER_BYTES:,} bytes of lines")
    return text


TOOLS = (
    ToolSpec(dump_files, title="Dump Files", lane="heavy"),
    ToolSpec(git_tree, title="Draw Tree"),
    ToolSpec(git_tree_depth, title="List Folders"),
)
