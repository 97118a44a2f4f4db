"""Files of revisions, for programs that open them by path.

The database is authoritative: the files are written for an answer that names them, and may be removed at any
time. Below the folder, no file is reached through a link::

    <folder>/<artifact>/revision-<n>-<filename>    a revision's content
    <folder>/<artifact>/revision-<n>.meta.md       its description
"""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from npl_index.library.files import Folder, make_folder
from npl_mcp.stores.artifact.descriptions import description
from npl_mcp.stores.base.database import Row
from npl_mcp.stores.base.folder import FILE, FOLDER, private_folder

logger = logging.getLogger(__name__)


def written(folder: Path | None, row: Row, content: bytes) -> dict[str, str | None]:
    """Write the files of a revision that do not exist or differ, and return their absolute paths.

    :param folder: the folder of all artifacts, which is created; ``None`` writes nothing.
    :param row: the revision with the names of its artifact; its file name is valid.
    :returns: ``file_path`` and ``meta_path``, ``None`` for files that could not be written.
    """
    paths: dict[str, str | None] = {"file_path": None, "meta_path": None}
    if folder is None:
        return paths
    start = f"revision-{row['revision_num']}"
    files = {f"{start}-{row['filename']}": content, f"{start}.meta.md": description(row).encode()}
    try:
        if not folder.is_dir():
            private_folder(folder.parent)
        make_folder(folder, FOLDER)
        with Folder.opened(folder, str(row["artifact_id"]), make=True, mode=FOLDER) as inside:
            for place, (name, data) in zip(paths, files.items(), strict=True):
                if not _is_written(inside, name, data):
                    inside.replace(name, data, mode=FILE, durable=False)
                paths[place] = str(folder.absolute() / str(row["artifact_id"]) / name)
    except OSError as error:
        logger.warning("an artifact has no file here: %s", error.strerror or type(error).__name__)
    return paths


def _is_written(folder: Folder, name: str, data: bytes) -> bool:
    with suppress(OSError):
        return folder.read_start(name, len(data) + 1) == data
    return False
