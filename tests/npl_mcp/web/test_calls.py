"""The log of calls: off by default, told by its page, and never in the way of a call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.stores.access import Sight, add_token
from npl_mcp.stores.data_folder import Stores
from tests import engines
from tests.npl_mcp.http.http_server import Running, call, serving
from tests.npl_mcp.web.browsing import Visitor
from tests.until import until

PARTS = "".join(f"## Part {at}\n\nThe siphon lifts water over edge {at}.\n\n" for at in range(8))

SIPHON = {"file": "siphons.md", "context": "siphon edge 1"}

WHO = {
    "all": Sight(),
    "prompts": Sight(domains=frozenset({"npl"})),
    "rooms": Sight(domains=frozenset({"chat", "session"})),
}


def docs(folder: Path) -> Path:
    made = folder / "docs"
    made.mkdir()
    (made / "siphons.md").write_text(f"# Siphons\n\n{PARTS}", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("calls")
    root = docs(folder)
    stores = Stores(folder / "data", engines.address(folder / "data"))
    sights = {**WHO, "docs": Sight(roots=(str(root),))}
    tokens = {name: stores.database.writing(add_token, name, sight) for name, sight in sights.items()}
    stores.close()
    variables = engines.environment(folder / "data")
    with serving(folder, "--root", str(root), "--log-calls", "contexts", **variables) as running:
        yield running, tokens


def test_calls_are_logged_and_shown_to_who_may_see_them(server: tuple[Running, dict[str, str]]) -> None:
    running, tokens = server
    visitors = {name: Visitor(running, token) for name, token in tokens.items()}

    def ask(who: str, tool: str, **given: Any) -> Any:
        return call(running, tool, given, Authorization=f"Bearer {tokens[who]}").data

    assert visitors["all"].json("/usage")["items"] == []
    task = {"file": "siphons.md", "context": "siphon edge 3 \0 <b>", "token_budget": 300}
    first = ask("prompts", "npl_load_tailored", **task)["data"]
    offered = first["suggestions"][0]["selector"]
    ask("prompts", "npl_load_tailored", file="siphons.md", selectors=[offered])
    ask("docs", "npl_load_tailored", file="siphons.md", context="edge 5")
    ask("rooms", "chat_list_rooms")
    ask("rooms", "no_such_tool")
    until(lambda: visitors["all"].json("/usage")["total"] >= 5)
    found = visitors["all"].json("/usage")
    assert [(one["who"], one["tool"]) for one in found["items"]] == [
        ("rooms", "unknown"),
        ("rooms", "chat_list_rooms"),
        ("docs", "npl_load_tailored"),
        ("prompts", "npl_load_tailored"),
        ("prompts", "npl_load_tailored"),
    ]
    follower, loaded = found["items"][3:]
    assert loaded["used"] == first["total_tokens"]
    assert loaded["context"] == "siphon edge 3 \ufffd <b>"
    assert (loaded.get("followed"), follower["followed"]) == (None, 1)
    seen = {
        name: {one["who"] for one in visitor.json("/usage")["items"]} for name, visitor in visitors.items()
    }
    assert seen == {
        "all": {"prompts", "docs", "rooms"},
        "prompts": {"prompts", "docs"},
        "rooms": {"rooms"},
        "docs": {"docs"},
    }
    assert visitors["rooms"].json("/usage?tool=npl_load_tailored")["total"] == 0
    assert visitors["docs"].json("/usage")["callers"] == ["docs"]
    assert "siphon edge 3" in visitors["all"].open("/usage?who=prompts").text
    failed = visitors["all"].open("/usage?show=failed").text
    assert "NOT_FOUND" in failed
    assert "there is no tool 'no_such_tool'" in failed


def test_nothing_is_logged_unless_somebody_wants_it(tmp_path: Path) -> None:
    with serving(tmp_path, "--root", str(docs(tmp_path))) as running:
        assert call(running, "npl_load_tailored", SIPHON).status == 200
        visitor = Visitor(running)
        data = visitor.json("/usage")
        assert (data["recording"], data["items"]) == ("off", [])
        assert "--log-calls" in visitor.open("/usage").text
        assert not (tmp_path / "data" / "npl.db").exists()
