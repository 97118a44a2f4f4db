"""Documents as resources: every ``file`` of a tool, as a whole or by section, a map of all.

Single documents have only templates: a list of all files would be long, and tools find sections better.
Hidden documents are reported as not found, as in tools.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.resources.security import ResourceSecurity

from npl_index.answer.units import merged_spans
from npl_index.deadline import limited
from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.selection import select_in
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.document_map import document_map
from npl_mcp.app.lanes import lane
from npl_mcp.app.waiting import result_of
from npl_mcp.server.primitives.prompts import protocol_errors
from npl_mcp.tools.contract.responses import within

DOMAIN, MARKDOWN = "npl", "text/markdown"

FILE = "npl://file/{path*}"
MAP = "npl://map"
SECTION = f"{FILE}#{{selector*}}"


def add_documents(server: FastMCP[Any], app: App) -> None:
    """Add the documents that callers see to a server.

    :param app: the server's view, which finds and reads them on request.
    """
    # FastMCP keeps functions of ended servers.
    timed, view = limited(app.settings.time_limit)(_text), ref(app)

    async def read(path: str, selector: str | None = None) -> str:
        with protocol_errors(ResourceError):
            return await lane("heavy").run(timed, view, path, selector)

    async def read_map() -> str:
        with protocol_errors(ResourceError):
            return await lane("heavy").run(timed, view)

    shared: dict[str, Any] = {"mime_type": MARKDOWN, "tags": {DOMAIN}}
    about = "What is served: folders, names of documents, rare words of their headings"
    server.resource(MAP, name="map", description=about, **shared)(read_map)
    # A selector is not a path: "Setup/.." selects nothing and reads nothing.
    shared["security"] = ResourceSecurity(exempt_params=frozenset({"selector"}))
    # The first matching template is used. The template of whole files also matches addresses with a fragment.
    about = "A section of a document, by its selector, percent-encoded"
    server.resource(SECTION, name="section", description=about, **shared)(read)
    about = "A Markdown file, an item, artifact:12 or cr:KEY-1"
    server.resource(FILE, name="document", description=about, **shared)(read)


def _text(view: ref[App], path: str | None = None, selector: str | None = None) -> str:
    """Return the text of a document or of a selected section that the caller may see.

    :param path: the document's path; without it, the text is the map of all documents.
    :raises NPLError: the document or section does not exist, or cannot be used.
    """
    app = view()
    assert app is not None
    call, named = CALLER.get().context(app), DocumentRef(path)
    if path is None:
        return result_of(document_map(call))
    if len(call.documents.find(named)) > 1 or call.documents.is_set(named):
        raise InvalidRequestError(f"{path!r} names several documents", hint="give the path of one")
    gathered = call.gather(named)
    tree, name = gathered.collection.documents[0].tree, gathered.files[0]
    if selector is None:
        return within(call.settings.body_limit, tree.source)
    scope = Scope((tree,), [(name, *gathered.aliases[0])], clock=call.clock(name))
    selections = select_in(scope, compile_selector(selector))
    parts = (
        tree.text(span)
        for selected in selections
        for span in merged_spans(selected.lines or tree.sections[number].own for number in selected.sections)
    )
    return within(call.settings.body_limit, "\n".join(filter(None, parts)))
