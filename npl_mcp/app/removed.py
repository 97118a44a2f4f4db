"""Addresses of removed features, which stored texts still have: each answers with one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from npl_index.errors import DocumentNotFoundError

REMOVED: Mapping[str, str] = {
    "lib": "'npl-mcp library export DIR' writes the libraries as files",
    "skill": "give the path of the SKILL.md",
}
"""What to do instead, by scheme."""


def refuse_removed(name: str | None) -> None:
    """Check that a name of documents has no removed scheme.

    :raises DocumentNotFoundError: it has one.
    """
    scheme, colon, _ = (name or "").partition(":")
    if colon and scheme in REMOVED:
        raise DocumentNotFoundError(f"{scheme}: addresses are no longer served", hint=REMOVED[scheme])
