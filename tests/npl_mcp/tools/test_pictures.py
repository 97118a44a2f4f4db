"""Pictures in answers, and what tools of all kinds claim in the list."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import anyio
import pytest
from fastmcp import Client, FastMCP

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.server.registry import register_all
from npl_mcp.stores.review.results import Picture
from npl_mcp.tools.contract.responses import as_dict, pictures
from npl_mcp.tools.contract.spec import ToolSpec

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the tools of these tests answer with."""

    name: str
    overlay: Picture | None
    thumbnail: Picture | None = None


def draw_nothing(app: App) -> Drawing:
    """Draw nothing."""
    return Drawing("nothing", None)


def draw_one(app: App) -> Drawing:
    """Draw a dot."""
    return Drawing("dot", Picture(DOT, "image/png"))


def draw_two(app: App) -> Drawing:
    """Draw two dots."""
    return Drawing("dots", Picture(DOT, "image/png"), Picture(b"", "image/jpeg"))


def answer(settings: Settings, tool: Callable[[App], Drawing]) -> Any:
    """Call a tool of a server that has no other."""

    async def run() -> Any:
        server: FastMCP[Any] = FastMCP("drawings")
        register_all(server, App(settings), (ToolSpec(tool),))
        async with Client(server) as client:
            await client.list_tools()
            return await client.call_tool(tool.__name__, {})

    return anyio.run(run)


@pytest.mark.parametrize(
    ("tool", "data"),
    [
        (draw_nothing, {"name": "nothing"}),
        (draw_one, {"name": "dot", "overlay": {"media_type": "image/png", "bytes": len(DOT)}}),
        (
            draw_two,
            {
                "name": "dots",
                "overlay": {"media_type": "image/png", "bytes": len(DOT)},
                "thumbnail": {"media_type": "image/jpeg", "bytes": 0},
            },
        ),
    ],
)
@pytest.mark.parametrize("structured", [False, True])
def test_pictures_follow_the_envelope(
    settings: Settings, tool: Callable[[App], Drawing], data: dict[str, Any], structured: bool
) -> None:
    """The text tells type and size, one image block for each follows, and the listed schema holds."""
    result = answer(replace(settings, structured=structured), tool)
    text, *images = result.content
    assert json.loads(text.text) == {"success": True, "data": data}
    # The client itself checks structured content against the listed schema.
    assert result.structured_content == ({"success": True, "data": data} if structured else None)
    sent = [part for part in data.values() if isinstance(part, dict)]
    assert [(one.type, one.mime_type) for one in images] == [("image", part["media_type"]) for part in sent]
    assert [len(base64.b64decode(one.data, validate=True)) for one in images] == [
        part["bytes"] for part in sent
    ]
    assert all(base64.b64decode(one.data) in (DOT, b"") for one in images)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"read_only": True}, {"readOnlyHint": True}),
        ({"read_only": True, "idempotent": False}, {"readOnlyHint": True}),
        ({"read_only": False}, {"destructiveHint": False, "idempotentHint": True}),
        ({"read_only": False, "idempotent": False}, {"destructiveHint": False}),
        ({"read_only": False, "destructive": True}, {"idempotentHint": True}),
        ({"read_only": False, "destructive": True, "idempotent": False}, {}),
    ],
)
def test_only_what_differs_from_the_protocols_defaults_is_claimed(
    settings: Settings, claims: dict[str, bool], expected: dict[str, bool]
) -> None:
    """By default a tool writes, destroys, does so each time, and reaches the world, which none does; of a
    reading one the second and the third say nothing.
    """

    async def run() -> Any:
        server: FastMCP[Any] = FastMCP("drawings")
        register_all(server, App(settings), (ToolSpec(draw_one, **claims),))
        async with Client(server) as client:
            return (await client.list_tools())[0].model_dump(mode="json", by_alias=True, exclude_none=True)

    assert anyio.run(run)["annotations"] == {**expected, "openWorldHint": False}


def test_only_fields_are_pictures() -> None:
    """Answers without one, and answers that are no dataclass, have none."""
    picture = Picture(DOT, "image/png")
    drawn = pictures(draw_two(None))  # type: ignore[arg-type]
    assert list(drawn.values()) == [picture, Picture(b"", "image/jpeg")]
    assert pictures(["text", picture]) == {}
    assert pictures(None) == {}
    assert as_dict([picture]) == [{"media_type": "image/png", "bytes": len(DOT)}]
