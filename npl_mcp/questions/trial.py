"""Copies of documents in a temporary folder, to try changes on the index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from npl_index.library.documents import DocumentRef
from npl_index.library.references import MARKDOWN_SUFFIXES, QUESTION_SUFFIXES, has_suffix
from npl_mcp.app.app import App
from npl_mcp.browsing.relations import place_of
from npl_mcp.projects.git import contents

GIT_SECONDS = 60.0


class Trial:
    """A copy of documents with its own application; a context manager.

    :param app: application with the settings and the roots.
    :param files: contents by absolute path; files outside all roots are left out.
    """

    def __init__(self, app: App, files: Mapping[str, bytes]) -> None:
        self._folder = TemporaryDirectory(prefix="npl-trial-")
        top = Path(self._folder.name)
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
        self.app = App(settings)

    @classmethod
    def of(cls, app: App, ref: DocumentRef) -> Trial:
        """Return a copy of the present documents; only files are copied."""
        founds = (found for found in app.documents.find(ref) if not found.root.path.endswith(":"))
        return cls(app, {place_of(found): app.documents.read(found).data for found in founds})

    @classmethod
    def at(cls, app: App, revision: str) -> Trial:
        """Return the Markdown below the roots in a git revision, including question files.

        :raises InvalidRequestError: a root is not in a repository, or the repository has no such revision.
        """
        files: dict[str, bytes] = {}
        for root in app.library.searched:
            folder = os.path.realpath(root.path)
            found = contents(folder, revision, _is_markdown, GIT_SECONDS)
            files |= {f"{folder}/{path}": data for path, data in found.items()}
        return cls(app, files)

    def path(self, original: str) -> Path | None:
        """Return the path of a file's copy; ``None`` for a file outside all roots."""
        for root, copy in self._roots.items():
            if original.startswith(os.path.join(root, "")):  # noqa: PTH118
                return copy / os.path.relpath(original, root)
        return None

    def read(self, original: str) -> bytes:
        """Return the content of a copy."""
        path = self.path(original)
        assert path is not None
        return path.read_bytes()

    def write(self, original: str, data: bytes) -> None:
        """Change a copy."""
        path = self.path(original)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self.app.close()
        self._folder.cleanup()


def _is_markdown(path: str) -> bool:
    return has_suffix(path, MARKDOWN_SUFFIXES) or has_suffix(path, QUESTION_SUFFIXES)
