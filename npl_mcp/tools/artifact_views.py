"""Artifacts for people: what their pages show.

These tools are called by name and not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from npl_index.errors import InvalidRequestError
from npl_mcp.core.app import App
from npl_mcp.stores.artifact.comparing import Comparison, compare, cut_line
from npl_mcp.stores.artifact.files import as_text, picture_type
from npl_mcp.stores.artifact.values import RevisionOrigin
from npl_mcp.stores.base.paging import LARGEST_PAGE, Slice
from npl_mcp.stores.review.annotation import count_lines, split_lines
from npl_mcp.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class Compared:
    """Two revisions of an artifact.

    :param artifact_id: the artifact.
    :param artifact_name: its name.
    :param old: number of the one.
    :param new: number of the other.
    :param changes: from the one to the other.
    """

    artifact_id: int
    artifact_name: str
    old: int
    new: int
    changes: Comparison


@dataclass(frozen=True, slots=True)
class Looked(RevisionOrigin):
    """A revision as people look at it.

    :param notes: text about it.
    :param filename: name of its file, as given.
    :param size: bytes of its file.
    :param media_type: of a picture that browsers show.
    :param text: of a text: its beginning, on request.
    :param lines: of a text: some of its lines, without their ends; long ones are cut.
    :param total: lines it has.
    """

    notes: str | None
    filename: str
    size: int
    media_type: str | None
    text: str | None
    lines: tuple[str, ...] | None
    total: int


def artifact_look(
    app: App,
    artifact_id: int,
    revision: Annotated[int | None, "Number; default: newest"] = None,
    offset: Annotated[int | None, "Lines left out before the first"] = None,
    limit: Annotated[int | None, "Most lines"] = None,
    text: Annotated[int | None, "Characters of the whole text to add"] = None,
) -> Looked:
    """Show some lines of an artifact's file, and what else is known of it.

    :returns: a revision as people look at it.
    :raises InvalidRequestError: a number is out of range.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises DatabaseError: the database cannot be used.
    :raises StorageError: its files are gone, cannot be read, or were changed.
    """
    page = Slice.parse(limit, offset, LARGEST_PAGE)
    found, content = app.stores.artifact.content(artifact_id, revision)
    whole = as_text(content)
    shown = None if whole is None else islice(split_lines(whole), page.offset, page.offset + page.limit)
    return Looked(
        **found.shared(Looked),
        media_type=picture_type(content),
        text=None if whole is None or text is None else whole[: max(0, text)],
        lines=None if shown is None else tuple(cut_line(line.rstrip("\r\n")) for line in shown),
        total=count_lines(whole or ""),
    )


def artifact_compare(
    app: App,
    artifact_id: int,
    old: Annotated[int, "Revision's number"],
    new: Annotated[int, "Revision's number"],
) -> Compared:
    """Show what changed between two revisions of a text.

    :returns: two revisions of an artifact.
    :raises InvalidRequestError: a revision is no text, or a number is out of range.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises DatabaseError: the database cannot be used.
    :raises StorageError: a file is gone, cannot be read, or was changed.
    """
    texts: list[str] = []
    for name, number in (("old", old), ("new", new)):
        revision, content = app.stores.artifact.content(artifact_id, number)
        text = as_text(content)
        if text is None:
            raise InvalidRequestError(
                f"revision {number} is no text", parameter=name, hint="only texts have lines to compare"
            )
        texts.append(text)
    return Compared(artifact_id, revision.artifact_name, old, new, compare(*texts))


TOOLS = (
    ToolSpec(artifact_look, listed=False, lane="heavy"),
    ToolSpec(artifact_compare, listed=False, lane="heavy"),
)
