"""Copies of documents in a temporary folder, to try changes on the index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from npl_index.errors import DocumentTooLargeError, UnreadableDocumentError
from npl_index.library.references import MARKDOWN_SUFFIXES, QUESTION_SUFFIXES, has_suffix
from npl_mcp.app.app import App
from npl_mcp.projects.git import contents
from npl_mcp.questions.outcomes import ranked

GIT_SECONDS = 60.0

MAX_TRIED = 8 << 20
"""Maximum bytes of documents for one question, which are indexed for it."""


class Trial:
    """A copy of documents with its own application; a context manager.

    :param app: application with the settings and the roots.
    :param files: contents by absolute path; files outside all roots are left out.
    :raises UnreadableDocumentError: this system cannot have a file with one of the names.
    """

    def __init__(self, app: App, files: Mapping[str, bytes]) -> None:
        with ExitStack() as opened:
            top = Path(opened.enter_context(TemporaryDirectory(prefix="npl-trial-")))
            # Answers label a root by its last segment, so the copy has the same.
            self._roots = {
                root.path: top / str(number) / Path(root.path).name
                for number, root in enumerate(app.library.roots)
            }
            for path, data in files.items():
                self.write(path, data)
            roots = tuple(root for root in self._roots.values() if root.is_dir())
            settings = replace(
                app.settings,
                roots=roots or (top,),
                cwd=top,
                data_dir=top / "data",
                database_url=None,
                cache_mode="memory",
                warm_up=False,
            )
            self.app = opened.enter_context(closing(App(settings)))
            self._opened = opened.pop_all()

    @classmethod
    def at(cls, app: App, revision: str) -> Trial:
        """Return the Markdown below the roots in a git revision, including question files.

        :raises InvalidRequestError: a root is not in a repository, or the repository has no such revision.
        :raises UnreadableDocumentError: the repository lacks a file's content, or this system cannot have it.
        """
        files: dict[str, bytes] = {}
        for root in app.library.searched:
            folder = os.path.realpath(root.path)
            former = contents(folder, revision, _is_markdown, GIT_SECONDS)
            files |= {f"{folder}/{path}": data for path, data in former.items()}
        return cls(app, files)

    def write(self, original: str, data: bytes) -> None:
        """Change the copy of a file.

        :raises UnreadableDocumentError: this system cannot have a file with this name.
        """
        for root, copy in self._roots.items():
            if original.startswith(os.path.join(root, "")):  # noqa: PTH118
                name = os.path.relpath(original, root)
                path = copy / name
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
                except OSError as error:
                    problem = f"{name[:80]!r} cannot be copied: {error.strerror}"
                    raise UnreadableDocumentError(problem) from None
                return

    @classmethod
    def of_question(cls, app: App, question: str, path: str, data: bytes) -> Trial:
        """Return the documents that a question ranks, with another content of one of them.

        :param path: absolute path of the document.
        :raises DocumentTooLargeError: the documents are too large together.
        """
        documents, places = ranked(app, question)
        ranked_files = [documents[place] for place in dict.fromkeys(places)]
        files = {file.absolute: app.documents.read(file).data for file in ranked_files} | {path: data}
        if sum(map(len, files.values())) > MAX_TRIED:
            raise DocumentTooLargeError(f"the ranked documents have more than {MAX_TRIED >> 20} MiB")
        return cls(app, files)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _is_markdown(path: str) -> bool:
    return has_suffix(path, MARKDOWN_SUFFIXES) or has_suffix(path, QUESTION_SUFFIXES)
