"""The log of calls: off by default, told by its page, and never in the way of a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.stores.access import Sight
from npl_mcp.stores.data_folder import Stores
from npl_mcp.web.drawing import HEIGHT, WIDTH, plot
from npl_mcp.web.pages.call_log import FEWEST, STEPS, percent, steps
from tests import engines
from tests.npl_mcp.http.http_server import Running, call, serving
from tests.npl_mcp.web.browsing import Visitor

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
    stores = Stores(folder / "data", 1_000_000, engines.address(folder / "data"))
    sights = {**WHO, "docs": Sight(roots=(str(root),))}
    tokens = {name: stores.access.add(name, sight) for name, sight in sights.items()}
    stores.close()
    variables = engines.environment(folder / "data")
    with serving(folder, "--root", str(root), "--log-calls", "contexts", **variables) as running:
        yield running, tokens


def soon(look: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    """Look until something is there; the log is written a moment later."""
    end = time.monotonic() + 20
    while not wanted(found := look()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def test_calls_are_logged_and_shown_to_who_may_see_them(server: tuple[Running, dict[str, str]]) -> None:
    running, tokens = server
    visitors = {name: Visitor(running, token) for name, token in tokens.items()}

    def ask(who: str, tool: str, **given: Any) -> Any:
        return call(running, tool, given, Authorization=f"Bearer {tokens[who]}").data

    assert visitors["all"].json("/calls")["items"] == []
    task = {"file": "siphons.md", "context": "siphon edge 3 \0 <b>", "token_budget": 300}
    first = ask("prompts", "npl_load_tailored", **task)["data"]
    offered = first["suggestions"][0]["selector"]
    ask("prompts", "npl_load_tailored", file="siphons.md", selectors=[offered])
    ask("docs", "npl_load_tailored", file="siphons.md", context="edge 5")
    ask("rooms", "chat_list_rooms")
    ask("rooms", "no_such_tool")
    found = soon(lambda: visitors["all"].json("/calls"), lambda data: data["total"] >= 5)
    assert [(one["who"], one["tool"]) for one in found["items"]] == [
        ("rooms", "unknown"),
        ("rooms", "chat_list_rooms"),
        ("docs", "npl_load_tailored"),
        ("prompts", "npl_load_tailored"),
        ("prompts", "npl_load_tailored"),
    ]
    follower, loaded = found["items"][3:]
    assert (loaded["asked"], loaded["used"]) == (300, first["total_tokens"])
    assert loaded["whole"] > loaded["used"]
    assert loaded["context"] == "siphon edge 3 \ufffd <b>"
    assert {"kind": "suggestion", "selector": offered, "followed_by": follower["id"]} in loaded["offers"]
    assert found["rates"]["accepted"] == percent(1, found["figures"]["total"]["suggested"])
    seen = {
        name: {one["who"] for one in visitor.json("/calls")["items"]} for name, visitor in visitors.items()
    }
    assert seen == {
        "all": {"prompts", "docs", "rooms"},
        "prompts": {"prompts", "docs"},
        "rooms": {"rooms"},
        "docs": {"docs"},
    }
    assert visitors["rooms"].json("/calls?tool=npl_load_tailored")["total"] == 0
    assert visitors["rooms"].json("/calls")["figures"]["total"]["used"] == 0
    assert visitors["docs"].json("/calls")["figures"]["callers"] == ["docs"]
    assert "siphon edge 3" in visitors["all"].open("/calls?who=prompts").text
    page = visitors["all"].open("/calls?who=prompts&span=hour&figures=1")
    assert [one.text for one in page.all("figcaption")][:2] == ["Calls ", "Tokens "]


def test_nothing_is_logged_unless_somebody_wants_it(tmp_path: Path) -> None:
    with serving(tmp_path, "--root", str(docs(tmp_path))) as running:
        assert call(running, "npl_load_tailored", SIPHON).status == 200
        visitor = Visitor(running)
        data = visitor.json("/calls")
        assert (data["recording"], data["items"]) == ("off", [])
        assert "--log-calls" in visitor.open("/calls").text
        assert not (tmp_path / "data" / "npl.db").exists()


@pytest.mark.parametrize(
    ("names", "span", "count"),
    [
        ([], "day", 0),
        (["2026-02-28"], "day", FEWEST),
        (["2026-01-01", "2026-02-28"], "day", STEPS["day"]),
        (["2026-01-01T00", "2026-01-01T09"], "hour", 10),
    ],
)
def test_days_without_calls_are_there(names: list[str], span: str, count: int) -> None:
    found = steps(names, span)
    assert (len(found), found[-1:]) == (count, names[-1:])
    assert found == sorted(found)


def test_bars_stay_in_their_plot() -> None:
    made = plot("Calls", ["a", "b", "c"], [("all", [0, 5, None]), ("failed", [0, 2, 7])], target=3.5)
    assert made["top"] == "7"
    assert (len(made["bars"]), made["target"]) == (5, HEIGHT / 2)
    for bar in made["bars"]:
        assert 0 <= bar["x"] <= bar["x"] + bar["width"] <= WIDTH
        assert bar["y"] + bar["height"] == pytest.approx(HEIGHT)
    assert plot("None", [], [])["bars"] == []
