"""Prompts by section: browse a document, load what a task needs, load whole items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from annotated_types import Ge

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown, partial_note
from npl_index.answer.marks import mark, tag_for
from npl_index.answer.tailoring import TailorRequest, write
from npl_index.answer.values import Tailored, Written
from npl_index.errors import DocumentNotFoundError, InvalidRequestError, NPLError, SectionNotFoundError
from npl_index.items.loading import Loaded, LoadedItem, MissingItem, load, load_agent
from npl_index.library.documents import DocumentRef
from npl_index.markdown.traits import TraitFilter
from npl_index.ranking.indexing import IndexedDocument
from npl_index.tokens.sections import TokenCounts
from npl_mcp.core.app import App
from npl_mcp.tools.responses import ENVELOPE
from npl_mcp.tools.section_index import IndexReply, IndexRequest, section_index
from npl_mcp.tools.spec import CommaList, ToolSpec

File = Annotated[
    str | None,
    "Markdown files, folders, globs, items, artifact:12, cr:KEY-1, lib:docs; default: the roots",
    CommaList,
]
Kind = Annotated[str | None, "component, meta, style, agent, spec, prompt, persona, prd, story or workflow"]
Item = Annotated[str | None, "e.g. syntax.placeholder"]
Format = Literal["json", "markdown"] | None
Count = Annotated[int, Ge(0)]
Items = Annotated[str, "Names: a, b.*", CommaList]
Skip = Annotated[str | None, CommaList]


@dataclass(frozen=True, slots=True)
class LoadReply:
    """Whole items.

    :param content: their text, ready to be read by a model.
    :param flags: names of what was loaded, by flag; can be sent back as ``skip``.
    :param flags_updated: the same as ``flags``.
    :param loaded_items: names in the order of ``content``.
    :param items: where each came from.
    :param missing: what was not found.
    :param skipped: what ``skip`` left out.
    :param total_tokens: tokens of ``content``.
    :param token_counter: how they were counted.
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


def _markdown(loaded: Loaded) -> str:
    """Return the text of items as they are; a last line says what is not among them."""
    missing = (one.name + (f" (near: {', '.join(one.near)})" if one.near else "") for one in loaded.missing)
    notes = [
        f"{what}: {', '.join(names)}"
        for what, names in (("not found", tuple(missing)), ("skipped", loaded.skipped))
        if names
    ]
    if not notes:
        return loaded.content
    return f"{loaded.content.rstrip()}\n\n{mark('; '.join(notes), tag_for([loaded.content]))}"


LoadAnswer = LoadReply | Written[LoadReply]


def _load(app: App, kind: str, items: str, skip: str | None, format: str | None) -> LoadAnswer:
    loaded = load(app.own, kind, items, skip)
    if loaded.missing and not loaded.items and not loaded.skipped:
        names = ", ".join(repr(missing.name) for missing in loaded.missing)
        near = dict.fromkeys(name for missing in loaded.missing for name in missing.near)
        raise DocumentNotFoundError(f"there is no {kind} {names}", near=tuple(near))
    return _reply(app, loaded, format)


def _reply(app: App, loaded: Loaded, format: str | None) -> LoadAnswer:
    counter = app.counter
    reply = LoadReply(
        content=loaded.content,
        flags=loaded.flags,
        flags_updated=loaded.flags,
        loaded_items=tuple(item.name for item in loaded.items),
        items=loaded.items,
        missing=loaded.missing or None,
        skipped=loaded.skipped or None,
        total_tokens=counter.count(loaded.content),
        token_counter=counter.name,
    )
    return Written(reply, _markdown(loaded)) if app.form(format) == "markdown" else reply


def npl_load_components(app: App, items: Items, skip: Skip = None, format: Format = None) -> LoadAnswer:
    """Load whole NPL components (syntax, fences, directive, pumps.*, …).

    :param items: names with commas between them; ``*`` matches any.
    :raises DocumentNotFoundError: nothing was found.
    """
    return _load(app, "component", items, skip, format)


def npl_load_meta(app: App, items: Items, skip: Skip = None, format: Format = None) -> LoadAnswer:
    """Load whole metadata files.

    :param items: names with commas between them; ``*`` matches any.
    :raises DocumentNotFoundError: nothing was found.
    """
    return _load(app, "meta", items, skip, format)


def npl_load_style(app: App, items: Items, skip: Skip = None, format: Format = None) -> LoadAnswer:
    """Load whole style guides.

    :param items: names with commas between them; ``*`` matches any.
    :raises DocumentNotFoundError: nothing was found.
    """
    return _load(app, "style", items, skip, format)


def npl_load_agent(
    app: App,
    agent_name: str,
    with_definition: Annotated[bool, "Append the NPL it relies on"] = False,
    format: Format = None,
) -> LoadAnswer:
    """Load an agent definition.

    :raises DocumentNotFoundError: there is no such agent.
    """
    return _reply(app, load_agent(app.own, agent_name, with_definition=with_definition), format)


def npl_section_index(
    app: App,
    file: Annotated[str | None, "As for npl_load_tailored", CommaList] = None,
    filter: Annotated[
        dict[str, Any] | None,
        "has_examples, has_tables, has_code, has_definitions, min_word_count, max_word_count, heading_level",
    ] = None,
    resource_type: Kind = None,
    item: Item = None,
    depth: Count | None = None,
    token_budget: Count | None = None,
    format: Format = None,
) -> IndexReply | Written[IndexReply]:
    """Browse the section tree of Markdown files: selectors, sizes, contents.

    :param filter: what sections must have: ``has_examples``, ``has_tables``, ``has_code`` and
        ``has_definitions`` are true or false, ``min_word_count``, ``max_word_count`` and ``heading_level``
        numbers.
    :param item: name of that kind, e.g. ``syntax.placeholder``.
    :param depth: levels that are shown.
    :param token_budget: most tokens of the answer.
    :raises InvalidRequestError: the arguments contradict each other, or a filter cannot be read.
    :raises DocumentNotFoundError: there is no such file or item.
    :raises DocumentError: the file cannot be used.
    """
    ref = DocumentRef.parse(file, resource_type, item)
    conditions = TraitFilter.parse(filter)
    for name, number in (("depth", depth), ("token_budget", token_budget)):
        if number is not None and number < 0:
            raise InvalidRequestError(f"{name} is {number}", parameter=name, hint="use 0 or more")
    request = IndexRequest(conditions, depth, token_budget, app.form(format) == "markdown")
    return app.unchanging(lambda: section_index(app, ref, app.gather(ref), request))


def npl_load_tailored(
    app: App,
    context: Annotated[str | None, "Task or agent description"] = None,
    topics: list[str] | None = None,
    selectors: Annotated[
        list[str] | None, "Sections wanted anyway: ## Fences; doc > ## A > ### B; ## A...## C"
    ] = None,
    token_budget: Count | None = None,
    file: File = None,
    resource_type: Annotated[str | None, "As for npl_section_index"] = None,
    item: str | None = None,
    sections: list[str] | None = None,
    depth: Annotated[Count | None, "Levels below selected sections"] = None,
    explain: bool = False,
    exclude: Annotated[list[str] | None, "Selectors not wanted"] = None,
    format: Format = None,
) -> Written[Tailored]:
    """Load only the Markdown sections a task needs, within a token budget.

    :param topics: concepts to look for.
    :param token_budget: most tokens of the answer.
    :param item: as for ``npl_section_index``.
    :param sections: the same as ``selectors``.
    :param explain: add all hits and their scores.
    :raises MissingRequestError: there is nothing to look for.
    :raises InvalidRequestError: the arguments contradict each other or are out of range.
    :raises SelectorSyntaxError: a selector cannot be read.
    :raises SectionNotFoundError: the selectors select nothing.
    :raises DocumentNotFoundError: there is no such file or item.
    :raises DocumentError: the file cannot be used.
    """
    ref = DocumentRef.parse(file, resource_type, item)
    request = TailorRequest.parse(
        context=context,
        topics=topics,
        selectors=[*(selectors or ()), *(sections or ())],
        token_budget=token_budget,
        depth=depth,
        explain=explain,
        exclude=exclude,
    )
    form: Form = Markdown() if app.form(format) == "markdown" else Json(*ENVELOPE)
    return written(app, ref, request, form)


def written(app: App, ref: DocumentRef, request: TailorRequest, form: Form) -> Written[Tailored]:
    """Return the answer to a request about some documents, in a form."""
    return app.unchanging(lambda: _written(app, ref, request, form))


def _written(app: App, ref: DocumentRef, request: TailorRequest, form: Form) -> Written[Tailored]:
    with found_in(app, ref, request) as (request, documents):
        return write(request, documents, form, weights=app.settings.weights, companions=app.state.companions)


@contextmanager
def found_in(
    app: App, ref: DocumentRef, request: TailorRequest
) -> Iterator[tuple[TailorRequest, DocumentSet]]:
    """Give the documents of a request as answers show them, and the request as it is about these.

    :raises SectionNotFoundError: nothing is found; it may be in a file that is still to come.
    """
    gathered = app.gather(ref, request.selectors, request.exclude)
    name = app.name_of(ref, gathered)
    clock = app.clock(name)
    counter, counts = app.counting(gathered.collection, clock)
    documents = DocumentSet(
        collection=gathered.collection,
        several=gathered.several,
        file=name,
        counts=counts,
        counter=counter,
        unreadable=gathered.unreadable,
        missing=gathered.missing,
        files=gathered.files,
        aliases=gathered.aliases,
        complete=gathered.several and not gathered.missing and app.searches_all(ref, request.selectors),
        clock=clock,
    )
    try:
        yield replace(request, exclude=gathered.exclude), documents
    except SectionNotFoundError as error:
        if not gathered.missing:
            raise
        raise SectionNotFoundError(error.message, hint=partial_note(gathered.missing)) from None


# Together these bounds keep a call on the event loop to a few milliseconds: of the labelled questions about
# such documents half take 1.2, one in a hundred 3.6. A longer one loses less by the change of thread than all
# other callers would by waiting for it.

INLINE_OUTLINE = 100
"""Sections of a document whose outline is made on the event loop."""

INLINE_COUNTED = 20
"""Sections of a document whose outline is counted there, to fit into a budget."""

INLINE_SECTIONS = 2_000
"""Sections of a document that is ranked there."""

INLINE_BYTES = 16_384
"""Bytes of a document's longest section: what a ranking brings is a few of them."""

INLINE_CUT = 4_096
"""Bytes that are parsed there to find out where a section can be cut: as many as fit, or the section."""

_WIDTH = 5
"""Bytes of a token, more or less."""

INLINE_WORDS = 500
"""Characters of a task that is analysed there."""

INLINE_TOPICS = 4_000
"""Topics times sections: each is compared with each."""

INLINE_SELECTORS = 256
"""Selectors times sections."""

INLINE_SELECTED = 65_536
"""Bytes of a document from which a selector may bring everything."""


def _outlined_in_memory(
    app: App,
    file: str | None = None,
    resource_type: str | None = None,
    item: str | None = None,
    token_budget: int | None = None,
    **_: object,
) -> bool:
    kept = _kept(app, file, resource_type, item)
    most = INLINE_OUTLINE if token_budget is None else INLINE_COUNTED
    return kept is not None and len(kept[0].tree.sections) <= most


def _tailored_in_memory(
    app: App,
    context: str | None = None,
    topics: list[str] | None = None,
    selectors: list[str] | None = None,
    token_budget: int | None = None,
    file: str | None = None,
    resource_type: str | None = None,
    item: str | None = None,
    sections: list[str] | None = None,
    exclude: list[str] | None = None,
    **_: object,
) -> bool:
    paths = [*(selectors or ()), *(sections or ())]
    # Where neither a file nor an item is given, selectors may name any document; those of what the caller
    # has may always do.
    if exclude or (paths and file is None and item is None) or len(context or "") > INLINE_WORDS:
        return False
    kept = _kept(app, file, resource_type, item)
    if kept is None:
        return False
    indexed = kept[0]
    size = len(indexed.tree.sections)
    if size > INLINE_SECTIONS or size * len(topics or ()) > INLINE_TOPICS or indexed.longest > INLINE_BYTES:
        return False
    if paths and (size * len(paths) > INLINE_SELECTORS or len(indexed.tree.source) > INLINE_SELECTED):
        return False
    return token_budget is None or min(indexed.longest, _WIDTH * token_budget) <= INLINE_CUT


def _kept(
    app: App, file: str | None, resource_type: str | None, item: str | None
) -> tuple[IndexedDocument, TokenCounts] | None:
    try:
        return app.in_memory(DocumentRef.parse(file, resource_type, item))
    except NPLError:  # the tool says what is wrong
        return None


TOOLS = (
    ToolSpec(npl_load_components, title="Load Components"),
    ToolSpec(npl_load_meta, title="Load Metadata"),
    ToolSpec(npl_load_style, title="Load Style Guides"),
    ToolSpec(npl_load_agent, title="Load Agent"),
    ToolSpec(npl_section_index, title="Browse Sections", heavy=True, in_memory=_outlined_in_memory),
    ToolSpec(
        npl_load_tailored,
        title="Load Sections",
        heavy=True,
        in_memory=_tailored_in_memory,
        implied=("sections",),
    ),
)
