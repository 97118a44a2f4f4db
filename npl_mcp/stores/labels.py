"""Questions labelled with the sections that answer them, as lines of files in the data folder.

The ranking is measured with them; see ``benchmarks/relevance``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from npl_index.errors import InvalidRequestError
from npl_index.library.files import FileTooLargeError, Folder
from npl_mcp.stores.base.errors import StorageError
from npl_mcp.stores.base.folder import FILE, FOLDER, LABEL_FOLDER, private_folder
from npl_mcp.stores.base.values import values_of

MOST_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a file: tens of thousands of questions. Each addition rewrites the whole file."""

_PATIENCE = 10
"""Seconds to wait for another process that saves a question."""


@dataclass(frozen=True, slots=True)
class RightSection:
    """A section that answers a question.

    :param folder: absolute; the file lies below it.
    :param file: path below the folder.
    :param line: of the heading, from 1; the section counts with all inside it.
    :param heading: instead of a line: the section's own text counts.
    """

    folder: str
    file: str
    line: int | None = None
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and the sections that answer it."""

    query: str
    right: tuple[RightSection, ...]


class LabelStore:
    """Lists of labelled questions, one file each.

    :param folder: the data folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, question: LabelledQuestion) -> tuple[str, int]:
        """Add a question to a list.

        :returns: the file, and the number of its questions.
        :raises InvalidRequestError: the list is full.
        :raises StorageError: the file cannot be written.
        """
        file = f"{name}.jsonl"
        added = "".join(_lines(question)).encode("utf-8", "replace")
        try:
            private_folder(self._folder)
            with (
                Folder.opened(self._folder, LABEL_FOLDER, make=True, mode=FOLDER) as folder,
                folder.locked(_PATIENCE) as alone,
            ):
                if not alone:
                    raise StorageError(f"{file} is being written by others; try again")
                there = folder.read(file, MOST_BYTES)[0] if folder.stat(file) is not None else b""
                folder.replace(file, there + added, mode=FILE)
        except FileTooLargeError:
            raise InvalidRequestError(
                f"{file} is full", parameter="name", hint="begin another list under another name"
            ) from None
        except OSError as error:
            raise StorageError(f"{file} cannot be written: {error.strerror or error}") from error
        return str(self._folder / LABEL_FOLDER / file), (there + added).count(b"\n")


def _lines(question: LabelledQuestion) -> Iterator[str]:
    """Return a line for each folder that contains right sections: the question is asked of that folder."""
    for folder in dict.fromkeys(one.folder for one in question.right):
        own = (values_of(one) for one in question.right if one.folder == folder)
        relevant = [
            {name: value for name, value in one.items() if name != "folder" and value is not None}
            for one in own
        ]
        row = {"query": question.query, "relevant": relevant, "corpus": folder}
        yield json.dumps(row, ensure_ascii=False) + "\n"
