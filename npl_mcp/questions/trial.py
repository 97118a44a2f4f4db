"""A copy of documents in a temporary folder, to try a change before it is saved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from npl_index.errors import DocumentTooLargeError, UnreadableDocumentError
from npl_mcp.app.app import App
from npl_mcp.app.context import Context
from npl_mcp.questions.outcomes import rank_documents

MAX_BYTES = 8 << 20
"""Maximum bytes of documents for one question, which are indexed for it."""


@contextmanager
def changed_documents(app: Context, question: str, path: str, data: bytes) -> Iterator[Context]:
    """Copy the documents that a question ranks, with another content of one of them, for an own application.

    :param path: absolute path of the changed document.
    :raises DocumentTooLargeError: the documents are too large together.
    :raises UnreadableDocumentError: this system cannot have a file with one of the names.
    """
    documents, places = rank_documents(app, question)
    ranked_files = [documents[place] for place in dict.fromkeys(places)]
    files = {file.absolute: app.documents.read(file).data for file in ranked_files} | {path: data}
    if sum(map(len, files.values())) > MAX_BYTES:
        raise DocumentTooLargeError(f"the ranked documents have more than {MAX_BYTES >> 20} MiB")
    with TemporaryDirectory(prefix="npl-trial-") as folder:
        # Answers label a root by its last segment, so the copy has the same.
        roots = {
            root.path: Path(folder, str(number), Path(root.path).name)
            for number, root in enumerate(app.library.roots)
        }
        for original, content in files.items():
            root = next((root for root in roots if original.startswith(os.path.join(root, ""))), None)  # noqa: PTH118
            if root is not None:
                _write(roots[root], os.path.relpath(original, root), content)
        settings = replace(
            app.settings,
            roots=tuple(root for root in roots.values() if root.is_dir()),
            cwd=Path(folder),
            data_dir=Path(folder, "data"),
            database_url=None,
            cache_mode="memory",
            warm_up=False,
        )
        with closing(App(settings)) as copy:
            yield copy


def _write(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        problem = f"{name[:80]!r} cannot be copied: {error.strerror}"
        raise UnreadableDocumentError(problem) from None
