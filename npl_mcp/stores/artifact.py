"""Artifacts: files with revisions."""

from __future__ import annotations

from pathlib import Path

from npl_mcp.stores.database import Database


class ArtifactStore:
    """Artifacts."""

    def __init__(self, database: Database, folder: Path, max_bytes: int) -> None:
        self._database = database
        self._folder = folder
        self._max_bytes = max_bytes
