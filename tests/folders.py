"""Folders of tests."""

from collections.abc import Mapping
from pathlib import Path


def fill(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder, each by its path; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder
