"""Documents for people who look through them: folders, one file, and how files refer to each other.

These tools are called by name and not listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from annotated_types import Ge

from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.links import Reference, slugs
from npl_index.markdown.sections import Section, SectionTree, Span
from npl_index.markdown.state import Deadline
from npl_index.ranking.indexing import ParsedDocument
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select
from npl_index.selectors.writing import qualified
from npl_index.tokens.sections import TokenCounts
from npl_mcp.core.app import App, Gathered
from npl_mcp.core.maps import Area, areas_of_files, areas_of_sections
from npl_mcp.core.places import Crumb, Entry, above, entries, held, measured, tops
from npl_mcp.core.relations import Relations, around
from npl_mcp.core.tables import arranged
from npl_mcp.core.waiting import waits
from npl_mcp.tools.spec import ToolSpec

MOST_OUTLINED = 1_000
"""Headings of an outline; of more those of the higher levels are shown."""

MOST_TEXT = 60_000
"""Characters of the sections that are shown at once, unless the first one is longer."""

File = Annotated[str | None, "A Markdown file, a folder or a library; default: all roots"]
Offset = Annotated[int, Ge(0), "How many are left out before"]
Limit = Annotated[int, Ge(1), "Most that are shown"]
Sort = Annotated[str, "A column, with - before it for the reverse order"]
Filter = Annotated[str, "Words that each row holds"]

COLUMNS = ("name", "title", "files", "sections", "tokens", "words", "traits")
"""Of a folder."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, or all roots and libraries.

    :param name: what people call it; nothing for all.
    :param address: what leads to it.
    :param crumbs: the folders above it.
    :param items: a page of what lies in it: folders, then files.
    :param total: how much lies in it.
    :param limit: of a page.
    :param offset: of this page.
    :param files: how many files there are below it.
    :param sections: their headings.
    :param tokens: their tokens; nothing if there are too many files.
    :param token_counter: how they were counted.
    :param map: where the tokens lie.
    :param unreadable: files that were left out, and why.
    :param missing_files: how many files are not indexed yet.
    """

    name: str
    address: str
    crumbs: tuple[Crumb, ...]
    items: tuple[Entry, ...]
    total: int
    limit: int
    offset: int
    files: int
    sections: int
    tokens: int | None
    token_counter: str
    map: Area | None = None
    unreadable: tuple[str, ...] | None = None
    missing_files: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A section in the outline of a file.

    :param index: its place in the file.
    :param name: its heading as a reader sees it; of a document, its title.
    :param selector: selects exactly this section.
    :param anchor: of its heading, as GitHub makes it; of a versioned section one that no heading has.
    :param level: of the heading; 0 for the document and for a versioned section.
    :param depth: how many sections it lies in.
    :param start_line: its first line, from 1.
    :param end_line: line after its own text.
    :param tokens: subsections included.
    :param own_tokens: of its own text.
    :param words: of its own text.
    :param traits: what its own text holds.
    """

    index: int
    name: str
    selector: str
    anchor: str
    level: int
    depth: int
    start_line: int
    end_line: int
    tokens: int
    own_tokens: int
    words: int
    traits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A section whose text is shown.

    :param row: the section.
    :param text: its own text, without its heading.
    """

    row: Row
    text: str


@dataclass(frozen=True, slots=True)
class Sections:
    """One file.

    :param name: what people call it.
    :param address: what leads to it.
    :param crumbs: the folders above it.
    :param outline: its sections.
    :param hidden: how many are left out of the outline, since they lie deep.
    :param items: the sections that are shown.
    :param total: sections, the text before the first heading included.
    :param offset: of the first section that is shown.
    :param next: of the first one that is not shown any more.
    :param tokens: of the file.
    :param token_counter: how they were counted.
    :param words: of the file.
    :param traits: what it holds.
    :param version: of the document, where it says one.
    :param definitions: where its links are defined.
    :param map: where the tokens lie.
    :param warnings: lines where a fence looks wrong.
    """

    name: str
    address: str
    crumbs: tuple[Crumb, ...]
    outline: tuple[Row, ...]
    hidden: int | None
    items: tuple[Shown, ...]
    total: int
    offset: int
    next: int | None
    tokens: int
    token_counter: str
    words: int
    traits: tuple[str, ...]
    version: str | None
    definitions: str | None
    map: Area | None
    warnings: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Look:
    """What lies at an address: one of both.

    :param folder: a folder, or all roots.
    :param file: a file.
    """

    folder: Folder | None = None
    file: Sections | None = None


@waits
async def documents_look(
    app: App,
    file: File = None,
    selector: Annotated[str | None, "The section of a file that is shown first"] = None,
    offset: Offset = 0,
    limit: Limit = 100,
    sort: Sort = "",
    filter: Filter = "",
) -> Look:
    """Show a folder with its files, or a file with its sections and text.

    :returns: a folder or a file, whatever lies at the address.
    :raises DocumentNotFoundError: there is no such file or folder.
    :raises DocumentError: the file cannot be used.
    :raises SelectorSyntaxError: the selector cannot be read.
    :raises SectionNotFoundError: it selects nothing.
    :raises InvalidRequestError: a folder has no such column.
    """
    part = _Part(sort, filter, offset, limit)
    if file is None:
        return Look(folder=_listed(app, (), [one async for one in tops(app)], part))
    ref = DocumentRef.parse(file)

    async def look() -> Look:
        gathered = await app.gathered(ref)
        if gathered.several:
            return Look(folder=_folder(app, file, gathered, part))
        return Look(file=_file(app, gathered, selector, offset, limit))

    return await app.unchanging(look)


class _Part(NamedTuple):
    """Which entries of a folder are shown."""

    sort: str
    filter: str
    offset: int
    limit: int


def _folder(app: App, file: str, gathered: Gathered, part: _Part) -> Folder:
    files = measured(app, gathered)
    every = tuple(entries(file, gathered, files))
    crumbs = above(file, gathered.founds)
    folder = _listed(app, crumbs, every, part)
    return replace(
        folder,
        address=file,
        map=areas_of_files(crumbs[-1], gathered, files) if folder.tokens else None,
        unreadable=gathered.unreadable or None,
        missing_files=gathered.missing or None,
    )


def _listed(app: App, crumbs: tuple[Crumb, ...], every: Sequence[Entry], part: _Part) -> Folder:
    """Return a folder with a page of what lies in it.

    :param crumbs: the way to it, itself included; empty for all roots and libraries.
    """
    tokens = [one.tokens for one in every]
    kept = arranged(every, COLUMNS, part.sort, part.filter)
    return Folder(
        name=crumbs[-1].name if crumbs else "",
        address="",
        crumbs=crumbs[:-1],
        items=tuple(kept[part.offset : part.offset + part.limit]),
        total=len(kept),
        limit=part.limit,
        offset=part.offset,
        files=sum(one.files for one in every),
        sections=sum(one.sections for one in every),
        tokens=None if None in tokens else sum(filter(None, tokens)),
        token_counter=app.counter.name,
    )


def _file(app: App, gathered: Gathered, selector: str | None, offset: int, limit: int) -> Sections:
    name = gathered.files[0]
    parsed = gathered.collection.documents[0]
    tree = parsed.tree
    counter, counts = app.counting(gathered.collection, Deadline(name, gathered.until))
    rows = _rows(parsed, name, counts(0))
    if selector is not None:
        found = select((tree,), compile_selector(selector), names=[(name, *gathered.aliases[0])])
        offset = found[0].head
    items = tuple(_shown(tree, rows[offset : offset + limit]))
    stop = offset + len(items)
    outline = _outlined(rows)
    top = tree.sections[0]
    return Sections(
        name=name.rpartition("/")[2],
        address=name,
        crumbs=above(name, gathered.founds)[:-1],
        outline=outline,
        hidden=len(rows) - len(outline) or None,
        items=items,
        total=len(rows),
        offset=offset,
        next=stop if stop < len(rows) else None,
        tokens=rows[0].tokens,
        token_counter=counter.name,
        words=top.whole_traits.word_count,
        traits=held(top.whole_traits),
        version=top.version,
        definitions=_definitions(tree),
        map=areas_of_sections(tree, [row.tokens for row in rows], [row.selector for row in rows]),
        warnings=tuple(line + 1 for line in tree.doubtful_fences) or None,
    )


def _rows(parsed: ParsedDocument, file: str, counts: TokenCounts) -> list[Row]:
    tree = parsed.tree
    document = document_name(file)
    anchors = iter(slugs(one.name for one in tree.sections if one.level))
    depths: list[int] = []
    for section in tree.sections:
        depths.append(0 if section.parent is None else depths[section.parent] + 1)

    def row(section: Section) -> Row:
        return Row(
            index=section.index,
            name=section.title,
            selector=qualified(document, parsed.step(section.index)),
            anchor=_anchor(section, anchors),
            level=section.level,
            depth=depths[section.index],
            start_line=section.own.start + 1,
            end_line=section.own.stop + 1,
            tokens=counts.total(tree.subtree(section.index)),
            own_tokens=counts.last(section.index),
            words=section.own_traits.word_count,
            traits=held(section.own_traits),
        )

    return [row(section) for section in tree.sections]


def _anchor(section: Section, anchors: Iterator[str]) -> str:
    """Return the anchor of a section; those of headings have no colon."""
    if section.level:
        return next(anchors)
    return f"part:{section.index}" if section.index else ""


def _outlined(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows of an outline: all, or those down to the depth that fits."""
    for depth in range(max(row.depth for row in rows), 0, -1):
        chosen = tuple(row for row in rows if row.depth <= depth)
        if len(chosen) <= MOST_OUTLINED:
            return chosen
    return tuple(row for row in rows if row.depth <= 1)[:MOST_OUTLINED]


def _shown(tree: SectionTree, rows: Sequence[Row]) -> Iterator[Shown]:
    """Yield sections with their texts until there is enough of it."""
    length = 0
    for row in rows:
        section = tree.sections[row.index]
        text = tree.text(Span(section.heading_lines.stop, section.own.stop)).strip("\n")
        if length and length + len(text) > MOST_TEXT:
            return
        length += len(text)
        yield Shown(row, text)


def _definitions(tree: SectionTree) -> str | None:
    """Return the lines in which targets of links are defined; they count in the whole file."""
    if "]:" not in tree.source:
        return None
    lines = (line for line in tree.source.split("\n") if line.lstrip(" ").startswith("[") and "]:" in line)
    return "\n".join(lines) or None


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a document.

    :param file: of the document.
    :param line: where it stands, from 1.
    :param selector: of the section it stands in.
    :param path: where it leads, as written.
    :param anchor: the place there.
    :param why: of one that leads nowhere, what is missing.
    """

    file: str
    line: int
    selector: str
    path: str
    anchor: str
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Links:
    """How documents refer to each other.

    :param broken: a page of the links that lead nowhere.
    :param broken_total: how many do.
    :param backlinks: a page of the links of others to a file.
    :param backlinks_total: how many there are.
    :param searched: documents whose links were looked at.
    :param documents: how many there are.
    :param limit: of a page.
    :param offset: of this page.
    """

    broken: tuple[Link, ...]
    broken_total: int
    backlinks: tuple[Link, ...] | None
    backlinks_total: int | None
    searched: int
    documents: int
    limit: int
    offset: int


@waits
async def documents_links(app: App, file: File = None, offset: Offset = 0, limit: Limit = 100) -> Links:
    """Show the links of documents that lead nowhere, and what links to a file.

    :returns: how documents refer to each other.
    :raises DocumentNotFoundError: there is no such file or folder.
    :raises DocumentError: the file cannot be used.
    """
    return await app.unchanging(lambda: _links(app, DocumentRef.parse(file), offset, limit))


async def _links(app: App, ref: DocumentRef, offset: int, limit: int) -> Links:
    asked = await app.gathered(ref)
    relations = Relations(app, await app.gathered(around(app, asked.founds[0])))
    own = {relations.number_of(found) for found in asked.founds} - {None}
    if not own:
        raise DocumentNotFoundError(f"{ref.file!r} is none of the documents of its root")
    part = [number for number in relations.documents if number in own]
    broken = [one for number in part for one in relations.broken(number)]
    backlinks = None if asked.several else list(relations.backlinks(part[0])) if part else []

    page = slice(offset, offset + limit)
    return Links(
        broken=tuple(_link(relations, one.document, one.reference, one.why) for one in broken[page]),
        broken_total=len(broken),
        backlinks=None if backlinks is None else tuple(_link(relations, *one) for one in backlinks[page]),
        backlinks_total=None if backlinks is None else len(backlinks),
        searched=len(relations.documents),
        documents=len(relations.gathered.founds),
        limit=limit,
        offset=offset,
    )


def _link(relations: Relations, document: int, reference: Reference, why: str | None = None) -> Link:
    file = relations.gathered.files[document]
    parsed = relations.parsed(document)
    line = reference.line
    holds = (one.index for one in reversed(parsed.tree.sections) if one.own.start <= line)
    step = parsed.step(next(holds, 0))
    return Link(file, line + 1, qualified(document_name(file), step), reference.path, reference.anchor, why)


TOOLS = (
    ToolSpec(documents_look, lane="heavy", listed=False),
    ToolSpec(documents_links, lane="heavy", listed=False),
)
