"""Schemes in the names of artifacts and change requests, as in ``artifact:12``, and the removed schemes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from npl_index.errors import DocumentNotFoundError


class Scheme(NamedTuple):
    """A scheme of documents.

    :param domain: domain of the tools that a caller must see.
    :param address: regular expression of the addresses of single documents, as a text may name them.
    :param changed_by: names of the tools that change these documents.
    """

    domain: str
    address: str
    changed_by: str


SCHEMES: Mapping[str, Scheme] = {
    "artifact": Scheme(
        "artifact", r"artifact:\d+", "artifact_add_revision changes artifacts, artifact_create makes them"
    ),
    "cr": Scheme(
        "cr", r"cr:[A-Z][A-Z0-9]*-\d+", "manage_cr_sections changes change requests, create_cr makes them"
    ),
}
"""All schemes, by name. :class:`~npl_mcp.app.documents.Documents` has the source of each, and
:data:`npl_index.library.references.ADDRESSES` keeps files from having such names.
"""

REMOVED_SCHEMES: Mapping[str, str] = {
    "lib": "'npl-mcp library export DIR' writes the libraries as files",
    "skill": "give the path of the SKILL.md",
}
"""The replacement, by removed scheme; stored texts still have such names."""


def refuse_removed(name: str | None) -> None:
    """Check that a name of documents has no removed scheme.

    :raises DocumentNotFoundError: it has one.
    """
    scheme, colon, _ = (name or "").partition(":")
    if colon and scheme in REMOVED_SCHEMES:
        raise DocumentNotFoundError(f"{scheme}: addresses are no longer served", hint=REMOVED_SCHEMES[scheme])
