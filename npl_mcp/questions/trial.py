"""A copy of documents in a temporary folder, in which changes are tried on the index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from npl_index.library.documents import DocumentRef
from npl_index.library.references import MARKDOWN_SUFFIXES, QUESTION_SUFFIXES, has_suffix
from npl_mcp.core.app import App
from npl_mcp.core.relations import place_of
from npl_mcp.projects.git import contents

GIT_SECONDS = 60.0


class Trial:
    """Documents in a folder of its own, and the application that serves them; a context manager.

    :param app: the application whose settings apply.
    :param files: the contents, by absolute path; those below no root are left out.
    """

    def __init__(self, app: App, files: Mapping[str, bytes]) -> None:
        self._folder = TemporaryDirectory(prefix="npl-trial-")
        top = Path(self._folder.name)
        # The last segment labels a root in answers, so it stays.
        self._roots = {
            root.path: top / str(number) / Path(root.path).name
            for number, root in enumerate(app.library.roots)
        }
        for path, data in files.items():
            self.write(path, data)
        roots = tuple(one for one in self._roots.values() if one.is_dir())
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
        """Return a copy of documents as they are now; only files are copied."""
        founds = (one for one in app.documents.find(ref) if not one.root.path.endswith(":"))
        return cls(app, {place_of(one): app.documents.read(one).data for one in founds})

    @classmethod
    def at(cls, app: App, revision: str) -> Trial:
        """Return the Markdown below the roots as it was in a git revision, question files included.

        :raises InvalidRequestError: a root lies in no repository, or it has no such revision.
        """
        files: dict[str, bytes] = {}
        for root in app.library.searched:
            folder = os.path.realpath(root.path)
            found = contents(folder, revision, _is_markdown, GIT_SECONDS)
            files |= {f"{folder}/{path}": data for path, data in found.items()}
        return cls(app, files)

    def path(self, original: str) -> Path | None:
        """Return where the copy of a file is; ``None`` for a file below no root."""
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
