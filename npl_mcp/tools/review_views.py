"""Reviews for people: what the pages of an artifact show at its lines and on its pictures.

These tools are called by name and not listed.
"""

from __future__ import annotations

from npl_mcp.core.app import App
from npl_mcp.stores.review.places import Places
from npl_mcp.tools.spec import ToolSpec


def review_places(app: App, artifact_id: int, revision_id: int) -> Places:
    """Show all comments on a revision, each with its place.

    :returns: the comments on a revision.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises InvalidRequestError: an id cannot be one.
    :raises DatabaseError: the database cannot be used.
    :raises StorageError: the file is gone, cannot be read, or was changed.
    """
    return app.stores.review.places(artifact_id, revision_id)


TOOLS = (ToolSpec(review_places, listed=False, lane="heavy"),)
