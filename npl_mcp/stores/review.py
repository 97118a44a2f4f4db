"""Reviews of artifacts."""

from __future__ import annotations

from npl_mcp.stores.artifact import ArtifactStore
from npl_mcp.stores.database import Database


class ReviewStore:
    """Reviews."""

    def __init__(self, database: Database, artifacts: ArtifactStore) -> None:
        self._database = database
        self._artifacts = artifacts
