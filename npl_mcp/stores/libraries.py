"""Libraries of earlier versions, Markdown with revisions: their export to files. 0.4.0 drops their tables."""

from __future__ import annotations

from pathlib import Path

from npl_index.library.files import Folder, make_folder
from npl_index.library.references import UNSPEAKABLE
from npl_mcp.stores.base.database import Database, Transaction

NOTICE = (
    "libraries are not served any more; 'npl-mcp library export DIR' writes those of this database as files"
)

_FILES = """
    SELECT name || '/' || path AS path, digest FROM library JOIN library_file ON library_id = library.id
    WHERE first_revision <= revision AND last_revision >= revision ORDER BY 1"""


def has_libraries(tx: Transaction) -> bool:
    """Return whether a database has libraries."""
    return tx.value("SELECT id FROM library") is not None


def export(database: Database, folder: Path) -> tuple[int, tuple[str, ...]]:
    """Write the newest revision of each library to ``LIBRARY/…`` below a folder.

    Existing files stay unchanged.

    :returns: number of files in the libraries; those that the folder does not have now, with the reasons.
    :raises OSError: the folder cannot be created.
    """
    with database.read() as tx:
        rows = tx.all(_FILES)
    make_folder(folder)
    problems = []
    for row in rows:
        with database.read() as tx:
            data = tx.contents("library_content", [row["digest"]]).get(row["digest"])
        problem = "it is damaged in the database" if data is None else _write(folder, row["path"], data)
        if problem is not None:
            problems.append(f"{row['path']}: {problem}")
    return len(rows), tuple(problems)


def _write(folder: Path, path: str, data: bytes) -> str | None:
    """Create a file below a folder; return the reason if it does not have this content afterwards."""
    *folders, name = segments = path.split("/")
    # A damaged database may have any path; on Windows, a segment may be several or a drive.
    if ".." in segments or Path(*segments).parts != tuple(segments) or UNSPEAKABLE.search(path):
        return "this is not the path of a file of a library"
    taken = "a different file, a folder or a link has this name"
    try:
        with Folder.opened(folder, "/".join(folders), make=True) as place:
            same = place.create(name, data, durable=False) or place.read(name, len(data))[0] == data
    except OSError as error:
        return error.strerror or taken
    return None if same else taken
