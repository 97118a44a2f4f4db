"""The files of artifacts: limits, names, types, descriptions, and copies for programs that open them by path.

The database is authoritative: the copies are written for an answer that names them, and may be removed at any
time. Below the folder, no file is reached through a link::

    <folder>/<artifact>/revision-<n>-<filename>    a revision's content
    <folder>/<artifact>/revision-<n>.meta.md       its description
"""

from __future__ import annotations

import binascii
import logging
import re
from contextlib import suppress
from pathlib import Path

from npl_index.library.files import Folder, make_folder
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.engine import Row
from npl_mcp.stores.base.errors import TooLargeError
from npl_mcp.stores.base.folder import FILE, FOLDER, private_folder

logger = logging.getLogger(__name__)

_MAX_LINE = 1024 * 1024

_FILENAME_BYTES = 200

# Windows has the devices, and drops a final dot.
_UNFIT = re.compile(r'[/\\:*?"<>|]|\.\Z|\A(con|prn|aux|nul|(com|lpt)[0-9¹²³])(\.|\Z)', re.IGNORECASE)


def parse_content(content: str | None, file_content_base64: str | None, most: int) -> bytes:
    """Return the content of a file, given as text or in base64.

    :param content: the text, stored in UTF-8.
    :param most: the maximum bytes of the content.
    :raises MissingRequestError: both are missing, or the given one is empty.
    :raises InvalidRequestError: both are given, or the given one is not valid.
    :raises TooLargeError: it has more bytes.
    """
    if content is not None and file_content_base64 is not None:
        problem = "and file_content_base64 are both given"
        raise checks.invalid("content", problem, "give text as content, other files in base64")
    if not (content or file_content_base64):
        name = "content" if file_content_base64 is None else "file_content_base64"
        raise checks.missing(name, "is empty", "give a text as content, or a file as file_content_base64")
    try:
        data = content.encode() if content else _decode(file_content_base64 or "")
    except UnicodeEncodeError:
        raise checks.invalid("content", "contains a lone surrogate") from None
    if len(data) > most:
        problem = f"the file has {len(data):,} bytes"
        raise TooLargeError(problem, hint=f"at most {most:,} are accepted (NPL_MAX_ARTIFACT_BYTES)")
    return data


def _decode(text: str) -> bytes:
    """Decode standard base64 with padding only, so that each content has one form."""
    written = text.encode("ascii", "replace")
    with suppress(binascii.Error):
        content = binascii.a2b_base64(written)
        # Decoding skips invalid characters. The text was valid base64 only if encoding restores it.
        if binascii.b2a_base64(content, newline=False) == written:
            return content
    hint = "use A-Z a-z 0-9 + / with = padding and no line breaks, e.g. SGVsbG8="
    raise checks.invalid("file_content_base64", "is not base64", hint)


_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF87a", b"", "image/gif"),
    (b"GIF89a", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
)
"""First bytes of pictures, the bytes from their ninth on, and their type; the name of a file proves nothing.
"""


def picture_type(content: bytes) -> str | None:
    """Return the type of a picture for browsers, without active content; ``None`` for other files."""
    for start, more, kind in _PICTURES:
        if content.startswith(start) and content[8:].startswith(more):
            return kind
    return None


def as_text(content: bytes) -> str | None:
    """Return a file's content as text; ``None`` if it is not text."""
    if b"\0" in content:
        return None
    with suppress(UnicodeDecodeError):
        return content.decode()
    return None


def check_filename(filename: str, parameter: str = "filename") -> str:
    """Check the name of a file: valid on every system, and without a path.

    :raises MissingRequestError: the name is empty.
    :raises InvalidRequestError: the name is not valid.
    """
    name = checks.line(filename, parameter, _FILENAME_BYTES)
    size = len(name.encode())
    if size > _FILENAME_BYTES:
        raise checks.invalid(parameter, f"has {size} bytes in UTF-8", f"at most {_FILENAME_BYTES}")
    if not name.isprintable() or _UNFIT.search(name):
        hint = 'give a name without folders, and without \\ : * ? " < > |, e.g. notes.md'
        raise checks.invalid(parameter, f"is {name!r}, which is not valid on every system", hint)
    return name


def description(row: Row) -> str:
    """Return a revision's ``.meta.md``: front matter with its keys in order, then the notes.

    :param row: the revision with the names of its artifact.
    """
    import yaml  # only writing needs it

    fields = {
        "artifact_name": row["artifact_name"],
        "created_at": row["created_at"],
        "created_by": row["created_by"] or "unknown",
        "filename": row["filename"],
        "purpose": row["purpose"],
        "revision": row["revision_num"],
    }
    # The C library, if available, writes in a tenth of the time. Every value is kept on one line, so that
    # none can look like the end of the front matter.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    front = yaml.dump(fields, Dumper=dumper, allow_unicode=True, width=_MAX_LINE)
    return f"---\n{front}---\n\n" + (f"# Notes\n\n{row['notes']}\n" if row["notes"] else "")


def write_copies(folder: Path | None, row: Row, content: bytes) -> dict[str, str | None]:
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
                if not _is_copy(inside, name, data):
                    inside.replace(name, data, mode=FILE, durable=False)
                paths[place] = str(folder.absolute() / str(row["artifact_id"]) / name)
    except OSError as error:
        logger.warning("an artifact has no file here: %s", error.strerror or type(error).__name__)
    return paths


def _is_copy(folder: Folder, name: str, data: bytes) -> bool:
    with suppress(OSError):
        return folder.read_start(name, len(data) + 1) == data
    return False
