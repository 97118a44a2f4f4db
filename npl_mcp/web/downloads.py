"""Files that agents stored, sent so that no browser runs them."""

from __future__ import annotations

import os
from urllib.parse import quote

from starlette.responses import Response

from npl_mcp.stores.artifact.descriptions import picture_type

_PLAIN = frozenset({".md", ".markdown", ".txt", ".csv", ".log", ".json", ".yaml", ".yml", ".toml"})
"""Endings of texts that no program runs."""

_CONFINED = {"Content-Security-Policy": "default-src 'none'; sandbox"}
"""Stricter than that of other pages, whose other headers it gets as well."""


def sent(content: bytes, filename: str) -> Response:
    """Return a file: a picture to be shown, anything else to be saved.

    :param filename: as which it is saved; it says nothing about what is in it.
    """
    kind = picture_type(content)
    plain = os.path.splitext(filename.lower())[1] in _PLAIN and b"\0" not in content  # noqa: PTH122 - a name
    held = "inline" if kind else "attachment"
    named = f"{held}; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"
    media = kind or ("text/plain; charset=utf-8" if plain else "application/octet-stream")
    # Starlette adds a charset to texts alone.
    return Response(content, 200, {**_CONFINED, "Content-Disposition": named}, media)
