"""Documents as resources: every ``file`` of a tool, as a whole or by section, a map of all, and skills.

Single documents have only templates: a list of all files would be long, and tools find sections better.
Hidden documents are reported as not found, as in tools.

Skills over MCP (SEP-2640) have the methods ``skills/list`` and ``skills/get``; their files are resources.
They are served verbatim, under every version of the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from fastmcp import FastMCP
from fastmcp.resources.security import ResourceSecurity
from fastmcp.server.extensions import MethodBinding, ServerExtension
from mcp import MCPError
from mcp_types import INVALID_PARAMS, CacheableResult, PaginatedRequestParams, PaginatedResult, RequestParams
from pydantic import AnyUrl

from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import Selected, select
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import seen
from npl_mcp.app.lanes import lane
from npl_mcp.app.skills import Skill, file_at, served
from npl_mcp.server.fastmcp_private import declare_extension
from npl_mcp.server.primitives.components import (
    MARKDOWN,
    CallingResource,
    CallingTemplate,
    Content,
    Given,
)
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
    reading = {"function": partial(_text, app), "in_lane": "heavy"}
    shared: dict[str, Any] = {**reading, "mime_type": MARKDOWN, "tags": {DOMAIN}}
    about = "What is served: folders, names of documents, rare words of their headings"
    server.add_resource(CallingResource(uri=AnyUrl(MAP), name="map", description=about, **shared))
    server.add_template(
        CallingTemplate(
            function=partial(_content, app),
            uri_template="skill://{path*}",
            name="skill",
            description="A file of a skill, as skills/list names it",
            tags={DOMAIN},
        )
    )
    server.add_extension(SkillMethods(app))
    declare_extension(server, SkillMethods.identifier)
    # A selector is not a path: "Setup/.." selects nothing and reads nothing.
    security = ResourceSecurity(exempt_params=frozenset({"selector"}))
    # The first matching template is used. The template of whole files also matches addresses with a fragment.
    for template, name, description in (
        (SECTION, "section", "A section of a document, by its selector, percent-encoded"),
        (FILE, "document", "A Markdown file, an item, artifact:12, cr:KEY-1 or lib:docs/a.md"),
    ):
        one = CallingTemplate(
            uri_template=template, name=name, description=description, security=security, **shared
        )
        server.add_template(one)


def _text(app: App, given: Given) -> Content:
    """Return the text of a document or of a selected section that the caller may see.

    :param given: the document's path, and a selector; without a path, the text is the map of all documents.
    :raises NPLError: the document or section does not exist, or cannot be used.
    """
    path, selector = given.get("path"), given.get("selector")
    app, ref = seen(app), DocumentRef(path)
    if path is None:
        return content_map(app), MARKDOWN
    if len(app.documents.find(ref)) > 1 or app.documents.is_set(ref):
        raise InvalidRequestError(f"{path!r} names several documents", hint="give the path of one")
    gathered = app.gather(ref)
    tree, name = gathered.collection.documents[0].tree, gathered.files[0]
    if selector is None:
        return within(app.settings.body_limit, tree.source), MARKDOWN
    found = select((tree,), compile_selector(selector), names=[(name, *gathered.aliases[0])])
    parts = (tree.text(span) for one in found for span in _spans(tree, one))
    return within(app.settings.body_limit, "\n".join(parts)), MARKDOWN


def _spans(tree: SectionTree, selected: Selected) -> list[Span]:
    """Return the selected lines; those of consecutive sections are joined."""
    if selected.lines is not None:
        return [selected.lines]
    spans: list[Span] = []
    for number in selected.sections:
        own = tree.sections[number].own
        before = spans.pop() if spans and spans[-1].stop == own.start else own
        spans.append(Span(before.start, own.stop))
    return [span for span in spans if span.start < span.stop]


PAGE = 100
"""Maximum skills of a page."""


class _Listed(PaginatedResult, CacheableResult):
    skills: list[dict[str, Any]]
    result_type: Literal["complete"] = "complete"


class _Got(CacheableResult):
    skill: dict[str, Any]
    result_type: Literal["complete"] = "complete"


class _Wanted(RequestParams):
    uri: str


class SkillMethods(ServerExtension):
    """The methods of SEP-2640.

    :param app: the server's view, which finds the skills of each caller.
    """

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self, app: App) -> None:
        self._app = app

    def methods(self) -> Sequence[MethodBinding]:
        """Return both methods."""
        return (
            MethodBinding("skills/list", PaginatedRequestParams, self._list),
            MethodBinding("skills/get", _Wanted, self._get),
        )

    async def _list(self, _: Any, given: PaginatedRequestParams) -> _Listed:
        cursor = given.cursor or "0"
        if not cursor.isdecimal() or len(cursor) > len(str(PAGE**3)):
            raise MCPError(code=INVALID_PARAMS, message="the cursor does not come from skills/list")
        start = int(cursor)
        page, total = await lane("light").run(self._page, start)
        following = str(start + PAGE) if start + PAGE < total else None
        return _Listed(skills=page, next_cursor=following)

    def _page(self, start: int) -> tuple[list[dict[str, Any]], int]:
        every = served(seen(self._app).library)
        return [_entry(one) for one in every[start : start + PAGE]], len(every)

    async def _get(self, _: Any, given: _Wanted) -> _Got:
        found = await lane("light").run(self._one, given.uri)
        if found is None:
            raise MCPError(code=INVALID_PARAMS, message=f"No skill is served at {given.uri[:200]}")
        return _Got(skill=found)

    def _one(self, uri: str) -> dict[str, Any] | None:
        every = served(seen(self._app).library)
        return next((_entry(one) for one in every if one.uri() == uri), None)


def _entry(skill: Skill) -> dict[str, Any]:
    files = [{"uri": skill.uri(one.path), "digest": one.digest, "size": one.size} for one in skill.files]
    return {"uri": skill.uri(), "frontmatter": dict(skill.fields), "resources": files}


def _content(app: App, given: Given) -> Content:
    """Return a file's content, as text if its bytes are UTF-8, else as bytes."""
    file = file_at(seen(app).library, given["path"])
    data = file.read()
    try:
        return data.decode("utf-8"), file.media_type
    except UnicodeDecodeError:
        return data, file.media_type
