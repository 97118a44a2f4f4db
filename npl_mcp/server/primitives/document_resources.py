"""Documents as resources: every ``file`` of a tool, as a whole or by section, and a map of all documents.

Single documents have only templates: a list of all files would be long, and tools find sections better.
Hidden documents are reported as not found, as in tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from fastmcp import FastMCP
from fastmcp.resources import Resource, ResourceContent, ResourceResult
from fastmcp.resources.security import ResourceSecurity

from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import Selected, select
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import seen
from npl_mcp.app.lanes import lane
from npl_mcp.server.primitives.components import CallingTemplate, Given
from npl_mcp.server.primitives.skills import add_skills
from npl_mcp.server.protocol import MARKDOWN, protocol_errors
from npl_mcp.tools.contract.responses import within
from npl_mcp.tools.npl import content_map

DOMAIN = "npl"

FILE = "npl://file/{path*}"
MAP = "npl://map"
SECTION = f"{FILE}#{{selector*}}"


def add_documents(server: FastMCP[Any], app: App) -> None:
    """Add the documents and skills that callers see to a server.

    :param app: the server's view, which finds and reads them on request.
    """
    read = _reader(app)

    async def everything() -> ResourceResult:
        return await read({})

    about = "What is served: folders, names of documents, rare words of their headings"
    server.add_resource(
        Resource.from_function(
            everything, MAP, name="map", description=about, mime_type=MARKDOWN, tags={DOMAIN}
        )
    )
    add_skills(server, app)
    # A selector is not a path: "Setup/.." selects nothing and reads nothing.
    security = ResourceSecurity(exempt_params=frozenset({"selector"}))
    # The first matching template is used. The template of whole files also matches addresses with a fragment.
    for template, name, description in (
        (SECTION, "section", "A section of a document, by its selector, percent-encoded"),
        (FILE, "document", "A Markdown file, an item, artifact:12, cr:KEY-1 or lib:docs/a.md"),
    ):
        server.add_template(
            CallingTemplate.of(
                read,
                uri_template=template,
                name=name,
                description=description,
                mime_type=MARKDOWN,
                security=security,
                tags={DOMAIN},
            )
        )


def _reader(app: App) -> Callable[[Given], Awaitable[ResourceResult]]:
    async def read(parts: Given) -> ResourceResult:
        with protocol_errors():
            text = await lane("heavy").run(_text, app, parts.get("path"), parts.get("selector"))
        return ResourceResult([ResourceContent(text, mime_type=MARKDOWN)])

    return read


def _text(app: App, path: str | None, selector: str | None) -> str:
    """Return the text of a document or of a selected section that the caller may see.

    :param path: the document's path; ``None`` for the map of all documents.
    :raises NPLError: the document or section does not exist, or cannot be used.
    """
    app, ref = seen(app), DocumentRef.parse(path)
    if path is None:
        return content_map(app)
    if len(app.documents.find(ref)) > 1 or app.documents.is_set(ref):
        raise InvalidRequestError(f"{path!r} names several documents", hint="give the path of one")
    gathered = app.gather(ref)
    tree, name = gathered.collection.documents[0].tree, gathered.files[0]
    if selector is None:
        return within(app.settings.body_limit, tree.source)
    found = select((tree,), compile_selector(selector), names=[(name, *gathered.aliases[0])])
    parts = (tree.text(span) for one in found for span in _spans(tree, one))
    return within(app.settings.body_limit, "\n".join(parts))


def _spans(tree: SectionTree, selected: Selected) -> Iterator[Span]:
    """Yield the selected lines; those of consecutive sections are joined."""
    if selected.lines is not None:
        yield selected.lines
        return
    start = stop = -1
    for number in selected.sections:
        own = tree.sections[number].own
        if own.start != stop:
            if stop > start:
                yield Span(start, stop)
            start = own.start
        stop = own.stop
    if stop > start:
        yield Span(start, stop)
