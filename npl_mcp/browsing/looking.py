"""A folder with its files, or a file with its sections and texts, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.values import as_dict
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.front_matter import MAX_YAML
from npl_index.markdown.front_matter import values as front_values
from npl_index.markdown.links import slugs
from npl_index.markdown.sections import SectionTree, Span
from npl_index.ranking.documents import ParsedDocument
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select
from npl_index.selectors.writing import qualified
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.context import Context
from npl_mcp.app.document_sets import NotIndexedError
from npl_mcp.app.section_edits import is_writable
from npl_mcp.app.waiting import HURRY
from npl_mcp.browsing import places
from npl_mcp.stores.base.values import values_of

MAX_OUTLINE = 1_000
"""Rows of an outline; with more headings, the deeper levels are hidden."""

MAX_TEXT = 60_000
"""Characters of the sections in one answer, unless the first one is longer."""


def look(
    app: Context, file: str | None, selector: str | None, offset: int, limit: int, *, whole: bool
) -> dict[str, Any]:
    """Return a folder with its entries as ``folder``, or a file with its sections and texts as ``file``.

    :param file: a Markdown file or a folder; ``None`` for all roots.
    :param selector: first section of a file to show.
    :param offset: sections of a file to skip.
    :param limit: maximum number of sections.
    :param whole: whether to return all files below a folder instead of its entries.
    :raises DocumentNotFoundError: there is no such file or folder.
    :raises DocumentError: the file cannot be read.
    :raises SelectorSyntaxError: the selector is not valid.
    :raises SectionNotFoundError: the selector selects nothing.
    """

    def folder(kind: str, name: str, items: Sequence[places.FolderEntry], **more: Any) -> Any:
        entry = places.entry_of_many(kind, places.Crumb(name, file or ""), items, more.pop("missing", 0))
        shown = {"crumbs": (), **values_of(entry), "items": items, "token_counter": app.counter.name}
        return {"folder": {**shown, **more}}

    def read() -> Any:
        if file is None:
            return folder("root", "", [*places.root_entries(app, whole)])
        try:
            gathered = app.documents_of(DocumentRef(file), seconds=HURRY)
        except NotIndexedError as error:
            *above, own = places.breadcrumb(file, app.documents.find(DocumentRef(file)))
            return folder("folder", own.name, (), crumbs=above, missing=error.files)
        if not gathered.several:
            return {"file": _file(app, gathered, selector, offset, limit)}
        files = places.file_entries(app, gathered)
        *above, own = places.breadcrumb(file, gathered.locations)
        items = files if whole else [*places.folder_entries(file, gathered, files)]
        more = {"crumbs": above, "missing": gathered.missing, "unreadable": gathered.unreadable or None}
        return folder("folder", own.name, items, **more)

    return {
        kind: {name: value for name, value in as_dict(shown).items() if value is not None}
        for kind, shown in app.read_here(read).items()
    }


def _file(
    app: Context, gathered: DocumentSet, selector: str | None, offset: int, limit: int
) -> dict[str, Any]:
    """Return a file: its places, its outline, and a part of its text.

    :returns: ``hidden`` is the number of sections too deep for the outline, ``next`` the number of the first
        section after ``items``, ``definitions`` the lines that define its links, ``warnings`` the lines with
        doubtful fences, and ``editable`` true if the caller may change its sections.
    """
    name, tree = gathered.files[0], gathered.tree(0)
    rows = _outline_rows(gathered.document(0), name, gathered.counts(0))
    if selector is not None:
        selected = select((tree,), compile_selector(selector), names=[(name, *gathered.aliases[0])])
        offset = selected[0].head
    items = tuple(_section_texts(tree, rows[offset : offset + limit]))
    stop = offset + len(items)
    outline = _visible_rows(rows)
    fields = front_values(f"---\n{tree.front_matter[:MAX_YAML]}\n---\n") if tree.front_matter else {}
    return {
        "name": name.rpartition("/")[2],
        "address": name,
        "crumbs": places.breadcrumb(name, gathered.locations)[:-1],
        "outline": outline,
        "hidden": len(rows) - len(outline) or None,
        "items": items,
        "total": len(rows),
        "offset": offset,
        "next": stop if stop < len(rows) else None,
        "tokens": rows[0]["tokens"],
        "token_counter": gathered.counter.name,
        "version": tree.sections[0].version,
        "status": gathered.status(0) or None,
        "definitions": _definitions(tree),
        "warnings": tuple(line + 1 for line in tree.doubtful_fences) or None,
        "front": {field: _written(value) for field, value in fields.items()} or None,
        "editable": (gathered.digests and is_writable(app, gathered.locations[0], name)) or None,
    }


def _written(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")


def _outline_rows(parsed: ParsedDocument, file: str, counts: TokenCounts) -> list[dict[str, Any]]:
    """Return the sections of a file.

    :returns: ``name`` is the rendered heading, of a document its title; ``selector`` selects exactly the
        section; ``anchor`` is that of its heading in GitHub's form; that of a versioned section is one that
        no heading has; ``level`` is 0 for the document and for a versioned section; ``depth`` is the number
        of sections above it; ``start_line`` counts from 1; ``tokens`` include subsections, ``own_tokens`` do
        not.
    """
    tree, document = parsed.tree, document_name(file)
    anchors = iter(slugs(section for section in tree.sections if section.level))
    depths: list[int] = []
    for section in tree.sections:
        depths.append(0 if section.parent is None else depths[section.parent] + 1)
    return [
        {
            "index": section.index,
            "name": section.title,
            "selector": qualified(document, parsed.step(section.index)),
            # Anchors of headings have no colon.
            "anchor": next(anchors) if section.level else f"part:{section.index}" if section.index else "",
            "level": section.level,
            "depth": depths[section.index],
            "start_line": section.own.start + 1,
            "tokens": counts.total(tree.subtree(section.index)),
            "own_tokens": counts.last(section.index),
        }
        for section in tree.sections
    ]


def _visible_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of an outline down to the deepest level that fits."""
    depths = sorted(row["depth"] for row in rows)
    deepest = depths[-1] if len(rows) <= MAX_OUTLINE else max(1, depths[MAX_OUTLINE] - 1)
    return [row for row in rows if row["depth"] <= deepest][:MAX_OUTLINE]


def _section_texts(tree: SectionTree, rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows of sections, each with its own text without its heading, and the first line of that text in
    the file, from 1; up to :data:`MAX_TEXT` characters.
    """
    length = 0
    for row in rows:
        section = tree.sections[row["index"]]
        whole = tree.text(Span(section.heading_lines.stop, section.own.stop))
        text = whole.strip("\n")
        if length and length + len(text) > MAX_TEXT:
            return
        length += len(text)
        first = max(section.heading_lines.stop, section.own.start) + 1
        yield {"row": row, "text": text, "line": first + len(whole) - len(whole.lstrip("\n"))}


def _definitions(tree: SectionTree) -> str | None:
    """Return the lines that define targets of links, which are valid in the whole file."""
    if "]:" not in tree.source:
        return None
    lines = (line for line in tree.source.split("\n") if line.lstrip(" ").startswith("[") and "]:" in line)
    return "\n".join(lines) or None
