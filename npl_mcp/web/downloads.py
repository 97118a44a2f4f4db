"""Files that agents stored, with headers that prevent a browser from running them."""

from __future__ import annotations

import os
from urllib.parse import quote

from starlette.responses import Response

from npl_mcp.stores.artifact.descriptions import picture_type

_PLAIN = frozenset({".md", ".markdown", ".txt", ".csv", ".log", ".json", ".yaml", ".yml", ".toml"})
"""Extensions of texts that no program runs."""

_CONFINED = {"Content-Security-Policy": "default-src 'none'; sandbox"}
"""A stricter policy than that of other pages; the other headers of pages still apply."""


def sent(content: bytes, filename: str) -> Response:
    """Return a file: an image for display, any other content for saving.

    :param filename: the name for saving; the content alone decides the media type.
    """
    kind = picture_type(content)
    plain = os.path.splitext(filename.lower())[1] in _PLAIN and b"\0" not in content  # noqa: PTH122 - a name
    held = "inline" if kind else "attachment"
    named = f"{held}; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"
    media = kind or ("text/plain; charset=utf-8" if plain else "application/octet-stream")
    # Starlette adds a charset only to text types.
    return Response(content, 200, {**_CONFINED, "Content-Disposition": named}, media)
