"""The contents of revisions: rows, one per digest."""

from __future__ import annotations

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.artifact.descriptions import check_filename
from npl_mcp.stores.base.database import Row, Transaction, damaged, digest_of


def put(tx: Transaction, content: bytes) -> str:
    """Store a content, in the transaction of its revision's row; return its digest."""
    digest = digest_of(content)
    tx.insert("content", "digest", "digest", digest=digest, data=content)
    return digest


def fetch(tx: Transaction, row: Row) -> bytes:
    """Return the content of a revision.

    :param row: the revision's row.
    :raises DatabaseError: the content or its file name is damaged.
    """
    which = f"revision {row['revision_num']} of artifact {row['artifact_id']}"
    try:
        check_filename(row["filename"])
    except (InvalidRequestError, TypeError):
        raise damaged(f"{which} has a file name that no file can have") from None
    content = tx.contents("content", [row["digest"]]).get(row["digest"])
    if content is None:
        raise damaged(f"the content of {which} is not the one that was stored")
    return content
