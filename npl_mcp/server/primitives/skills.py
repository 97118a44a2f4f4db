"""Skills over MCP (SEP-2640): ``skills/list`` and ``skills/get``; their files are resources.

Skills are served verbatim, under every version of the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from fastmcp import FastMCP
from fastmcp.server.extensions import MethodBinding, ServerExtension
from mcp import MCPError
from mcp_types import INVALID_PARAMS, CacheableResult, PaginatedRequestParams, PaginatedResult, RequestParams

from npl_mcp.app.app import App
from npl_mcp.app.call_reports import seen
from npl_mcp.app.lanes import lane
from npl_mcp.app.skills import Skill, file_at, served
from npl_mcp.server.fastmcp_private import declare_extension
from npl_mcp.server.primitives.components import CallingTemplate, Content, Given

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


def add_skills(server: FastMCP[Any], app: App) -> None:
    """Add the skills that callers see to a server.

    :param app: the server's view, which finds and reads them on request.
    """
    server.add_template(
        CallingTemplate(
            function=partial(_content, app),
            uri_template="skill://{path*}",
            name="skill",
            description="A file of a skill, as skills/list names it",
            tags={"npl"},
        )
    )
    server.add_extension(SkillMethods(app))
    declare_extension(server, SkillMethods.identifier)


def _content(app: App, given: Given) -> Content:
    """Return a file's content, as text if its bytes are UTF-8, else as bytes."""
    file = file_at(seen(app).library, given["path"])
    data = file.read()
    try:
        return data.decode("utf-8"), file.media_type
    except UnicodeDecodeError:
        return data, file.media_type
