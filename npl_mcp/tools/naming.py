"""Names in arguments: the todo or change request that is a question, and the section of a document."""

from __future__ import annotations

import re

from npl_index.library.documents import DocumentRef
from npl_index.library.references import page_and_part
from npl_index.selectors.writing import qualified
from npl_mcp.app.context import Context
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.stores.chat import feed, rooms

QUESTION = 1_000
"""Maximum characters of a question from a change request: its title and its first paragraphs."""

_TODO = re.compile(r"todo:(\d{1,15})")


def question_in(app: Context, context: str | None) -> str | None:
    """Return a question; the name of a todo or a change request is replaced by its text.

    :raises NotFoundError: there is no such todo or change request.
    """
    name = (context or "").strip()
    if (todo := _TODO.fullmatch(name)) and app.permissions.has_domain("chat"):
        with app.database.read() as tx:
            number = int(todo[1])
            (event,) = feed.by_ids(tx, rooms.require_event(tx, number)["room_id"], [number])
        return str(event.data.get("description") or event.data.get("message") or name)
    if re.fullmatch(SCHEMES["cr"].address, name):
        tree = app.gather(DocumentRef(file=name)).collection.documents[0].tree
        return f"{tree.sections[0].title}\n{tree.text(tree.sections[0].whole)}"[:QUESTION]
    return context


def part_of(file: str | None) -> list[str]:
    """Return the selector of a section whose anchor or line a caller wrote after the name of one file."""
    return [qualified(file, "")] if file and "," not in file and page_and_part(file)[1] else []
