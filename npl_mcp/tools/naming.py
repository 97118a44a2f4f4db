"""Lookup of the documents that a text names, and of the questions in todos and change requests."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from npl_index.errors import NPLError
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name, page_and_part
from npl_index.selectors.writing import qualified
from npl_mcp.app.context import Context
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.stores.chat import feed, rooms

MAX_DOCUMENTS = 5
"""Maximum documents of one text."""

MAX_COUNTED = 256 * 1024
"""Maximum bytes of a text's documents whose tokens are counted: all writers of the database may wait."""

QUESTION = 1_000
"""Maximum characters of a question from a change request: its title and its first paragraphs."""

_ADDRESSES = "|".join(scheme.address for scheme in SCHEMES.values())
_NAMES = re.compile(rf"(?<![\w:/.-])(?:[\w./-]+\.(?:md|markdown)|{_ADDRESSES})(?!\w)")
_TODO = re.compile(r"todo:(\d{1,15})")


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document that a text names.

    :param selector: selector of the document.
    :param tokens: tokens of the whole document, unless it is large.
    """

    selector: str
    tokens: int | None


def documents_named(app: Context, text: str | None) -> tuple[NamedDocument, ...] | None:
    """Return the documents that a text names, as far as the caller sees them; ``None`` if it names none."""
    documents: dict[str, NamedDocument] = {}
    room = MAX_COUNTED
    for name in dict.fromkeys(_NAMES.findall(text or "")[: 4 * MAX_DOCUMENTS]):
        scheme = SCHEMES.get(name.partition(":")[0])
        if not app.permissions.has_domain(scheme.domain if scheme else "npl"):
            continue
        with suppress(NPLError):
            ref = DocumentRef(file=name)
            files = app.documents.find(ref)
            if len(files) != 1 or len(documents) == MAX_DOCUMENTS:
                continue
            size = files[0].stat().size
            documents[name] = NamedDocument(document_name(name), None) if size > room else _counted(app, ref)
            room -= size if size <= room else 0
    return tuple({document.selector: document for document in documents.values()}.values()) or None


def _counted(app: Context, ref: DocumentRef) -> NamedDocument:
    gathered = app.gather(ref)
    tree = gathered.collection.documents[0].tree
    tokens = gathered.counts(0).total(tree.subtree(0))
    return NamedDocument(document_name(gathered.files[0]), tokens)


def question_in(app: Context, context: str | None) -> str | None:
    """Return a question; the name of a todo or a change request is replaced by its text.

    :raises NotFoundError: there is no such todo or change request.
    """
    name = (context or "").strip()
    if (todo := _TODO.fullmatch(name)) and app.permissions.has_domain("chat"):
        with app.database.read() as tx:
            number = int(todo[1])
            (event,) = feed.by_ids(tx, rooms.room_of(tx, number), [number])
        return str(event.data.get("description") or event.data.get("message") or name)
    if re.fullmatch(SCHEMES["cr"].address, name):
        tree = app.gather(DocumentRef(file=name)).collection.documents[0].tree
        return f"{tree.sections[0].title}\n{tree.text(tree.sections[0].whole)}"[:QUESTION]
    return context


def part_of(file: str | None) -> list[str]:
    """Return the selector of a section whose anchor or line a caller wrote after the name of one file."""
    return [qualified(file, "")] if file and "," not in file and page_and_part(file)[1] else []
