"""The page Ask in a chat window: a document for the host, and its content for each answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastmcp.server.dependencies import get_context
from markupsafe import Markup
from starlette.requests import Request

from npl_mcp.config.settings import Settings
from npl_mcp.web.pages.ask import PATH, AskForm, audited
from npl_mcp.web.rendering import render
from npl_mcp.web.visits import Visit, address

_STATIC = Path(__file__).parent / "static"


def document() -> str:
    """Return the document: the style of the pages, and a script for messages to the host."""
    parts = {"style": "npl.css", "script": "chat_window.js"}
    read = {name: Markup((_STATIC / file).read_text(encoding="utf-8")) for name, file in parts.items()}
    return render("chat_window.html", **read)


def content(settings: Settings, given: Mapping[str, Any], audit: Any) -> str:
    """Return the page with one answer, as HTML.

    :param given: the checked arguments of the call of ``npl_ask``.
    :param audit: the data of its answer.
    """
    budget, form = given.get("token_budget"), given.get("format") or settings.format
    default = settings.token_budget if given.get("context") or given.get("topics") else 0
    asked = AskForm(
        given.get("context") or "",
        ", ".join(given.get("topics") or ()),
        "\n".join(given.get("selectors") or ()),
        given.get("file") or "",
        default if budget is None else budget,
        default,
    )
    state = {name: given.get(name) for name in ("section", "view")}
    place = address(PATH, **asked.parameters(), **state, form=form)
    query = place.partition("?")[2].encode()
    request = Request({"type": "http", "method": "GET", "path": PATH, "query_string": query, "headers": []})
    visit = Visit(request, get_context().fastmcp, replace(settings, web="read"))
    return render(
        "ask.html",
        layout="fragment.html",
        visit=visit,
        _asked=asked,
        **audited(visit, asked, audit, form),
    )
