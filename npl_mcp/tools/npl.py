"""Markdown by section: browse documents, load the sections for a task, load whole items, change a section."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from annotated_types import Ge

from npl_index.answer.forms import Json, Markdown
from npl_index.answer.marks import in_mark, mark, tag_for
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.answer.values import Tailored, Written
from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_index.items.loading import Loaded, LoadedItem, MissingItem, load, load_agent
from npl_index.library.documents import DocumentRef
from npl_index.library.references import page_and_part
from npl_index.library.roots import real_path
from npl_index.ranking.naming import read
from npl_index.ranking.scoring import Query, rank
from npl_index.selectors.filters import CONDITIONS, SectionFilter
from npl_index.selectors.writing import qualified
from npl_mcp.app.context import Context
from npl_mcp.app.file_view import lies_in
from npl_mcp.app.reading import read_sections_of, report_changes
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.app.section_edits import EditedSection, Operation, update_section
from npl_mcp.stores.base.values import fill
from npl_mcp.stores.chat import feed, rooms
from npl_mcp.tools.contract.parameters import CommaList, Unlisted
from npl_mcp.tools.contract.responses import ENVELOPE
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.section_index import IndexReply, IndexRequest, section_index

QUESTION = 1_000
"""Maximum characters of a question from a change request: its title and its first paragraphs."""

_TODO = re.compile(r"todo:(\d{1,15})")

MAX_HINTS, HINT_TOKENS = 3, 60
"""Maximum names of sections for a prompt; maximum tokens of the text with them."""

HINT = "npl_load_tailored selectors, quoted from files: "

File = Annotated[
    str | None, "Files, folders, globs, items, artifact:12, cr:KEY-1; default: the roots", CommaList
]
Kind = Annotated[str | None, "component, meta, style, agent, spec, prompt, persona, prd, story or workflow"]
Format = Literal["json", "markdown"] | None
UnlistedFormat = Annotated[Format, Unlisted]
CONDITIONS_TEXT = f'{", ".join(CONDITIONS)}, or front matter: {{"status": "!draft"}}'
Count = Annotated[int, Ge(0)]
Items = Annotated[str, "Names: a, b.*", CommaList]
Skip = Annotated[str | None, CommaList]


@dataclass(frozen=True, slots=True)
class LoadReply:
    """Whole items.

    :param content: text of the items, for a model.
    :param flags: names of loaded items, by flag; can be sent back as ``skip``.
    :param flags_updated: the same as ``flags``.
    :param loaded_items: names of the items, in the order of ``content``.
    :param items: loaded items with their origins.
    :param missing: names that were not found.
    :param skipped: names that ``skip`` left out.
    :param total_tokens: tokens of ``content``.
    :param token_counter: name of the token counter.
    """

    content: str
    flags: Mapping[str, str]
    flags_updated: Mapping[str, str]
    loaded_items: tuple[str, ...]
    items: tuple[LoadedItem, ...]
    missing: tuple[MissingItem, ...] | None
    skipped: tuple[str, ...] | None
    total_tokens: int
    token_counter: str


def _items_text(loaded: Loaded) -> str:
    """Return the unchanged text of items, with a last line about missing and skipped ones."""
    near = {item.name: f" (near: {', '.join(item.near)})" for item in loaded.missing or () if item.near}
    missing = [item.name + near.get(item.name, "") for item in loaded.missing or ()]
    notes = {"not found": missing, "skipped": loaded.skipped or ()}
    text = "; ".join(f"{what}: {', '.join(names)}" for what, names in notes.items() if names)
    if not text:
        return loaded.content
    return f"{loaded.content.rstrip()}\n\n{mark(in_mark(text), tag_for([loaded.content]))}"


LoadAnswer = LoadReply | Written[LoadReply]


def _load_items(app: Context, kind: str, items: str, skip: str | None, format: str | None) -> LoadAnswer:
    loaded = load(app.documents.own, kind, items, skip)
    if loaded.missing and not loaded.items and not loaded.skipped:
        names = ", ".join(repr(missing.name) for missing in loaded.missing)
        near = dict.fromkeys(name for missing in loaded.missing for name in missing.near)
        raise DocumentNotFoundError(f"there is no {kind} {names}", near=tuple(near))
    return _reply(app, loaded, format)


def _reply(app: Context, loaded: Loaded, format: str | None) -> LoadAnswer:
    names, flags = tuple(item.name for item in loaded.items), loaded.flags
    size = {"total_tokens": app.counter.count(loaded.content), "token_counter": app.counter.name}
    reply = fill(LoadReply, loaded, loaded_items=names, flags_updated=flags, **size)
    return Written(reply, _items_text(loaded)) if app.form(format) == "markdown" else reply


def npl_load_components(
    app: Context, items: Items, skip: Skip = None, format: UnlistedFormat = None
) -> LoadAnswer:
    """Load whole NPL components (syntax, fences, directive, pumps.*, …).

    :param items: names of items, separated by commas; ``*`` matches any.
    :returns: whole items with their origins.
    :raises DocumentNotFoundError: no item was found.
    """
    return _load_items(app, "component", items, skip, format)


def npl_load_meta(app: Context, items: Items, skip: Skip = None, format: UnlistedFormat = None) -> LoadAnswer:
    """Load whole metadata files.

    :param items: names of items, separated by commas; ``*`` matches any.
    :returns: whole items with their origins.
    :raises DocumentNotFoundError: no item was found.
    """
    return _load_items(app, "meta", items, skip, format)


def npl_load_style(
    app: Context, items: Items, skip: Skip = None, format: UnlistedFormat = None
) -> LoadAnswer:
    """Load whole style guides.

    :param items: names of items, separated by commas; ``*`` matches any.
    :returns: whole items with their origins.
    :raises DocumentNotFoundError: no item was found.
    """
    return _load_items(app, "style", items, skip, format)


def npl_load(
    app: Context,
    items: Items,
    resource_type: Literal["c", "m", "s"] | None = None,
    skip: Skip = None,
    format: UnlistedFormat = None,
) -> LoadAnswer:
    """Load whole NPL components (c), metadata (m) or style guides (s).

    :param items: names of items, separated by commas; ``*`` matches any.
    :param resource_type: kind of the items; by default components.
    :returns: whole items with their origins.
    :raises DocumentNotFoundError: no item was found.
    """
    return _load_items(app, resource_type or "c", items, skip, format)


def npl_load_agent(
    app: Context,
    agent_name: str,
    with_definition: Annotated[bool, "Append the NPL it needs"] = False,
    format: UnlistedFormat = None,
) -> LoadAnswer:
    """Load an agent definition.

    :returns: whole items with their origins.
    :raises DocumentNotFoundError: there is no such agent.
    """
    return _reply(app, load_agent(app.documents.own, agent_name, with_definition=with_definition), format)


async def npl_section_index(
    app: Context,
    file: Annotated[str | None, "docs/*.md", CommaList] = None,
    filter: Annotated[dict[str, Any] | None, CONDITIONS_TEXT] = None,
    resource_type: Kind = None,
    item: Annotated[str | None, "fences"] = None,
    depth: Annotated[Count | None, "Levels"] = None,
    token_budget: Annotated[Count | None, "0: no limit"] = None,
    format: Format = None,
) -> IndexReply | Written[IndexReply]:
    r"""Browse the section tree of Markdown files: selectors, sizes, contents.

    :param file: documents, in the form of ``npl_load_tailored``.
    :param filter: conditions of sections: traits of the answer (``has_code``) are true or false,
        ``min_word_count``, ``max_word_count`` and ``heading_level`` are numbers. Other keys are fields of
        front matter, with a value or a list of alternatives; ``!`` before a value excludes it, ``\!`` is an
        exclamation mark, and ``fm.has_code`` is a field.
    :param item: name of an item of that kind, e.g. ``syntax.placeholder``.
    :param depth: levels of headings.
    :param token_budget: maximum tokens of the answer; 0 for no limit. The default is 1,000 for several files
        and for Markdown; the whole tree of one file comes as JSON. Sections without room are counted.
    :returns: the tree of sections, or a part of it.
    :raises InvalidRequestError: the arguments contradict each other, or a filter is invalid.
    :raises DocumentNotFoundError: there is no such file or item.
    :raises DocumentError: the file cannot be read.
    """
    ref = DocumentRef(file, resource_type, item)
    for name, number in (("depth", depth), ("token_budget", token_budget)):
        if number is not None and number < 0:
            raise InvalidRequestError(f"{name} is {number}", parameter=name, hint="use 0 or more")

    def answer() -> IndexReply | Written[IndexReply]:
        conditions = SectionFilter.parse(filter)
        request = IndexRequest(conditions, depth, token_budget, app.form(format) == "markdown")
        gathered = app.documents_of(ref)
        changed = report_changes(app, token_budget or None)
        with gathered.collection.reading():
            return section_index(app, ref, replace(gathered, changed=changed), request)

    return await app.read(answer, ref)


async def npl_load_tailored(
    app: Context,
    context: Annotated[
        str | None, "The question, plus the terms and identifiers its answer probably contains"
    ] = None,
    topics: Annotated[
        list[str] | None, "One or two likely headings, most likely first: Cross-origin requests, CORS"
    ] = None,
    selectors: Annotated[
        list[str] | None, "Sections an answer named, with the same context: doc > ## A > ### B; ## A...## C"
    ] = None,
    token_budget: Annotated[Count | None, "Default {token_budget}; 0: no limit"] = None,
    file: File = None,
    resource_type: Annotated[str | None, Unlisted] = None,
    item: Annotated[str | None, Unlisted] = None,
    sections: Annotated[list[str] | None, Unlisted] = None,
    depth: Annotated[Count | None, "Levels below selected sections"] = None,
    explain: bool = False,
    exclude: Annotated[list[str] | None, "Not wanted: ## A"] = None,
    filter: Annotated[dict[str, Any] | None, "As in npl_section_index"] = None,
    format: Format = None,
) -> Written[Tailored]:
    """Find the Markdown sections that answer a question. Words are compared, not meanings.

    :param context: the question; ``todo:12`` or ``cr:KEY-1`` asks what that todo or change request says.
    :param token_budget: maximum tokens of the answer; 0 for no limit. The default, 700 or that of the server,
        applies to a context or topics. Selectors alone return whole sections; with a context, sections of up
        to 600 tokens, and of longer ones the text for it; with a budget, other sections that answer follow.
        Without one, selectors that match several sections each, of more than 6,000 tokens in all, return the
        list of these with their sizes.
    :param sections: the same as ``selectors``, but whole without a budget.
    :param explain: add all hits with their scores.
    :param filter: conditions of ranked sections, as in ``npl_section_index``; those of selectors need not
        meet them.
    :returns: the sections with pointers to further ones, in the requested form.
    :raises MissingRequestError: the call has neither context nor topics nor selectors.
    :raises InvalidRequestError: the arguments contradict each other or are out of range.
    :raises SelectorSyntaxError: a selector is not valid.
    :raises SectionNotFoundError: the selectors select nothing.
    :raises DocumentNotFoundError: there is no such file or item.
    :raises DocumentError: the file cannot be read.
    """
    ref = DocumentRef(file, resource_type, item)
    form = Markdown() if app.form(format) == "markdown" else Json(*ENVELOPE)

    def answer() -> Written[Tailored]:
        named = [*(selectors or ()), *(sections or ())] or part_of(file)
        request = TailorRequest.parse(
            question_in(app, context),
            topics,
            named,
            token_budget,
            0 if sections else app.settings.token_budget,
            exclude=exclude,
            depth=depth,
            explain=explain,
            among=SectionFilter.parse(filter),
        )
        documents = app.documents_of(ref, request.selectors, request.exclude)
        documents = replace(documents, changed=report_changes(app, request.token_budget))
        wanted = replace(request, exclude=app.documents.possible(request.exclude, documents))
        written = write(wanted, documents, form, weights=app.settings.weights)
        if app.read_sections is not None:
            read = read_sections_of(written.plan.documents, written.plan.kept)
            app.when_delivered.append(partial(app.read_sections.remember, read))
        return written

    return await app.read(answer, ref)


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


def npl_update_section(
    app: Context,
    file: Annotated[str, "One Markdown file below a root"],
    operation: Annotated[Operation, "delete: expect, no content; create: makes the file, no selector"],
    selector: Annotated[str | None, "Of one section, subsections included; [depth=0] spares them"] = None,
    content: str | None = None,
    expect: Annotated[str | None, "Digest you got; refused if changed since"] = None,
) -> EditedSection:
    """Change a section of a Markdown file; content may begin with a new heading. To add a section, append
    it to the one above.

    :param file: one Markdown file below a root.
    :param operation: ``replace``, ``append``, ``prepend``, ``delete``, which takes no content, or ``create``,
        which creates the file.
    :param selector: selector of one section, with its subsections; ``[depth=0]`` excludes them. ``create``
        takes none.
    :param content: text to write.
    :param expect: digest from an answer; the call fails if the section has changed since.
    :returns: a changed section.
    :raises NotAllowedError: the server was started without --write, or the file is not below a root that the
        user gave.
    :raises AlreadyExistsError: the file to create exists.
    :raises InvalidRequestError: an argument is invalid, or the content is invalid at this place.
    :raises SelectorSyntaxError: the selector is not valid.
    :raises DocumentNotFoundError: there is no such file.
    :raises DocumentError: the file cannot be read.
    :raises SectionNotFoundError: no section or several sections match; the message has valid selectors.
    :raises ConflictError: the section has changed, or another program is writing the file.
    :raises TooLargeError: the file would be too large.
    :raises StorageError: the file cannot be written.
    """
    edited = update_section(app, file, operation, selector or "".join(part_of(file)), content or "", expect)
    if app.read_sections is not None:
        app.read_sections.record_own_edit(app, edited.file, edited.selector)
    return edited


async def npl_hints(
    app: Context, context: Annotated[str, "A prompt"], folder: Annotated[str, "Absolute path of a project"]
) -> str:
    """Name the sections of a project that certainly answer a prompt, for the hook of a client.

    :returns: selectors, quoted as JSON, in one line; empty if the verdict is not certain, or while files are
        not indexed.
    :raises DocumentNotFoundError: the project has no documents.
    """
    project = real_path(folder) or folder
    ref = DocumentRef(project if app.library.roots.locate(project) else None)

    def hints() -> str:
        documents = app.documents_of(ref)
        with documents.collection.reading():
            query = Query(read(context, documents.collection))
            ranking = rank(documents.collection, query, weights=app.settings.weights)
            hits = ranking.hits[:MAX_HINTS]
            own = [lies_in(documents.locations[hit.document].absolute, [project]) for hit in hits]
            if documents.missing or not all(own[:1]) or not ranking.coverage.is_certain():
                return ""
            names = [documents.selector(hit.place) for hit, is_own in zip(hits, own, strict=True) if is_own]
        for number in range(len(names), 0, -1):
            # No name may look like a mark of the client.
            text = HINT + json.dumps(names[:number], ensure_ascii=False).replace("<", "\\u003c")
            if app.counter.upper_bound(app.counter.count(text)) <= HINT_TOKENS:
                return text
        return ""

    return await app.read(hints, ref)


TOOLS = (
    ToolSpec(npl_load_tailored, title="Load Sections", always=True),
    ToolSpec(npl_section_index, title="Browse Sections", always=True),
    ToolSpec(npl_load_components, title="Load Components"),
    ToolSpec(npl_load_meta, title="Load Metadata"),
    ToolSpec(npl_load_style, title="Load Style Guides"),
    ToolSpec(npl_load_agent, title="Load Agent"),
    ToolSpec(npl_load, title="Load Items", listed=False, switch="exact_names"),
    ToolSpec(
        npl_update_section,
        title="Update Section",
        read_only=False,
        idempotent=False,
        destructive=True,
        listed=False,
        switch="write",
        files=True,
    ),
    ToolSpec(npl_hints, listed=False),
)
