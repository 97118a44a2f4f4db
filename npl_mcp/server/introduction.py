"""The server's instructions for a connecting client."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from string import ascii_letters

from cachetools.func import ttl_cache

from npl_index.errors import DocumentTooLargeError
from npl_index.library.files import Folder
from npl_index.library.roots import DocumentFile, skipped_text
from npl_index.library.walking import Walk
from npl_index.outline.overview import heading_words, headings_at, in_quotes
from npl_mcp.app.app import VIEWS
from npl_mcp.app.documents import Documents

FIRST = (
    "npl_load_tailored answers from Markdown: ask with likely terms. For an exact name in code use grep. "
    "npl_section_index lists sections. Comments without the marks' #code are text."
)
"""Instructions for the tools of the domain ``npl``."""

ALSO: Mapping[str, str] = {
    **{name: f"{name}_*" for name in ("session", "artifact", "chat", "review", "worklog", "directive")},
    "cr": "*_cr*, *_project*",
    "utility": "git_*, dump_files",
    "search": "search for words everywhere",
}
"""Instructions for other domains."""

ONLY_REFERENCE = "Served: the bundled reference of NPL; no root has Markdown."

MAX_ROOTS = 10
ROOM = 96
"""Maximum letters of the names of roots and of words together; a token has at least two, and other characters
count more. Counting tokens would delay the start.
"""

MAX_ENTRIES = 4_000
"""Maximum scanned folder entries in total, about twenty milliseconds."""

_FEW = 4
_SAMPLE = 96  # maximum files with their first lines read, about ten milliseconds
_BEGINNING = 4_096
_SECONDS = 30.0


def introduction(domains: Collection[str], served: str = "") -> str | None:
    """Return the instructions for a server with the given domains; ``None`` if no text applies.

    :param served: the sentence of :func:`describe_documents`.
    """
    others = ", ".join(text for domain, text in ALSO.items() if domain in domains)
    parts = [FIRST, *filter(None, [served])] if "npl" in domains else []
    if others:
        parts.append(f"{'Also' if parts else 'Tools'}: {others}.")
    return " ".join(parts) or None


@ttl_cache(VIEWS, _SECONDS)
def describe_documents(documents: Documents) -> str:
    """Return a sentence about the caller's visible documents, from names and the beginnings of some files.

    It does not depend on the index: the sentence is the same for the same files, and its cost is bounded for
    any number of files.
    """
    roots, files, least = documents.library.searched, set[DocumentFile](), ""
    if not roots:
        return ONLY_REFERENCE
    walk = Walk(documents.library.roots, most=MAX_ENTRIES // len(roots), counted=True)
    for root in roots:
        try:
            files.update(file for _, file in walk.files(root.path))
        except DocumentTooLargeError:
            least = "over "
    # The result of a truncated walk may differ after any change.
    count = 10 ** (len(str(len(files))) - 1) if least else len(files)
    names = _fitting([in_quotes(root.label) for root in roots[:MAX_ROOTS]], 3 * ROOM // 4)
    more = [f"{len(roots) - len(names)} more roots"] if len(names) < len(roots) else []
    ordered = sorted(files, key=lambda file: file.absolute)
    sample = list(map(_beginning, ordered[:: -(-len(ordered) // _SAMPLE) or 1]))
    several = [word.text for word in heading_words(sample) if len(word.counts) > 1 or len(sample) < _FEW]
    words = sorted(_fitting(several, ROOM - sum(map(_width, names))), key=str.casefold)
    about = f" about {', '.join(words)}" if words else ""
    others = f" Not served: {skipped_text(walk.skipped)}." if walk.skipped and not least else ""
    return f"Served: {least}{count:,} documents of {', '.join(names + more)}{about}.{others}"


def _beginning(file: DocumentFile) -> list[str]:
    """Return the headings at the beginning of a file; empty if it cannot be read."""
    folder, _, name = file.path.rpartition("/")
    with suppress(OSError), Folder.opened(file.root.path, folder) as opened:
        return headings_at(opened.read_start(name, _BEGINNING).decode(errors="replace"))
    return []


def _fitting(texts: Sequence[str], room: int) -> list[str]:
    """Return the first texts that fit into the room."""
    return [text for text, used in zip(texts, accumulate(map(_width, texts)), strict=True) if used <= room]


def _width(text: str) -> int:
    """Return the width of a text with a comma."""
    return sum(1 if c in ascii_letters else 2 * len(c.encode(errors="replace")) for c in f",{text}")
