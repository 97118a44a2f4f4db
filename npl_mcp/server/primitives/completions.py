"""Completion of the parameters of documents' addresses and of prompts' arguments.

An argument's name gives its type: a ``file``, the ``selector`` of a section in it, or an ``item``. Completion
reads only documents that a tool would show the same caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from fastmcp import Context, FastMCP
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from npl_index.errors import NPLError
from npl_index.library.documents import DocumentRef
from npl_index.library.references import MARKDOWN_SUFFIXES, document_name
from npl_index.selectors.writing import qualified
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER, seen, sight
from npl_mcp.app.lanes import lane
from npl_mcp.server.callers import caller_of
from npl_mcp.server.primitives.document_resources import DOMAIN, FILE, SECTION
from npl_mcp.stores.artifact.artifacts import listed
from npl_mcp.stores.base.paging import Slice

MAX_VALUES = 100
"""Maximum values of an answer, set by the protocol."""

_LOOKED_THROUGH = 10_000
"""Maximum entries of a root that are scanned, about twenty milliseconds: completion runs while a user types.
"""

_ARTIFACT, _KEY = "artifact:", "cr:"

Given = Mapping[str, str]
"""Values of the other arguments, by name."""


def add_completions(server: FastMCP[Any], app: App) -> None:
    """Add completion to a server.

    :param app: the server's view.
    """

    async def complete(
        ref: Any, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion:
        # FastMCP runs no middleware here, so the caller is not set yet.
        async with Context(fastmcp=server) as known:
            token = CALLER.set(caller_of(known.request_context))
        try:
            # The sources for the arguments of a prompt or an address, by name.
            uri = ref.uri if isinstance(ref, ResourceTemplateReference) else ""
            names = _ARGUMENTS if isinstance(ref, PromptReference) else _PARAMETERS.get(uri, {})
            if argument.name not in names or not sight().has_domain(DOMAIN):
                return Completion(values=[])
            given = (context and context.arguments) or {}
            return await lane("heavy").run(_values, app, names[argument.name], argument.value, given)
        finally:
            CALLER.reset(token)

    server.add_completion_handler(complete)


Source = Callable[[App, str, Given], Iterable[str]]
"""Takes the caller's view, the typed text, and the other arguments; returns candidates."""


def _values(app: App, source: Source, typed: str, given: Given) -> Completion:
    """Return the candidates for an argument; empty if a document cannot be read."""
    found: Iterable[str] = ()
    with suppress(NPLError):
        found = tuple(source(seen(app), typed, given))
    part = typed.casefold()
    fitting = [one for one in dict.fromkeys(found) if part in one.casefold()]
    fitting.sort(key=lambda one: not one.casefold().startswith(part))
    return Completion(values=fitting[:MAX_VALUES], total=len(fitting), has_more=len(fitting) > MAX_VALUES)


def _files(app: App, typed: str, given: Given) -> Iterator[str]:
    """Yield names of documents: of the typed scheme, else files of the user's roots, and items."""
    for scheme, source in ((_KEY, _requests), (_ARTIFACT, _artifacts)):
        if typed.startswith(scheme):
            yield from source(app, typed, given)
            return
    library = app.library
    for root in library.roots:
        if not root.npl:
            with suppress(NPLError):
                for _, found in library.roots.walk(root.path, None, MARKDOWN_SUFFIXES, _LOOKED_THROUGH):
                    yield found.path
    yield from _items(app, typed, given)


def _items(app: App, _: str, given: Given) -> Iterator[str]:
    wanted = given.get("resource_type")
    for one in app.library.catalog.kinds:
        if one.suffix in MARKDOWN_SUFFIXES and wanted in (None, one.name):
            with suppress(NPLError):
                yield from app.library.item_names(one)


def _selectors(app: App, _: str, given: Given) -> Iterator[str]:
    """Yield the selectors of the sections of the document in the other arguments."""
    name = next((given[one] for one in _DOCUMENTS if given.get(one)), None)
    ref = DocumentRef(name)
    if name and not app.documents.is_set(ref):
        gathered = app.gather(ref)
        document, parsed = document_name(gathered.files[0]), gathered.collection.documents[0]
        for section in parsed.tree.sections[1:]:
            yield qualified(document, parsed.step(section.index))


def _requests(app: App, _: str, __: Given) -> Iterator[str]:
    if app.sight.has_domain("cr"):
        yield from app.documents.names(app.documents.find(DocumentRef(file=f"{_KEY}*")))


def _artifacts(app: App, typed: str, _: Given) -> Iterator[str]:
    """Yield the names of the newest artifacts, and of the typed one."""
    if app.sight.has_domain("artifact") and app.database.engine.exists():
        number = typed.removeprefix(_ARTIFACT)
        if number.isdecimal():
            with suppress(NPLError):
                app.documents.find(DocumentRef(file=f"{_ARTIFACT}{number}"))
                yield f"{_ARTIFACT}{number}"
        with app.database.read() as tx:
            newest = listed(tx, Slice(MAX_VALUES, 0)).items
        yield from (f"{_ARTIFACT}{artifact.id}" for artifact in newest)


_DOCUMENTS = ("path", "file", "document", "item")
"""Arguments that name the document of a selector."""

_PARAMETERS: Mapping[str, Mapping[str, Source]] = {
    FILE: {"path": _files},
    SECTION: {"path": _files, "selector": _selectors},
}
_ARGUMENTS: Mapping[str, Source] = {
    **dict.fromkeys(("path", "file", "document"), _files),
    **dict.fromkeys(("selector", "section"), _selectors),
    "item": _items,
}
